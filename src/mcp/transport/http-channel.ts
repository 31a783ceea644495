/** A server at an address: Streamable HTTP by the official client's transport, message by message. */
import { SdkHttpError, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { isRequest, validateMessage, readMeta, META_KEY } from "./message.ts";
import type { Channel } from "./peer.ts";
import type { HttpTarget } from "../config/server-config.ts";

export interface HttpChannel extends Channel {
  /** Sent with each request from now on: what `initialize` agreed on. */
  setVersion(version: string): void;
}

/** How long a server may take to hear that the session has ended. Milliseconds. */
const TERMINATE_TIMEOUT_MS = 2000;

export async function openHttpChannel(
  name: string,
  { url, headers }: HttpTarget,
  log: (line: string) => void,
): Promise<HttpChannel> {
  // Its own headers only: what the client sent to the proxy goes no further.
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  let closed = false;
  /** Of requests of 2026-07-28 that were sent: the end of such a request's stream is its cancellation. */
  let isModern = false;
  const channel: HttpChannel = {
    onmessage: () => {},
    onclose: () => {},
    setVersion: (version) => transport.setProtocolVersion(version),
    async send(message, { signal, headers: more } = {}) {
      const modern = isRequest(message) && META_KEY.version in readMeta(message.params);
      isModern ||= modern;
      // Servers of that revision take requests only.
      if (isModern && !isRequest(message)) return;
      try {
        await transport.send(message as never, {
          ...(modern && signal !== undefined ? { requestSignal: signal } : {}),
          ...(modern && more !== undefined ? { headers: more } : {}),
          ...(isRequest(message)
            ? {
                onRequestStreamEnd: () =>
                  channel.onAnswerLost?.(message.id, `the server "${name}" ended the answer before it was whole`),
              }
            : {}),
        });
      } catch (error) {
        // It has forgotten the session, and has read nothing: the next one begins anew.
        if (error instanceof SdkHttpError && error.status === 404 && transport.sessionId !== undefined) {
          end(`the server "${name}" has ended the session`);
          void transport.close().catch(() => {});
        }
        throw new Error(`the server "${name}": ${describeError(error)}`, { cause: error });
      }
    },
    async close() {
      if (closed) return;
      end("closed");
      const late = AbortSignal.timeout(TERMINATE_TIMEOUT_MS);
      await Promise.race([
        transport.terminateSession().catch(() => {}),
        new Promise((resolve) => late.addEventListener("abort", resolve)),
      ]);
      await transport.close();
    },
  };
  const end = (why: string): void => {
    if (closed) return;
    closed = true;
    channel.onclose(why);
  };
  transport.onmessage = (message: unknown) => {
    try {
      channel.onmessage(validateMessage(message));
    } catch (error) {
      log(`the server "${name}" sent what is no message: ${String(error)}`);
    }
  };
  transport.onerror = (error) => {
    if (!closed) log(`the server "${name}": ${describeError(error)}`);
  };
  transport.onclose = () => end(`the connection to the server "${name}" has ended`);
  await transport.start();
  return channel;
}

function describeError(error: unknown): string {
  if (error instanceof UnauthorizedError)
    return "it wants other credentials; give them in headers of its configuration";
  if (error instanceof SdkHttpError) return `it answered ${error.status}`;
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return `${error instanceof Error ? error.message : String(error)}${cause}`;
}

/** Connects to a server by URL over Streamable HTTP, with the transport of the official client SDK. */
import { randomUUID } from "node:crypto";
import { SdkHttpError, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { isRequest, validateMessage, readMeta, META_KEY } from "./rpc-message.ts";
import type { Channel } from "./peer.ts";
import type { HttpTarget } from "../config/server-config.ts";

export interface HttpChannel extends Channel {
  /** Sets the negotiated protocol version, which all later requests send in a header. */
  setVersion(version: string): void;
}

/** Timeout for ending the session at the server. Milliseconds. */
const TERMINATE_TIMEOUT_MS = 2000;
/** Name of an internal header that refers to a request's credential. The header is never sent. */
const CREDENTIAL_REFERENCE = "assent-credential-reference";

export async function openHttpChannel(
  name: string,
  { url, headers }: HttpTarget,
  log: (line: string) => void,
): Promise<HttpChannel> {
  /** Credentials of in-flight requests, keyed by the value of the header `CREDENTIAL_REFERENCE`. */
  const credentials = new Map<string, Readonly<Record<string, string>>>();
  // Send the configured headers and the credential, but no header of the client. The SDK sets `Authorization` itself,
  // so insert the credential when the SDK calls fetch.
  const fetchWithCredential = (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const sent = new Headers(init.headers);
    const reference = sent.get(CREDENTIAL_REFERENCE);
    if (reference === null) return fetch(input, init);
    sent.delete(CREDENTIAL_REFERENCE);
    for (const [header, value] of Object.entries(credentials.get(reference) ?? {})) sent.set(header, value);
    // Do not follow redirects, because a redirect could send the credential to another server.
    return fetch(input, { ...init, headers: sent, redirect: "error" });
  };
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: fetchWithCredential,
  });
  let closed = false;
  /** Whether requests of protocol revision 2026-07-28 were sent. Closing the stream of such a request cancels it. */
  let isModern = false;
  const channel: HttpChannel = {
    onmessage: () => {},
    onclose: () => {},
    setVersion: (version) => transport.setProtocolVersion(version),
    async send(message, { signal, headers: extraHeaders, credentialHeaders } = {}) {
      const modern = isRequest(message) && META_KEY.version in readMeta(message.params);
      isModern ||= modern;
      // Servers of protocol revision 2026-07-28 accept requests only.
      if (isModern && !isRequest(message)) return;
      const reference = credentialHeaders === undefined ? null : randomUUID();
      if (reference !== null && credentialHeaders !== undefined) credentials.set(reference, credentialHeaders);
      const perMessage = {
        ...(modern ? extraHeaders : {}),
        ...(reference === null ? {} : { [CREDENTIAL_REFERENCE]: reference }),
      };
      try {
        await transport.send(message as never, {
          ...(modern && signal !== undefined ? { requestSignal: signal } : {}),
          headers: perMessage,
          ...(isRequest(message)
            ? {
                onRequestStreamEnd: () =>
                  channel.onAnswerLost?.(message.id, `the server "${name}" ended the response before it was complete`),
              }
            : {}),
        });
      } catch (error) {
        // The server no longer knows the session and did not process the request. The next request opens a new session.
        if (error instanceof SdkHttpError && error.status === 404 && transport.sessionId !== undefined) {
          markClosed(`the server "${name}" has ended the session`);
          void transport.close().catch(() => {});
        }
        throw new Error(`the server "${name}": ${describeError(error)}`, { cause: error });
      } finally {
        if (reference !== null) credentials.delete(reference);
      }
    },
    async close() {
      if (closed) return;
      markClosed("closed");
      const timeout = AbortSignal.timeout(TERMINATE_TIMEOUT_MS);
      await Promise.race([
        transport.terminateSession().catch(() => {}),
        new Promise((resolve) => timeout.addEventListener("abort", resolve)),
      ]);
      await transport.close();
    },
  };
  const markClosed = (reason: string): void => {
    if (closed) return;
    closed = true;
    channel.onclose(reason);
  };
  transport.onmessage = (message: unknown) => {
    try {
      channel.onmessage(validateMessage(message));
    } catch (error) {
      log(`the server "${name}" sent an invalid message: ${String(error)}`);
    }
  };
  transport.onerror = (error) => {
    if (!closed) log(`the server "${name}": ${describeError(error)}`);
  };
  transport.onclose = () => markClosed(`the connection to the server "${name}" is closed`);
  await transport.start();
  return channel;
}

function describeError(error: unknown): string {
  if (error instanceof UnauthorizedError) return "it rejected the credentials; set `headers` in its configuration";
  if (error instanceof SdkHttpError) return `it responded with status ${error.status}`;
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return `${error instanceof Error ? error.message : String(error)}${cause}`;
}

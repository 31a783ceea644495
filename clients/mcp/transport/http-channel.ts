/** Connects to a server by URL over Streamable HTTP, with the transport of the official client SDK. */
import { randomUUID } from "node:crypto";
import {
  InsufficientScopeError,
  SdkHttpError,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import {
  ERROR_CODE,
  errorReply,
  isRequest,
  isResponse,
  MessageError,
  META_KEY,
  readMeta,
  toRequestNumber,
  type Message,
  type RequestId,
} from "./rpc-message.ts";
import { NotSentError, ResponseLostError, type Channel } from "./peer.ts";
import { consumeErrorReply, consumeMessages, dropBody } from "./http-messages.ts";
import type { HttpTarget } from "../config/server-config.ts";
import { createUpstreamExchange } from "../sign-in/upstream-exchange.ts";
import { createUpstreamSignIn, SignInNeededError } from "../sign-in/upstream-sign-in.ts";

export interface HttpChannel extends Channel {
  /** Sets the negotiated protocol version, which all later requests send in a header. */
  setVersion(version: string): void;
}

/** Timeout for ending the session at the server. Milliseconds. */
const TERMINATE_TIMEOUT_MS = 2000;
/** Name of an internal header that refers to an entry of `sending`. The header is never sent. */
const REFERENCE = "assent-reference";
/** Codes of errors that occur before a request is sent. */
const CONNECT_ERRORS = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

interface SentFacts {
  credential: Readonly<Record<string, string>> | undefined;
  /** Id of the message, if it is a request. */
  requestId: RequestId | null;
  /** Whether it is a request of protocol revision 2026-07-28. */
  isModern: boolean;
  /** Whether the response is a stream. */
  isStreamed: boolean;
}

export async function openHttpChannel(
  name: string,
  { url, headers, oauth, signIns, exchange, subject }: HttpTarget,
  log: (line: string) => void,
): Promise<HttpChannel> {
  /** Facts of the messages that are being sent, keyed by the value of the header `REFERENCE`. */
  const sending = new Map<string, SentFacts>();
  // Send the configured headers and the credential, but no header of the client. The SDK sets `Authorization` itself,
  // so insert the credential when the SDK calls fetch.
  const fetchMessages = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const sent = new Headers(init.headers);
    const facts = sending.get(sent.get(REFERENCE) ?? "");
    sent.delete(REFERENCE);
    for (const [header, value] of Object.entries(facts?.credential ?? {})) sent.set(header, value);
    // Do not follow redirects, because a redirect could send the credential or the person's token to another server.
    const hasToken = authProvider !== undefined && sent.has("authorization");
    const redirect = facts?.credential === undefined && !hasToken ? {} : { redirect: "error" as const };
    const response = await fetch(input, { ...init, headers: sent, ...redirect });
    const requestId = facts?.requestId ?? null;
    if (!response.ok)
      return response.status !== 401 && facts?.isModern === true && requestId !== null
        ? consumeErrorReply(response, requestId, (message) => channel.onmessage(message as Message))
        : dropBody(response);
    const consumed = await consumeMessages(response, (message) =>
      message instanceof MessageError
        ? handleInvalid(message, requestId)
        : requestId !== null && isResponse(message) && toRequestNumber(message.id) !== requestId
          ? handleInvalid(foreignReply(), requestId)
          : channel.onmessage(message),
    );
    if (facts !== undefined) facts.isStreamed = consumed.isStreamed;
    return consumed.response;
  };
  /** @param requestId the request whose response contained the message; null if another stream did */
  const handleInvalid = (fault: MessageError, requestId: RequestId | null): void => {
    log(`the server "${name}" sent an invalid message: ${fault.message}`);
    const { request, code, message, answers } = fault;
    if (request !== null)
      void channel.send({ jsonrpc: "2.0", id: request.id, ...errorReply(code, message) }).catch(() => {});
    // The response to a request contains its reply, so whatever is no question and no notification is the reply.
    const isReply = answers.length > 0 || !fault.isMethod;
    channel.onInvalidMessage?.(
      requestId !== null && isReply ? new MessageError(message, code, { answers: [requestId] }) : fault,
    );
  };
  const isExchanged = exchange !== null;
  const authProvider =
    exchange !== null
      ? createUpstreamExchange(exchange, subject)
      : oauth === null
        ? undefined
        : createUpstreamSignIn(name, signIns);
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    ...(authProvider === undefined ? {} : { authProvider }),
    requestInit: { headers },
    fetch: fetchMessages,
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
      const reference = randomUUID();
      const facts: SentFacts = {
        credential: credentialHeaders,
        requestId: isRequest(message) ? message.id : null,
        isModern: modern,
        isStreamed: false,
      };
      sending.set(reference, facts);
      const loseAnswer = (reason: string): void => {
        if (isRequest(message)) channel.onAnswerLost?.(message.id, `the server "${name}" ${reason}`);
      };
      try {
        await transport.send(message as never, {
          ...(modern && signal !== undefined ? { requestSignal: signal } : {}),
          headers: { ...(modern ? extraHeaders : {}), [REFERENCE]: reference },
          onRequestStreamEnd: () => loseAnswer("ended the response before it was complete"),
        });
        // The messages of a response that is not a stream have been handled.
        if (!facts.isStreamed) loseAnswer("responded without a reply to the request");
      } catch (error) {
        const { code } = ((error as Error).cause ?? {}) as { code?: string };
        const isNotSent = code !== undefined && CONNECT_ERRORS.has(code);
        const what = isNotSent ? describeError(error, isExchanged) : describeFailure(error, code, isExchanged);
        const reason = `the server "${name}": ${what}`;
        // The server no longer knows the session and did not process the request. The next request opens a new session.
        if (error instanceof SdkHttpError && error.status === 404 && transport.sessionId !== undefined) {
          markClosed(`the server "${name}" has ended the session`);
          void transport.close().catch(() => {});
          throw new NotSentError(reason, { cause: error });
        }
        // A server that requires a sign-in has not processed the request.
        if (isNotSent || error instanceof SignInNeededError) throw new NotSentError(reason, { cause: error });
        throw new Error(reason, { cause: error });
      } finally {
        sending.delete(reference);
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
  // Errors that the server sent with an error status. Their requests are the only pending ones with these ids.
  transport.onmessage = (message: unknown) => channel.onmessage(message as Message);
  transport.onerror = (error) => {
    if (!closed) log(`the server "${name}": ${describeError(error, isExchanged)}`);
  };
  transport.onclose = () => markClosed(`the connection to the server "${name}" is closed`);
  await transport.start();
  return channel;
}

const foreignReply = (): MessageError =>
  new MessageError("the reply has the id of another request", ERROR_CODE.invalidRequest, {
    answers: "unknown",
  });

/**
 * Describes a failure for the model. The proxy puts its mark in front of the description, so the description must not
 * quote the server: a header, for example, could contain a sentence that reads as the proxy's. The log has the whole error.
 */
function describeFailure(error: unknown, code: string | undefined, isExchanged: boolean): string {
  if (error instanceof ResponseLostError) return error.message;
  if (
    [UnauthorizedError, SdkHttpError, SignInNeededError, InsufficientScopeError].some((type) => error instanceof type)
  )
    return describeError(error, isExchanged);
  return code === undefined
    ? "its response was not a response of MCP; the log of the proxy has the details"
    : `the connection failed (${code})`;
}

/** @param isExchanged whether the server gets a token of the user from an exchange */
function describeError(error: unknown, isExchanged: boolean): string {
  if (error instanceof UnauthorizedError || (error instanceof SdkHttpError && error.status === 401))
    return isExchanged
      ? "it rejected the exchanged token of the user; set `exchange` in its configuration as the server expects"
      : "it rejected the credentials; set `headers` in its configuration, or sign in again with assent mcp login";
  if (error instanceof SignInNeededError) return error.message;
  if (error instanceof InsufficientScopeError)
    return isExchanged
      ? "the exchanged token of the user lacks a scope; set `exchange.scope` in its configuration, or ask for the right"
      : "its sign-in lacks a scope; set `oauth.scope` in its configuration, and sign in again with assent mcp login";
  if (error instanceof SdkHttpError) return `it responded with status ${error.status}`;
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return `${error instanceof Error ? error.message : String(error)}${cause}`;
}

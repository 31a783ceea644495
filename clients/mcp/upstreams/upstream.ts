/** A connected server, with one interface for both protocol revisions. */
import { VERSION } from "../../../src/version.ts";
import { removeMarks } from "../decisions/mark.ts";
import type { HttpChannel } from "../transport/http-channel.ts";
import { createNotificationStream } from "./notification-stream.ts";
import {
  ERROR_CODE,
  LEGACY_VERSIONS,
  META_KEY,
  MODERN_VERSION,
  errorReply,
  isObject,
  readMeta,
  withMeta,
  type JsonObject,
  type Notification,
  type Reply,
} from "../transport/rpc-message.ts";
import {
  Peer,
  readErrorMessage,
  ResponseLostError,
  rethrowAsLost,
  type Channel,
  type RequestOptions,
} from "../transport/peer.ts";
import { startServerProcess } from "../transport/process-channel.ts";
import type { ServerConfig } from "../config/server-config.ts";

/** Facts that a client reports about itself in `initialize`, or with each request. */
export interface ClientInfo {
  version: string;
  info: JsonObject;
  capabilities: JsonObject;
}

/** A request from a server to the client. */
export interface RequestFromServer {
  method: string;
  params: JsonObject;
  /** Name of the question within its request (since 2026-07-28). */
  key?: string;
}

/** Answers all questions that a server asks at once. */
export type AnswerQuestions = (questions: readonly RequestFromServer[], signal: AbortSignal) => Promise<Reply[]>;

export type SendToClient = (question: RequestFromServer, signal: AbortSignal) => Promise<Reply>;

interface UpstreamHandlers {
  /**
   * Handles a server's request to the client (sampling, elicitation). Servers of protocol revision 2025-11-25 can send
   * such a request even when no client request is running.
   */
  askClient: SendToClient;
  onnotification(notification: Notification): void;
  onclose(why: string): void;
}

interface UpstreamRequestOptions extends RequestOptions {
  signal: AbortSignal;
  /** Handles the server's questions that belong to this request (since 2026-07-28). */
  ask: AnswerQuestions;
  /** Level of the log messages that the client wants as part of this request (since 2026-07-28). */
  logLevel?: string | undefined;
  /**
   * Capabilities of the client that sent this request. Default: the capabilities that the client sent at the
   * initialization.
   */
  capabilities?: JsonObject | undefined;
}

export interface Upstream {
  readonly config: ServerConfig;
  readonly era: "legacy" | "modern";
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly info: JsonObject;
  readonly instructions: string | null;
  /** Why the connection closed; null while it is open. */
  readonly closed: string | null;
  /** Aborts when the connection closes. */
  readonly whenClosed: AbortSignal;
  /** Sends a request. Resolves to the server's reply. @throws ResponseLostError */
  request(method: string, params: JsonObject | undefined, options: UpstreamRequestOptions): Promise<Reply>;
  notify(method: string, params?: JsonObject): Promise<void>;
  close(): Promise<void>;
}

/** Maximum number of question rounds in one request. The official client has the same limit. */
const MAX_ROUNDS = 10;
/** Timeout of the initialization. Milliseconds. */
const INITIALIZE_TIMEOUT_MS = 60_000;

/**
 * Connects to a server and initializes it.
 * @param attemptSignal aborts the attempt
 * @throws Error whose message can be shown to the user
 */
export async function connectUpstream(
  config: ServerConfig,
  client: ClientInfo,
  handlers: UpstreamHandlers,
  log: (line: string) => void,
  attemptSignal?: AbortSignal,
): Promise<Upstream> {
  const { target: reach, name } = config;
  const [firstEra, secondEra = null] = erasToTry(config, client);
  // A server rejects a revision that it does not support, so do not log errors of the first attempt.
  let quiet = secondEra !== null;
  const report = (line: string): void => void (quiet || log(line));
  // Load the official transport only for HTTP servers, because it is large.
  const open = async (): Promise<Channel> =>
    "command" in reach
      ? startServerProcess(name, reach, log)
      : (await import("../transport/http-channel.ts")).openHttpChannel(name, reach, report);
  const peerOn = (channel: Channel): Peer => {
    const created = new Peer(channel, {
      onrequest: ({ request, signal }) =>
        request.method === "ping"
          ? Promise.resolve({ result: {} })
          : handlers.askClient({ method: request.method, params: request.params ?? {} }, signal),
      onnotification: handlers.onnotification,
      onclose(why) {
        if (quiet) return;
        closing.abort();
        handlers.onclose(why);
      },
    });
    const { onmessage } = channel;
    channel.onmessage = (message) => onmessage(removeMarks(message));
    return created;
  };
  const closing = new AbortController();
  let channel = await open();
  let peer = peerOn(channel);
  const connectIn = (era: Upstream["era"]): Promise<Upstream> =>
    era === "modern"
      ? connectModern(config, peer, client, closing.signal)
      : connectLegacy(config, peer, channel, client, closing.signal);
  const closeChannel = (): void => void channel.close();
  attemptSignal?.addEventListener("abort", closeChannel, { once: true });
  try {
    attemptSignal?.throwIfAborted();
    if (secondEra === null) return await connectIn(firstEra);
    let firstError: unknown;
    try {
      const upstream = await connectIn(firstEra);
      quiet = false;
      return upstream;
    } catch (error) {
      if (!shouldTryOtherEra(error, firstEra, config)) throw error;
      firstError = error;
    }
    attemptSignal?.throwIfAborted();
    // Reuse a running process. An HTTP transport has state, so each attempt needs a new transport.
    if (peer.closed !== null || "url" in reach) {
      await channel.close();
      channel = await open();
      peer = peerOn(channel);
      attemptSignal?.throwIfAborted();
    }
    quiet = false;
    return await connectIn(secondEra).catch((error: unknown) => {
      // Every server can reply to `initialize`, so its error is more informative than the error of `server/discover`.
      throw firstEra === "legacy" ? firstError : error;
    });
  } catch (error) {
    quiet = true;
    await channel.close();
    throw error;
  } finally {
    attemptSignal?.removeEventListener("abort", closeChannel);
  }
}

/**
 * Returns the protocol revisions to try, in order. `auto` starts with the client's revision, because a server may
 * behave differently in the other revision. For example, servers of the Python SDK do not ask the user questions in
 * revision 2026-07-28.
 */
function erasToTry({ era }: ServerConfig, client: ClientInfo): [Upstream["era"], Upstream["era"]?] {
  if (era !== "auto") return [era === MODERN_VERSION ? "modern" : "legacy"];
  return client.version === MODERN_VERSION ? ["modern", "legacy"] : ["legacy", "modern"];
}

/** Thrown if the server rejects the initialization in this revision. */
class OtherEraError extends Error {}

/** Whether the other revision should be tried after this error. */
function shouldTryOtherEra(error: unknown, era: Upstream["era"], { target: reach }: ServerConfig): boolean {
  // Older servers ignore `server/discover` or exit. Over HTTP, they respond with an error status.
  return error instanceof OtherEraError || era === "modern" || ("url" in reach && error instanceof ResponseLostError);
}

async function initializeWith(peer: Peer, method: string, params: JsonObject, name: string): Promise<Reply> {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), INITIALIZE_TIMEOUT_MS);
  try {
    return await peer.request(method, params, { signal: timeout.signal });
  } catch (error) {
    if (timeout.signal.aborted)
      throw new Error(`the server "${name}" did not reply to "${method}" within ${INITIALIZE_TIMEOUT_MS / 1000} s`, {
        cause: error,
      });
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function connectLegacy(
  config: ServerConfig,
  peer: Peer,
  channel: Channel,
  client: ClientInfo,
  whenClosed: AbortSignal,
): Promise<Upstream> {
  const requestedVersion = LEGACY_VERSIONS.includes(client.version) ? client.version : (LEGACY_VERSIONS[0] as string);
  const reply = await initializeWith(
    peer,
    "initialize",
    {
      protocolVersion: requestedVersion,
      capabilities: client.capabilities,
      clientInfo: { name: "assent-mcp-proxy", version: VERSION, ...client.info },
    },
    config.name,
  );
  if ("error" in reply)
    throw new OtherEraError(`the server "${config.name}" rejected initialize: ${reply.error.message}`);
  const version = reply.result["protocolVersion"];
  if (typeof version !== "string" || !LEGACY_VERSIONS.includes(version))
    throw new OtherEraError(
      `the server "${config.name}" speaks version ${JSON.stringify(version)}, which is not supported; supported are ${LEGACY_VERSIONS.join(", ")}`,
    );
  if ("url" in config.target) (channel as HttpChannel).setVersion(version);
  await peer.notify("notifications/initialized");
  return {
    ...serverFacts(config, reply.result),
    era: "legacy",
    version,
    whenClosed,
    get closed() {
      return peer.closed;
    },
    request: (method, params, options) => peer.request(method, params, options),
    notify: (method, params) => peer.notify(method, params),
    close: () => peer.close(),
  };
}

async function connectModern(
  config: ServerConfig,
  peer: Peer,
  client: ClientInfo,
  whenClosed: AbortSignal,
): Promise<Upstream> {
  const reply = await initializeWith(peer, "server/discover", withEnvelope(client, {}), config.name);
  const versions = "result" in reply ? reply.result["supportedVersions"] : null;
  if ("error" in reply || !Array.isArray(versions) || !versions.includes(MODERN_VERSION))
    throw new OtherEraError(
      `the server "${config.name}" does not support ${MODERN_VERSION}: ${readErrorMessage(reply) ?? "it supports other versions"}`,
    );
  const discovered = reply.result;
  const of = serverFacts(config, {
    ...discovered,
    serverInfo: readMeta(discovered)[META_KEY.server] ?? discovered["serverInfo"] ?? {},
  });
  const listening = createNotificationStream(peer, of.capabilities, (params) => withEnvelope(client, params));
  const upstream: Upstream = {
    ...of,
    era: "modern",
    version: MODERN_VERSION,
    whenClosed,
    get closed() {
      return peer.closed;
    },
    async request(method, params, options) {
      if (/^resources\/(?:un)?subscribe$/.test(method)) return listening.subscribe(method, params?.["uri"]);
      let answers: JsonObject = {};
      for (let round = 0; round < MAX_ROUNDS; round++) {
        const requestClient = { ...client, capabilities: options.capabilities ?? client.capabilities };
        const reply = await peer
          .request(method, withEnvelope(requestClient, { ...params, ...answers }, options.logLevel), options)
          .catch((error: unknown) => {
            if (round === 0) throw error;
            return rethrowAsLost(error);
          });
        if ("error" in reply || reply.result["resultType"] !== "input_required") return reply;
        const { inputRequests, requestState } = reply.result;
        const questions = readQuestions(inputRequests);
        if (questions === null)
          return errorReply(ERROR_CODE.internal, `the server "${config.name}" asked for input in an invalid form`);
        const replies = await options.ask(questions, options.signal).catch(rethrowAsLost);
        const inputResponses = collectAnswers(questions, replies);
        if ("error" in inputResponses) return inputResponses.error;
        answers = {
          inputResponses: inputResponses.answers,
          ...(requestState === undefined ? {} : { requestState }),
        };
      }
      return errorReply(
        ERROR_CODE.internal,
        `the server "${config.name}" asked for input more than ${MAX_ROUNDS} times`,
      );
    },
    // Clients of protocol revision 2026-07-28 send no notifications except cancellations, which the peer sends.
    notify: () => Promise.resolve(),
    close: () => peer.close(),
  };
  listening.listen();
  return upstream;
}

/** Reads the questions of a result or task; null if they are invalid. */
export function readQuestions(inputRequests: unknown): RequestFromServer[] | null {
  const questions: RequestFromServer[] = [];
  for (const [key, question] of Object.entries(isObject(inputRequests) ? inputRequests : {})) {
    if (!isObject(question) || typeof question["method"] !== "string") return null;
    questions.push({ key, method: question["method"], params: isObject(question["params"]) ? question["params"] : {} });
  }
  return questions;
}

/** Returns the answers by the names of their questions, or the first reply that is an error. */
export function collectAnswers(
  questions: readonly RequestFromServer[],
  replies: readonly Reply[],
): { answers: JsonObject } | { error: Reply } {
  const answers: [string, JsonObject][] = [];
  for (const [i, reply] of replies.entries()) {
    if ("error" in reply) return { error: reply };
    answers.push([questions[i]?.key as string, reply.result]);
  }
  return { answers: Object.fromEntries(answers) };
}

/** @param logLevel absent if the server must send no log messages */
function withEnvelope(client: ClientInfo, params: JsonObject, logLevel?: string): JsonObject {
  return withMeta(params, {
    ...readMeta(params),
    [META_KEY.version]: MODERN_VERSION,
    // A client need not send its name.
    ...(Object.keys(client.info).length === 0 ? {} : { [META_KEY.client]: client.info }),
    [META_KEY.capabilities]: client.capabilities,
    ...(logLevel === undefined ? {} : { [META_KEY.logLevel]: logLevel }),
  });
}

function serverFacts(config: ServerConfig, discovered: JsonObject) {
  const { capabilities, serverInfo, instructions } = discovered;
  return {
    config,
    capabilities: isObject(capabilities) ? capabilities : {},
    info: isObject(serverInfo) ? serverInfo : {},
    instructions: typeof instructions === "string" ? instructions : null,
  };
}

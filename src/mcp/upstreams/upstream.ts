/** One server as the proxy uses it: connected, greeted, and alike in both eras of the protocol. */
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
} from "../transport/message.ts";
import {
  createPeer,
  errorMessage,
  AnswerLostError,
  type Channel,
  type Peer,
  type RequestOptions,
} from "../transport/peer.ts";
import { startServerProcess } from "../transport/process-channel.ts";
import type { ServerConfig } from "../config/server-config.ts";

/** What a client says of itself, when it greets or with each request. */
export interface ClientFacts {
  version: string;
  info: JsonObject;
  capabilities: JsonObject;
}

/** What a server asks of the client. */
export interface ServerQuestion {
  method: string;
  params: JsonObject;
}

export type AskClient = (question: ServerQuestion, signal: AbortSignal) => Promise<Reply>;

export interface UpstreamHandlers {
  /** In 2025-11-25 a server may ask at any time. */
  askClient: AskClient;
  onnotification(notification: Notification): void;
  onclose(why: string): void;
}

export interface UpstreamRequestOptions extends RequestOptions {
  signal: AbortSignal;
  /** What the server asks in the course of this request, where it can be told so (since 2026-07-28). */
  ask: AskClient;
  /** Of the client for which it is asked; those of the greeting where they are missing. */
  capabilities?: JsonObject | undefined;
}

export interface Upstream {
  readonly config: ServerConfig;
  readonly era: "legacy" | "modern";
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly info: JsonObject;
  readonly instructions: string | null;
  /** Why it is gone; null while it is there. */
  readonly closed: string | null;
  /** Resolves to its answer. @throws RequestLost */
  request(method: string, params: JsonObject | undefined, options: UpstreamRequestOptions): Promise<Reply>;
  notify(method: string, params?: JsonObject): Promise<void>;
  close(): Promise<void>;
}

/** Rounds of questions in one request: as many as the official client takes part in. */
const MAX_ROUNDS = 10;
/** How long a server may take to greet. Milliseconds. */
const INITIALIZE_TIMEOUT_MS = 60_000;

/**
 * @param attemptSignal ends the attempt
 * @throws Error with a sentence
 */
export async function connectUpstream(
  config: ServerConfig,
  client: ClientFacts,
  handlers: UpstreamHandlers,
  log: (line: string) => void,
  attemptSignal?: AbortSignal,
): Promise<Upstream> {
  const { target: reach, name } = config;
  const [first, second = null] = erasToTry(config, client);
  // A server refuses the revision that it does not speak: the first attempt is expected to fail.
  let quiet = second !== null;
  const report = (line: string): void => void (quiet || log(line));
  // The official transport is not small: a process is spoken to without it.
  const open = async (): Promise<Channel> =>
    "command" in reach
      ? startServerProcess(name, reach, log)
      : (await import("../transport/http-channel.ts")).openHttpChannel(name, reach, report);
  const peerOn = (channel: Channel): Peer =>
    createPeer(channel, {
      onrequest: ({ request, signal }) =>
        request.method === "ping"
          ? Promise.resolve({ result: {} })
          : handlers.askClient({ method: request.method, params: request.params ?? {} }, signal),
      onnotification: handlers.onnotification,
      onclose: (why) => void (quiet || handlers.onclose(why)),
    });
  let channel = await open();
  let peer = peerOn(channel);
  const greetIn = (era: Upstream["era"]): Promise<Upstream> =>
    era === "modern" ? connectModern(config, peer, client) : connectLegacy(config, peer, channel, client);
  const stop = (): void => void channel.close();
  attemptSignal?.addEventListener("abort", stop, { once: true });
  try {
    attemptSignal?.throwIfAborted();
    if (second === null) return await greetIn(first);
    let refusal: unknown;
    try {
      const upstream = await greetIn(first);
      quiet = false;
      return upstream;
    } catch (error) {
      if (!shouldTryOtherEra(error, first, config)) throw error;
      refusal = error;
    }
    attemptSignal?.throwIfAborted();
    // A process is not started twice. The state of an HTTP transport belongs to one attempt.
    if (peer.closed !== null || "url" in reach) {
      await channel.close();
      channel = await open();
      peer = peerOn(channel);
      attemptSignal?.throwIfAborted();
    }
    quiet = false;
    return await greetIn(second).catch((error: unknown) => {
      // What every server answers to `initialize` says more than its answer to `server/discover`.
      throw first === "legacy" ? refusal : error;
    });
  } catch (error) {
    quiet = true;
    await channel.close();
    throw error;
  } finally {
    attemptSignal?.removeEventListener("abort", stop);
  }
}

/**
 * The revisions to try, in order. With `auto` a server is spoken to as its client speaks: servers that speak both do not
 * do the same in both. Those of the Python SDK, for instance, ask the client for nothing in 2026-07-28.
 */
function erasToTry({ era }: ServerConfig, client: ClientFacts): [Upstream["era"], Upstream["era"]?] {
  if (era !== "auto") return [era === MODERN_VERSION ? "modern" : "legacy"];
  return client.version === MODERN_VERSION ? ["modern", "legacy"] : ["legacy", "modern"];
}

/** The server does not speak this revision. */
class OtherEraError extends Error {}

/** Whether a greeting failed in a way that leaves the other revision to be tried. */
function shouldTryOtherEra(error: unknown, era: Upstream["era"], { target: reach }: ServerConfig): boolean {
  // Older servers do not answer `server/discover` at all, or end. Over HTTP a refusal is a status.
  return error instanceof OtherEraError || era === "modern" || ("url" in reach && error instanceof AnswerLostError);
}

async function initializeWith(peer: Peer, method: string, params: JsonObject, name: string): Promise<Reply> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), INITIALIZE_TIMEOUT_MS);
  try {
    return await peer.request(method, params, { signal: late.signal });
  } catch (error) {
    if (late.signal.aborted)
      throw new Error(`the server "${name}" did not answer "${method}" in ${INITIALIZE_TIMEOUT_MS / 1000} s`, {
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
  client: ClientFacts,
): Promise<Upstream> {
  const wanted = LEGACY_VERSIONS.includes(client.version) ? client.version : (LEGACY_VERSIONS[0] as string);
  const reply = await initializeWith(
    peer,
    "initialize",
    { protocolVersion: wanted, capabilities: client.capabilities, clientInfo: client.info },
    config.name,
  );
  if ("error" in reply) throw new OtherEraError(`the server "${config.name}" refused to begin: ${reply.error.message}`);
  const version = reply.result["protocolVersion"];
  if (typeof version !== "string" || !LEGACY_VERSIONS.includes(version))
    throw new OtherEraError(
      `the server "${config.name}" speaks version ${JSON.stringify(version)}, which is none of ${LEGACY_VERSIONS.join(", ")}`,
    );
  if ("url" in config.target) (channel as HttpChannel).setVersion(version);
  await peer.notify("notifications/initialized");
  return {
    ...serverFacts(config, reply.result),
    era: "legacy",
    version,
    get closed() {
      return peer.closed;
    },
    request: (method, params, options) => peer.request(method, params, options),
    notify: (method, params) => peer.notify(method, params),
    close: () => peer.close(),
  };
}

async function connectModern(config: ServerConfig, peer: Peer, client: ClientFacts): Promise<Upstream> {
  const reply = await initializeWith(peer, "server/discover", withEnvelope(client, {}), config.name);
  const versions = "result" in reply ? reply.result["supportedVersions"] : null;
  if ("error" in reply || !Array.isArray(versions) || !versions.includes(MODERN_VERSION))
    throw new OtherEraError(
      `the server "${config.name}" does not speak ${MODERN_VERSION}: ${errorMessage(reply) ?? "it names other versions"}`,
    );
  const greeting = reply.result;
  const of = serverFacts(config, {
    ...greeting,
    serverInfo: readMeta(greeting)[META_KEY.server] ?? greeting["serverInfo"] ?? {},
  });
  const listening = createNotificationStream(peer, of.capabilities, (params) => withEnvelope(client, params));
  const upstream: Upstream = {
    ...of,
    era: "modern",
    version: MODERN_VERSION,
    get closed() {
      return peer.closed;
    },
    async request(method, params, options) {
      if (/^resources\/(?:un)?subscribe$/.test(method)) return listening.subscribe(method, params?.["uri"]);
      let answers: JsonObject = {};
      for (let round = 0; round < MAX_ROUNDS; round++) {
        const subject = { ...client, capabilities: options.capabilities ?? client.capabilities };
        const reply = await peer.request(method, withEnvelope(subject, { ...params, ...answers }), options);
        if ("error" in reply || reply.result["resultType"] !== "input_required") return reply;
        const { inputRequests, requestState } = reply.result;
        const inputResponses: JsonObject = {};
        for (const [key, question] of Object.entries(isObject(inputRequests) ? inputRequests : {})) {
          if (!isObject(question) || typeof question["method"] !== "string")
            return errorReply(
              ERROR_CODE.internal,
              `the server "${config.name}" asks for input in a form that cannot be read`,
            );
          const answer = await options.ask(
            { method: question["method"], params: isObject(question["params"]) ? question["params"] : {} },
            options.signal,
          );
          if ("error" in answer) return answer;
          inputResponses[key] = answer.result;
        }
        answers = { inputResponses, ...(requestState === undefined ? {} : { requestState }) };
      }
      return errorReply(
        ERROR_CODE.internal,
        `the server "${config.name}" asked for input more than ${MAX_ROUNDS} times`,
      );
    },
    // There are no notifications to a server in this era but cancellations, which the peer sends.
    notify: () => Promise.resolve(),
    close: () => peer.close(),
  };
  listening.listen();
  return upstream;
}

function withEnvelope(client: ClientFacts, params: JsonObject): JsonObject {
  return withMeta(params, {
    ...readMeta(params),
    [META_KEY.version]: MODERN_VERSION,
    [META_KEY.client]: client.info,
    [META_KEY.capabilities]: client.capabilities,
  });
}

function serverFacts(config: ServerConfig, greeting: JsonObject) {
  const { capabilities, serverInfo, instructions } = greeting;
  return {
    config,
    capabilities: isObject(capabilities) ? capabilities : {},
    info: isObject(serverInfo) ? serverInfo : {},
    instructions: typeof instructions === "string" ? instructions : null,
  };
}

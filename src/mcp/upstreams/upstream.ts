/** One server as the proxy uses it: connected, greeted, and alike in both eras of the protocol. */
import type { HttpChannel } from "../transport/http-channel.ts";
import { createListening } from "./notification-stream.ts";
import {
  CODE,
  LEGACY,
  META,
  MODERN,
  failure,
  isObject,
  metaOf,
  withMeta,
  type JsonObject,
  type Notification,
  type Reply,
} from "../transport/message.ts";
import {
  createPeer,
  messageOfFailure,
  RequestLost,
  type Channel,
  type Peer,
  type RequestOptions,
} from "../transport/peer.ts";
import { startProcess } from "../transport/process-channel.ts";
import type { ServerConfig } from "../config/server-config.ts";

/** What a client says of itself, when it greets or with each request. */
export interface ClientFacts {
  version: string;
  info: JsonObject;
  capabilities: JsonObject;
}

/** What a server asks of the client. */
export interface Question {
  method: string;
  params: JsonObject;
}

export type Ask = (question: Question, signal: AbortSignal) => Promise<Reply>;

export interface UpstreamHandlers {
  /** In 2025-11-25 a server may ask at any time. */
  ask: Ask;
  onnotification(notification: Notification): void;
  onclose(why: string): void;
}

export interface CallOptions extends RequestOptions {
  signal: AbortSignal;
  /** What the server asks in the course of this request, where it can be told so (since 2026-07-28). */
  ask: Ask;
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
  request(method: string, params: JsonObject | undefined, options: CallOptions): Promise<Reply>;
  notify(method: string, params?: JsonObject): Promise<void>;
  close(): Promise<void>;
}

/** Rounds of questions in one request: as many as the official client takes part in. */
const MOST_ROUNDS = 10;
/** How long a server may take to greet. Milliseconds. */
const GREETING = 60_000;

/**
 * @param given ends the attempt
 * @throws Error with a sentence
 */
export async function connectUpstream(
  config: ServerConfig,
  client: ClientFacts,
  handlers: UpstreamHandlers,
  log: (line: string) => void,
  given?: AbortSignal,
): Promise<Upstream> {
  const { reach, name } = config;
  const [first, second = null] = erasFor(config, client);
  // A server refuses the revision that it does not speak: the first attempt is expected to fail.
  let quiet = second !== null;
  const report = (line: string): void => void (quiet || log(line));
  // The official transport is not small: a process is spoken to without it.
  const open = async (): Promise<Channel> =>
    "command" in reach
      ? startProcess(name, reach, log)
      : (await import("../transport/http-channel.ts")).openAddress(name, reach, report);
  const peerOn = (channel: Channel): Peer =>
    createPeer(channel, {
      onrequest: ({ request, signal }) =>
        request.method === "ping"
          ? Promise.resolve({ result: {} })
          : handlers.ask({ method: request.method, params: request.params ?? {} }, signal),
      onnotification: handlers.onnotification,
      onclose: (why) => void (quiet || handlers.onclose(why)),
    });
  let channel = await open();
  let peer = peerOn(channel);
  const greetIn = (era: Upstream["era"]): Promise<Upstream> =>
    era === "modern" ? modern(config, peer, client) : legacy(config, peer, channel, client);
  const stop = (): void => void channel.close();
  given?.addEventListener("abort", stop, { once: true });
  try {
    given?.throwIfAborted();
    if (second === null) return await greetIn(first);
    let refusal: unknown;
    try {
      const upstream = await greetIn(first);
      quiet = false;
      return upstream;
    } catch (error) {
      if (!isOfOtherEra(error, first, config)) throw error;
      refusal = error;
    }
    given?.throwIfAborted();
    // A process is not started twice. The state of an HTTP transport belongs to one attempt.
    if (peer.closed !== null || "url" in reach) {
      await channel.close();
      channel = await open();
      peer = peerOn(channel);
      given?.throwIfAborted();
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
    given?.removeEventListener("abort", stop);
  }
}

/**
 * The revisions to try, in order. With `auto` a server is spoken to as its client speaks: servers that speak both do not
 * do the same in both. Those of the Python SDK, for instance, ask the client for nothing in 2026-07-28.
 */
function erasFor({ era }: ServerConfig, client: ClientFacts): [Upstream["era"], Upstream["era"]?] {
  if (era !== "auto") return [era === MODERN ? "modern" : "legacy"];
  return client.version === MODERN ? ["modern", "legacy"] : ["legacy", "modern"];
}

/** The server does not speak this revision. */
class OtherEra extends Error {}

/** Whether a greeting failed in a way that leaves the other revision to be tried. */
function isOfOtherEra(error: unknown, era: Upstream["era"], { reach }: ServerConfig): boolean {
  // Older servers do not answer `server/discover` at all, or end. Over HTTP a refusal is a status.
  return error instanceof OtherEra || era === "modern" || ("url" in reach && error instanceof RequestLost);
}

async function greet(peer: Peer, method: string, params: JsonObject, name: string): Promise<Reply> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), GREETING);
  try {
    return await peer.request(method, params, { signal: late.signal });
  } catch (error) {
    if (late.signal.aborted)
      throw new Error(`the server "${name}" did not answer "${method}" in ${GREETING / 1000} s`, { cause: error });
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function legacy(config: ServerConfig, peer: Peer, channel: Channel, client: ClientFacts): Promise<Upstream> {
  const wanted = LEGACY.includes(client.version) ? client.version : (LEGACY[0] as string);
  const reply = await greet(
    peer,
    "initialize",
    { protocolVersion: wanted, capabilities: client.capabilities, clientInfo: client.info },
    config.name,
  );
  if ("error" in reply) throw new OtherEra(`the server "${config.name}" refused to begin: ${reply.error.message}`);
  const version = reply.result["protocolVersion"];
  if (typeof version !== "string" || !LEGACY.includes(version))
    throw new OtherEra(
      `the server "${config.name}" speaks version ${JSON.stringify(version)}, which is none of ${LEGACY.join(", ")}`,
    );
  if ("url" in config.reach) (channel as HttpChannel).setVersion(version);
  await peer.notify("notifications/initialized");
  return {
    ...facts(config, reply.result),
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

async function modern(config: ServerConfig, peer: Peer, client: ClientFacts): Promise<Upstream> {
  const reply = await greet(peer, "server/discover", envelope(client, {}), config.name);
  const versions = "result" in reply ? reply.result["supportedVersions"] : null;
  if ("error" in reply || !Array.isArray(versions) || !versions.includes(MODERN))
    throw new OtherEra(
      `the server "${config.name}" does not speak ${MODERN}: ${messageOfFailure(reply) ?? "it names other versions"}`,
    );
  const greeting = reply.result;
  const of = facts(config, { ...greeting, serverInfo: metaOf(greeting)[META.server] ?? greeting["serverInfo"] ?? {} });
  const listening = createListening(peer, of.capabilities, (params) => envelope(client, params));
  const upstream: Upstream = {
    ...of,
    era: "modern",
    version: MODERN,
    get closed() {
      return peer.closed;
    },
    async request(method, params, options) {
      if (/^resources\/(?:un)?subscribe$/.test(method)) return listening.subscribe(method, params?.["uri"]);
      let answers: JsonObject = {};
      for (let round = 0; round < MOST_ROUNDS; round++) {
        const subject = { ...client, capabilities: options.capabilities ?? client.capabilities };
        const reply = await peer.request(method, envelope(subject, { ...params, ...answers }), options);
        if ("error" in reply || reply.result["resultType"] !== "input_required") return reply;
        const { inputRequests, requestState } = reply.result;
        const inputResponses: JsonObject = {};
        for (const [key, question] of Object.entries(isObject(inputRequests) ? inputRequests : {})) {
          if (!isObject(question) || typeof question["method"] !== "string")
            return failure(CODE.internal, `the server "${config.name}" asks for input in a form that cannot be read`);
          const answer = await options.ask(
            { method: question["method"], params: isObject(question["params"]) ? question["params"] : {} },
            options.signal,
          );
          if ("error" in answer) return answer;
          inputResponses[key] = answer.result;
        }
        answers = { inputResponses, ...(requestState === undefined ? {} : { requestState }) };
      }
      return failure(CODE.internal, `the server "${config.name}" asked for input more than ${MOST_ROUNDS} times`);
    },
    // There are no notifications to a server in this era but cancellations, which the peer sends.
    notify: () => Promise.resolve(),
    close: () => peer.close(),
  };
  listening.listen();
  return upstream;
}

function envelope(client: ClientFacts, params: JsonObject): JsonObject {
  return withMeta(params, {
    ...metaOf(params),
    [META.version]: MODERN,
    [META.client]: client.info,
    [META.capabilities]: client.capabilities,
  });
}

function facts(config: ServerConfig, greeting: JsonObject) {
  const { capabilities, serverInfo, instructions } = greeting;
  return {
    config,
    capabilities: isObject(capabilities) ? capabilities : {},
    info: isObject(serverInfo) ? serverInfo : {},
    instructions: typeof instructions === "string" ? instructions : null,
  };
}

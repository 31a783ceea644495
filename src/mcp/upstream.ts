/** One server as the proxy uses it: connected, greeted, and alike in both eras of the protocol. */
import type { HttpChannel } from "./http-channel.ts";
import { createListening } from "./listening.ts";
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
} from "./message.ts";
import { createPeer, messageOfFailure, type Channel, type Peer, type RequestOptions } from "./peer.ts";
import { startProcess } from "./process-channel.ts";
import type { ServerConfig } from "./server-config.ts";

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
  // A server of before 2026-07-28 answers the question for its version with an error.
  const report = (line: string): void => void (quiet || log(line));
  // The official transport is not small: a process is spoken to without it.
  const open = async (): Promise<Channel> =>
    "command" in reach
      ? startProcess(name, reach, log)
      : (await import("./http-channel.ts")).openAddress(name, reach, report);
  const peerOn = (channel: Channel): Peer =>
    createPeer(channel, {
      onrequest: ({ request, signal }) =>
        request.method === "ping"
          ? Promise.resolve({ result: {} })
          : handlers.ask({ method: request.method, params: request.params ?? {} }, signal),
      onnotification: handlers.onnotification,
      onclose: handlers.onclose,
    });
  const probes = config.era === "2026-07-28" || (config.era === "auto" && "url" in reach);
  let quiet = probes;
  let channel = await open();
  const stop = (): void => void channel.close();
  given?.addEventListener("abort", stop, { once: true });
  try {
    given?.throwIfAborted();
    if (probes) {
      const probe = createPeer(channel, { ...silent, onclose: (why) => void (quiet || handlers.onclose(why)) });
      const greeting = await greet(probe, "server/discover", envelope(client, {}), name).catch((error: unknown) =>
        failure(CODE.internal, error instanceof Error ? error.message : String(error)),
      );
      const versions = "result" in greeting ? greeting.result["supportedVersions"] : null;
      if (Array.isArray(versions) && versions.includes(MODERN)) {
        quiet = false;
        return modern(config, peerOn(channel), (greeting as { result: JsonObject }).result, client);
      }
      if (config.era === "2026-07-28")
        throw new Error(
          `the server "${name}" does not speak ${MODERN}: ${messageOfFailure(greeting) ?? "it names other versions"}`,
        );
      await channel.close();
      quiet = false;
      channel = await open();
      given?.throwIfAborted();
    }
    return await legacy(config, peerOn(channel), channel, client);
  } catch (error) {
    await channel.close();
    throw error;
  } finally {
    given?.removeEventListener("abort", stop);
  }
}

const silent = { onrequest: () => Promise.resolve(failure(CODE.methodNotFound, "not now")), onnotification: () => {} };

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
  if ("error" in reply) throw new Error(`the server "${config.name}" refused to begin: ${reply.error.message}`);
  const version = reply.result["protocolVersion"];
  if (typeof version !== "string" || !LEGACY.includes(version))
    throw new Error(
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

function modern(config: ServerConfig, peer: Peer, greeting: JsonObject, client: ClientFacts): Upstream {
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

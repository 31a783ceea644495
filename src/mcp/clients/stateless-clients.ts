/**
 * Clients of 2026-07-28: no handshake, everything in each request. Such a client is asked by an answer that wants input;
 * it sends its request again with what was asked. A call that the proxy is in the middle of waits for that in memory.
 */
import { createHash, randomUUID } from "node:crypto";
import { canonicalText } from "../../domain/canonical.ts";
import type { Caller } from "./caller.ts";
import { LIST_TIMEOUT_MS, settlesWithin } from "../upstreams/slow-upstreams.ts";
import { createSubscriptions } from "./subscriptions.ts";
import {
  ERROR_CODE,
  META_KEY,
  MODERN_VERSION,
  errorReply,
  isObject,
  readMeta,
  type JsonObject,
  type Reply,
  type Request,
} from "../transport/message.ts";
import type { IncomingRequest } from "../transport/peer.ts";
import { createMultiRoundRequest, type MultiRoundRequest, type SendNotification } from "./multi-round-request.ts";
import { createClientSession, type ClientSession, type SessionOptions } from "../session/client-session.ts";
import type { Tool } from "../tools/tool-catalog.ts";
import type { ClientFacts } from "../upstreams/upstream.ts";

/** How long a client may take to come back with what it was asked. Milliseconds. */
const ROUND_TIMEOUT_MS = 10 * 60_000;

export type StatelessEndpoint = ReturnType<typeof createStatelessEndpoint>;

/** Results that a client may keep; ours hold for one moment and one client. */
const CACHEABLE_METHODS = new Set([
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "server/discover",
]);

export function createStatelessEndpoint(options: SessionOptions, ended: (why: string) => void) {
  const subscriptions = createSubscriptions();
  const rounds = new Map<string, MultiRoundRequest>();
  let opening: Promise<ClientSession> | null = null;

  /** All clients of this edge share its servers. They are connected with what the first one says of itself. */
  function session(facts: ClientFacts): Promise<ClientSession> {
    if (opening !== null) return opening;
    const shared = createClientSession(options, {
      notify: (method, params) => subscriptions.publish(method, params ?? {}),
      askClient: null,
      ended(why) {
        opening = null;
        void shared.close();
        ended(why);
      },
    });
    const started = shared.open(facts).then(() => shared);
    opening = started;
    started.catch(() => {
      opening = null;
      void shared.close();
    });
    return started;
  }

  async function answer({ request, signal }: IncomingRequest, tell: SendNotification): Promise<Reply> {
    const meta = readMeta(request.params);
    const [version, info, capabilities] = [meta[META_KEY.version], meta[META_KEY.client], meta[META_KEY.capabilities]];
    if (version !== MODERN_VERSION)
      return errorReply(ERROR_CODE.unsupportedVersion, `version ${JSON.stringify(version)} is not served`, {
        supported: [MODERN_VERSION],
        requested: version ?? null,
      });
    if (!isObject(info) || !isObject(capabilities))
      return errorReply(ERROR_CODE.invalidParams, `_meta has ${META_KEY.client} and ${META_KEY.capabilities}`);
    let of: ClientSession;
    try {
      of = await session({ version: MODERN_VERSION, info, capabilities });
    } catch (error) {
      return errorReply(
        ERROR_CODE.internal,
        `the proxy cannot begin: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    const greeting = await of.serverInfo();
    const stamp = (reply: Reply): Reply => addResultMetadata(reply, request.method, greeting.info);
    if (request.method === "server/discover")
      return stamp({
        result: {
          supportedVersions: [MODERN_VERSION],
          capabilities: greeting.capabilities,
          ...(greeting.instructions === undefined ? {} : { instructions: greeting.instructions }),
        },
      });
    if (request.method === "subscriptions/listen") {
      const uris = subscriptions.requestedUris(request, greeting.capabilities);
      const tellServers = async (verb: string, about: string[]): Promise<void> => {
        const caller = silentCaller(AbortSignal.timeout(LIST_TIMEOUT_MS), info, capabilities);
        const replies = about.map((uri) =>
          of.handle({ ...request, method: `resources/${verb}`, params: { uri } }, caller).catch(() => undefined),
        );
        await settlesWithin(Promise.all(replies));
      };
      await tellServers("subscribe", uris);
      const reply = await subscriptions.serve({ request, signal }, greeting.capabilities, tell);
      const left = uris.filter((uri) => !subscriptions.hasSubscriber(uri));
      void tellServers("unsubscribe", left);
      return reply;
    }
    return stamp(await exchange(of, request, signal, tell, info, capabilities));
  }

  /** A request, or the next round of one. */
  async function exchange(
    of: ClientSession,
    request: Request,
    signal: AbortSignal,
    tell: SendNotification,
    info: JsonObject,
    capabilities: JsonObject,
  ): Promise<Reply> {
    const { requestState, inputResponses, ...rest } = request.params ?? {};
    const wish = requestDigest(request.method, rest);
    let round: MultiRoundRequest;
    if (requestState === undefined) round = begin(of, { ...request, params: rest }, wish, info, capabilities);
    else {
      const kept = typeof requestState === "string" ? rounds.get(requestState) : undefined;
      if (kept === undefined || kept.digest !== wish)
        return errorReply(
          ERROR_CODE.invalidParams,
          "requestState is not of this request, or no longer held; what became of the request is in the record of its action",
        );
      rounds.delete(requestState as string);
      round = kept;
    }
    return round.attach(
      signal,
      tell,
      readMeta(request.params)["progressToken"],
      isObject(inputResponses) ? inputResponses : {},
    );
  }

  function begin(
    of: ClientSession,
    request: Request,
    wish: string,
    info: JsonObject,
    capabilities: JsonObject,
  ): MultiRoundRequest {
    return createMultiRoundRequest(
      wish,
      { info, capabilities },
      (caller) => of.handle(request, caller),
      (round) => {
        const token = randomUUID();
        rounds.set(token, round);
        setTimeout(() => {
          if (rounds.delete(token)) round.abandon();
        }, ROUND_TIMEOUT_MS).unref();
        return token;
      },
    );
  }

  return {
    answer,
    /** The tool that a call is for; undefined when there is none that may be called. */
    async findTool({ params }: Request): Promise<Tool | undefined> {
      const { [META_KEY.client]: info, [META_KEY.capabilities]: capabilities } = readMeta(params);
      const name = params?.["name"];
      if (typeof name !== "string" || !isObject(info) || !isObject(capabilities)) return undefined;
      const tool = await session({ version: MODERN_VERSION, info, capabilities }).then((of) => of.tool(name));
      return tool?.withheld === null ? tool : undefined;
    },
    async close(): Promise<void> {
      for (const round of rounds.values()) round.abandon();
      rounds.clear();
      subscriptions.close();
      await (await opening?.catch(() => null))?.close();
    },
  };
}

/** What makes a request the same when it comes again: everything but what differs by the nature of coming again. */
function requestDigest(method: string, { _meta, ...params }: JsonObject): string {
  return createHash("sha256").update(canonicalText({ method, params })).digest("hex");
}

function addResultMetadata(reply: Reply, method: string, server: JsonObject): Reply {
  if ("error" in reply) return reply;
  const { result } = reply;
  return {
    result: {
      resultType: "complete",
      ...(CACHEABLE_METHODS.has(method) ? { ttlMs: 0, cacheScope: "private" } : {}),
      ...result,
      _meta: { ...readMeta(result), [META_KEY.server]: server },
    },
  };
}

function silentCaller(signal: AbortSignal, info: JsonObject, capabilities: JsonObject): Caller {
  return {
    signal,
    info,
    capabilities,
    wantsProgress: false,
    whenAttached: () => Promise.resolve(),
    sendProgress() {},
    notify() {},
    askClient: () => Promise.resolve(errorReply(ERROR_CODE.missingCapability, "nobody can be asked here")),
  };
}

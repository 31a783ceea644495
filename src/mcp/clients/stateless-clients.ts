/**
 * Clients of 2026-07-28: no handshake, everything in each request. Such a client is asked by an answer that wants input;
 * it sends its request again with what was asked. A call that the proxy is in the middle of waits for that in memory.
 */
import { createHash, randomUUID } from "node:crypto";
import { canonicalText } from "../../domain/canonical.ts";
import type { Caller } from "./caller.ts";
import { PATIENCE, settlesPromptly } from "../upstreams/slow-upstreams.ts";
import { createSubscriptions } from "./subscriptions.ts";
import {
  CODE,
  META,
  MODERN,
  failure,
  isObject,
  metaOf,
  type JsonObject,
  type Reply,
  type Request,
} from "../transport/message.ts";
import type { Incoming } from "../transport/peer.ts";
import { createRound, type Round, type Tell } from "./multi-round-request.ts";
import { createSession, type Session, type SessionOptions } from "../session/client-session.ts";
import type { Tool } from "../tools/tool-catalog.ts";
import type { ClientFacts } from "../upstreams/upstream.ts";

/** How long a client may take to come back with what it was asked. Milliseconds. */
const ROUND = 10 * 60_000;

export type ModernEdge = ReturnType<typeof createModernEdge>;

/** Results that a client may keep; ours hold for one moment and one client. */
const CACHEABLE = new Set([
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "server/discover",
]);

export function createModernEdge(options: SessionOptions, ended: (why: string) => void) {
  const subscriptions = createSubscriptions();
  const rounds = new Map<string, Round>();
  let opening: Promise<Session> | null = null;

  /** All clients of this edge share its servers. They are connected with what the first one says of itself. */
  function session(facts: ClientFacts): Promise<Session> {
    if (opening !== null) return opening;
    const shared = createSession(options, {
      notify: (method, params) => subscriptions.publish(method, params ?? {}),
      ask: null,
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

  async function answer({ request, signal }: Incoming, tell: Tell): Promise<Reply> {
    const meta = metaOf(request.params);
    const [version, info, capabilities] = [meta[META.version], meta[META.client], meta[META.capabilities]];
    if (version !== MODERN)
      return failure(CODE.unsupportedVersion, `version ${JSON.stringify(version)} is not served`, {
        supported: [MODERN],
        requested: version ?? null,
      });
    if (!isObject(info) || !isObject(capabilities))
      return failure(CODE.invalidParams, `_meta has ${META.client} and ${META.capabilities}`);
    let of: Session;
    try {
      of = await session({ version: MODERN, info, capabilities });
    } catch (error) {
      return failure(
        CODE.internal,
        `the proxy cannot begin: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    const greeting = await of.greeting();
    const stamp = (reply: Reply): Reply => stamped(reply, request.method, greeting.info);
    if (request.method === "server/discover")
      return stamp({
        result: {
          supportedVersions: [MODERN],
          capabilities: greeting.capabilities,
          ...(greeting.instructions === undefined ? {} : { instructions: greeting.instructions }),
        },
      });
    if (request.method === "subscriptions/listen") {
      const uris = subscriptions.wants(request, greeting.capabilities);
      const tellServers = async (verb: string, about: string[]): Promise<void> => {
        const caller = quietCaller(AbortSignal.timeout(PATIENCE), info, capabilities);
        const replies = about.map((uri) =>
          of.handle({ ...request, method: `resources/${verb}`, params: { uri } }, caller).catch(() => undefined),
        );
        await settlesPromptly(Promise.all(replies));
      };
      await tellServers("subscribe", uris);
      const reply = await subscriptions.serve({ request, signal }, greeting.capabilities, tell);
      const left = uris.filter((uri) => !subscriptions.isWanted(uri));
      void tellServers("unsubscribe", left);
      return reply;
    }
    return stamp(await exchange(of, request, signal, tell, info, capabilities));
  }

  /** A request, or the next round of one. */
  async function exchange(
    of: Session,
    request: Request,
    signal: AbortSignal,
    tell: Tell,
    info: JsonObject,
    capabilities: JsonObject,
  ): Promise<Reply> {
    const { requestState, inputResponses, ...rest } = request.params ?? {};
    const wish = digestOf(request.method, rest);
    let round: Round;
    if (requestState === undefined) round = begin(of, { ...request, params: rest }, wish, info, capabilities);
    else {
      const kept = typeof requestState === "string" ? rounds.get(requestState) : undefined;
      if (kept === undefined || kept.wish !== wish)
        return failure(
          CODE.invalidParams,
          "requestState is not of this request, or no longer held; what became of the request is in the record of its action",
        );
      rounds.delete(requestState as string);
      round = kept;
    }
    return round.attach(
      signal,
      tell,
      metaOf(request.params)["progressToken"],
      isObject(inputResponses) ? inputResponses : {},
    );
  }

  function begin(of: Session, request: Request, wish: string, info: JsonObject, capabilities: JsonObject): Round {
    return createRound(
      wish,
      { info, capabilities },
      (caller) => of.handle(request, caller),
      (round) => {
        const token = randomUUID();
        rounds.set(token, round);
        setTimeout(() => {
          if (rounds.delete(token)) round.abandon();
        }, ROUND).unref();
        return token;
      },
    );
  }

  return {
    answer,
    /** The tool that a call is for; undefined when there is none that may be called. */
    async toolOf({ params }: Request): Promise<Tool | undefined> {
      const { [META.client]: info, [META.capabilities]: capabilities } = metaOf(params);
      const name = params?.["name"];
      if (typeof name !== "string" || !isObject(info) || !isObject(capabilities)) return undefined;
      const tool = await session({ version: MODERN, info, capabilities }).then((of) => of.tool(name));
      return tool?.held === null ? tool : undefined;
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
function digestOf(method: string, { _meta, ...params }: JsonObject): string {
  return createHash("sha256").update(canonicalText({ method, params })).digest("hex");
}

function stamped(reply: Reply, method: string, server: JsonObject): Reply {
  if ("error" in reply) return reply;
  const { result } = reply;
  return {
    result: {
      resultType: "complete",
      ...(CACHEABLE.has(method) ? { ttlMs: 0, cacheScope: "private" } : {}),
      ...result,
      _meta: { ...metaOf(result), [META.server]: server },
    },
  };
}

function quietCaller(signal: AbortSignal, info: JsonObject, capabilities: JsonObject): Caller {
  return {
    signal,
    info,
    capabilities,
    wantsProgress: false,
    attached: () => Promise.resolve(),
    progress() {},
    notify() {},
    ask: () => Promise.resolve(failure(CODE.missingCapability, "nobody can be asked here")),
  };
}

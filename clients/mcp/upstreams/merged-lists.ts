/** Merges the lists of several servers: fetches all pages, and gives each item a unique name. */
import { ERROR_CODE, errorReply, isObject, type JsonObject, type Reply } from "../transport/rpc-message.ts";
import type { Caller } from "../clients/caller.ts";
import { ResponseLostError } from "../transport/peer.ts";
import type { AnswerQuestions, Upstream } from "./upstream.ts";

/** An item of one server's list. */
export interface ListedItem {
  upstream: Upstream;
  item: JsonObject;
}

export type NamedItem<T extends ListedItem> = T & {
  /** Name that the server gave the item. */
  name: string;
  /** Name under which clients see the item. */
  exposedName: string;
};

/** Maximum number of pages of one list, in case a server always returns another cursor. */
const MAX_PAGES = 200;

/**
 * Signal and capabilities for a list request. The default is the capabilities that the client sent at the
 * initialization.
 */
export type ListRequester = Pick<Caller, "signal"> & { capabilities?: Caller["capabilities"] | undefined };

/**
 * Fetches a list from several servers in parallel. A server that fails is logged and omitted, unless it is the only
 * server.
 */
export async function listFromAllServers<T>(
  upstreams: readonly Upstream[],
  list: (upstream: Upstream) => Promise<T[]>,
  log: (line: string) => void,
): Promise<T[]> {
  const [only] = upstreams;
  if (upstreams.length === 1 && only !== undefined) return list(only);
  const each = await Promise.all(
    upstreams.map(async (upstream) => {
      try {
        return await list(upstream);
      } catch (error) {
        if (!(error instanceof ListError || error instanceof ResponseLostError)) throw error;
        log(`${error.message}; its items are missing for now`);
        return [];
      }
    }),
  );
  return each.flat();
}

/**
 * Fetches all pages of a list. If a server repeats a cursor or does not stop, returns the items that it has sent. Omits
 * repeated items and items that are not objects.
 * @throws ListError if the server replies with an error
 */
export async function listAllPages(
  upstream: Upstream,
  method: string,
  key: string,
  caller: ListRequester,
  log: (line: string) => void,
): Promise<JsonObject[]> {
  const items = new Map<string, JsonObject>();
  const cursors = new Set<string | undefined>();
  const { name } = upstream.config;
  let cursor: string | undefined;
  while (!cursors.has(cursor) && cursors.size < MAX_PAGES) {
    cursors.add(cursor);
    const reply = await upstream.request(method, cursor === undefined ? {} : { cursor }, {
      signal: caller.signal,
      capabilities: caller.capabilities,
      ask: refuseQuestions("a list request asks no questions"),
    });
    if ("error" in reply)
      throw new ListError(reply, `the server "${name}" did not return its list: ${reply.error.message}`);
    const list = reply.result[key];
    if (!Array.isArray(list))
      throw new ListError(null, `the server "${name}" replied to "${method}" without a list of ${key}`);
    for (const item of list) if (isObject(item)) items.set(JSON.stringify(item), item);
    const { nextCursor } = reply.result;
    if (typeof nextCursor !== "string") return [...items.values()];
    cursor = nextCursor;
  }
  log(
    cursors.has(cursor)
      ? `the server "${name}" repeated the cursor ${JSON.stringify(cursor)} of "${method}"; the proxy uses the items so far`
      : `the list of the server "${name}" has more than ${MAX_PAGES} pages; the proxy uses their items`,
  );
  return [...items.values()];
}

/** Answers every question of a server with an error, for requests that must not ask any. */
export const refuseQuestions =
  (reason: string): AnswerQuestions =>
  (questions) =>
    Promise.resolve(questions.map(() => errorReply(ERROR_CODE.methodNotFound, reason)));

export class ListError extends Error {
  readonly reply: Reply;
  constructor(reply: Reply | null, message: string) {
    super(message);
    this.reply = errorReply(reply !== null && "error" in reply ? reply.error.code : ERROR_CODE.internal, message);
  }
}

/** Maps a name that clients see to its item, for the lifetime of the session. */
export type NameAssignments = Map<string, { server: string; name: string }>;

/**
 * Gives each item a unique name. This is the name that its server gave it or, if several servers use that name, the
 * name with the server's name as a prefix. A name is never reassigned, even if its server has disconnected, because a
 * client with an older list would then call the wrong item. Omits items without a name, and items whose name is still
 * ambiguous.
 */
export function assignUniqueNames<T extends ListedItem>(
  items: readonly T[],
  assignments: NameAssignments,
  log: (line: string) => void,
): NamedItem<T>[] {
  const named = items.flatMap((each) => {
    const { name } = each.item;
    return typeof name === "string" && name !== "" ? [{ ...each, name }] : [];
  });
  const serversByName = new Map<string, Set<string>>();
  for (const { name, upstream } of named)
    serversByName.set(name, (serversByName.get(name) ?? new Set()).add(upstream.config.name));
  const isAssignedTo = (exposedName: string, { upstream, name }: NamedItem<T> | (T & { name: string })): boolean => {
    const assignment = assignments.get(exposedName);
    return assignment?.server === upstream.config.name && assignment.name === name;
  };
  const candidates = named.map((each) => {
    const { name } = each;
    const prefixedName = `${each.upstream.config.name}-${name}`;
    const canUseOwnName =
      serversByName.get(name)?.size === 1 &&
      !isAssignedTo(prefixedName, each) &&
      (!assignments.has(name) || isAssignedTo(name, each));
    return { ...each, exposedName: canUseOwnName ? name : prefixedName };
  });
  const uses = new Map<string, number>();
  for (const { exposedName } of candidates) uses.set(exposedName, (uses.get(exposedName) ?? 0) + 1);
  return candidates.flatMap((each) => {
    const { exposedName, name, upstream } = each;
    if (uses.get(exposedName) === 1 && (!assignments.has(exposedName) || isAssignedTo(exposedName, each))) {
      assignments.set(exposedName, { server: upstream.config.name, name });
      return [each];
    }
    log(`"${each.exposedName}" of the server "${each.upstream.config.name}" is left out because its name is ambiguous`);
    return [];
  });
}

/** Returns the item in the form that clients see, with its unique name. */
export const toClientItem = ({ item, exposedName }: NamedItem<ListedItem>): JsonObject => ({
  ...item,
  name: exposedName,
});

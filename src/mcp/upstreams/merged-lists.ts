/** Lists of several servers as one: every page of each, and names that one server has alone. */
import { ERROR_CODE, errorReply, isObject, type JsonObject, type Reply } from "../transport/message.ts";
import type { Caller } from "../clients/caller.ts";
import { AnswerLostError } from "../transport/peer.ts";
import type { Upstream } from "./upstream.ts";

/** An item of one server's list. */
export interface ListedItem {
  upstream: Upstream;
  item: JsonObject;
}

export type NamedItem<T extends ListedItem> = T & {
  /** As the server calls it. */
  name: string;
  /** As the client sees it. */
  exposedName: string;
};

/** Pages of one list: more come from a server that turns in a circle. */
const MAX_PAGES = 200;

/** What a server is asked with; without capabilities, those that it was greeted with. */
export type ListRequester = Pick<Caller, "signal"> & { capabilities?: Caller["capabilities"] | undefined };

/** Lists of several servers, beside each other. One that does not give its own takes nothing from the others. */
export async function listFromEach<T>(
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
        if (!(error instanceof ListError || error instanceof AnswerLostError)) throw error;
        log(`${error.message}; what is in it is missing for now`);
        return [];
      }
    }),
  );
  return each.flat();
}

/** All items of a list. @throws ListFault when the server does not give it. */
export async function listAllPages(
  upstream: Upstream,
  method: string,
  key: string,
  caller: ListRequester,
): Promise<JsonObject[]> {
  const items: JsonObject[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const reply = await upstream.request(method, cursor === undefined ? {} : { cursor }, {
      signal: caller.signal,
      capabilities: caller.capabilities,
      ask: () => Promise.resolve(errorReply(ERROR_CODE.methodNotFound, "a list asks nothing")),
    });
    if ("error" in reply)
      throw new ListError(reply, `the server "${upstream.config.name}" does not give its list: ${reply.error.message}`);
    const list = reply.result[key];
    if (!Array.isArray(list) || !list.every(isObject))
      throw new ListError(null, `the server "${upstream.config.name}" answers "${method}" with no list of ${key}`);
    items.push(...list);
    const next = reply.result["nextCursor"];
    if (typeof next !== "string") return items;
    cursor = next;
  }
  throw new ListError(null, `the list of the server "${upstream.config.name}" has no end`);
}

export class ListError extends Error {
  readonly reply: Reply;
  constructor(reply: Reply | null, message: string) {
    super(message);
    this.reply = errorReply(reply !== null && "error" in reply ? reply.error.code : ERROR_CODE.internal, message);
  }
}

/** What a name has stood for since a client has seen it. */
export type NameAssignments = Map<string, { server: string; name: string }>;

/**
 * Gives each item a name that is its own: the server's where nobody else has it, and otherwise with the server's name
 * before it. A name that has stood for one thing never stands for another, also when its server is gone: a client that
 * has read the older list would call what it does not mean. What has no name, or one that is taken
 * all the same, is left out.
 */
export function assignUniqueNames<T extends ListedItem>(
  items: readonly T[],
  seen: NameAssignments,
  log: (line: string) => void,
): NamedItem<T>[] {
  const named = items.flatMap((each) => {
    const { name } = each.item;
    return typeof name === "string" && name !== "" ? [{ ...each, name }] : [];
  });
  const having = new Map<string, Set<string>>();
  for (const { name, upstream } of named) having.set(name, (having.get(name) ?? new Set()).add(upstream.config.name));
  const isIts = (shown: string, { upstream, name }: NamedItem<T> | (T & { name: string })): boolean => {
    const before = seen.get(shown);
    return before?.server === upstream.config.name && before.name === name;
  };
  const shownAs = named.map((each) => {
    const { name } = each;
    const long = `${each.upstream.config.name}-${name}`;
    const short = having.get(name)?.size === 1 && !isIts(long, each) && (!seen.has(name) || isIts(name, each));
    return { ...each, exposedName: short ? name : long };
  });
  const times = new Map<string, number>();
  for (const { exposedName } of shownAs) times.set(exposedName, (times.get(exposedName) ?? 0) + 1);
  return shownAs.flatMap((each) => {
    const { exposedName, name, upstream } = each;
    if (times.get(exposedName) === 1 && (!seen.has(exposedName) || isIts(exposedName, each))) {
      seen.set(exposedName, { server: upstream.config.name, name });
      return [each];
    }
    log(
      `"${each.exposedName}" of the server "${each.upstream.config.name}" is left out: the name stands for more than one thing`,
    );
    return [];
  });
}

/** As the client sees it, under its own name. */
export const toClientItem = ({ item, exposedName }: NamedItem<ListedItem>): JsonObject => ({
  ...item,
  name: exposedName,
});

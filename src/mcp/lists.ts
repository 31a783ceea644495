/** Lists of several servers as one: every page of each, and names that one server has alone. */
import { CODE, failure, isObject, type JsonObject, type Reply } from "./message.ts";
import type { Caller } from "./caller.ts";
import type { Upstream } from "./upstream.ts";

/** An item of one server's list. */
export interface Listed {
  upstream: Upstream;
  item: JsonObject;
}

export type Named<T extends Listed> = T & {
  /** As the server calls it. */
  name: string;
  /** As the client sees it. */
  shown: string;
};

/** Pages of one list: more come from a server that turns in a circle. */
const MOST_PAGES = 200;

/** What a server is asked with. */
export type Asking = Pick<Caller, "signal" | "capabilities">;

/** All items of a list. @throws ListFault when the server does not give it. */
export async function listAll(upstream: Upstream, method: string, key: string, caller: Asking): Promise<JsonObject[]> {
  const items: JsonObject[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page++) {
    const reply = await upstream.request(method, cursor === undefined ? {} : { cursor }, {
      signal: caller.signal,
      capabilities: caller.capabilities,
      ask: () => Promise.resolve(failure(CODE.methodNotFound, "a list asks nothing")),
    });
    if ("error" in reply)
      throw new ListFault(reply, `the server "${upstream.config.name}" does not give its list: ${reply.error.message}`);
    const list = reply.result[key];
    if (!Array.isArray(list) || !list.every(isObject))
      throw new ListFault(null, `the server "${upstream.config.name}" answers "${method}" with no list of ${key}`);
    items.push(...list);
    const next = reply.result["nextCursor"];
    if (typeof next !== "string") return items;
    cursor = next;
  }
  throw new ListFault(null, `the list of the server "${upstream.config.name}" has no end`);
}

export class ListFault extends Error {
  readonly reply: Reply;
  constructor(reply: Reply | null, message: string) {
    super(message);
    this.reply = failure(reply !== null && "error" in reply ? reply.error.code : CODE.internal, message);
  }
}

/**
 * Gives each item a name that is its own: the server's where nobody else has it, and otherwise with the server's name
 * before it. What has no name, or one that is taken all the same, is left out.
 */
export function withOwnNames<T extends Listed>(items: readonly T[], log: (line: string) => void): Named<T>[] {
  const named = items.flatMap((each) => {
    const { name } = each.item;
    return typeof name === "string" && name !== "" ? [{ ...each, name }] : [];
  });
  const owners = new Map<string, Set<Upstream>>();
  for (const { name, upstream } of named) owners.set(name, (owners.get(name) ?? new Set()).add(upstream));
  const shownAs = named.map((each) => ({
    ...each,
    shown: (owners.get(each.name)?.size ?? 0) > 1 ? `${each.upstream.config.name}-${each.name}` : each.name,
  }));
  const times = new Map<string, number>();
  for (const { shown } of shownAs) times.set(shown, (times.get(shown) ?? 0) + 1);
  return shownAs.flatMap((each) => {
    if (times.get(each.shown) === 1) return [each];
    log(
      `"${each.shown}" of the server "${each.upstream.config.name}" is left out: the name stands for more than one thing`,
    );
    return [];
  });
}

/** As the client sees it, under its own name. */
export const shownItem = ({ item, shown }: Named<Listed>): JsonObject => ({ ...item, name: shown });

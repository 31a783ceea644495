/** Prevents a slow server from delaying the replies of other servers. */
import type { Upstream } from "./upstream.ts";

/** Default time limit for a server, when a reply depends on several servers. Milliseconds. */
const SHARED_LIST_TIMEOUT_MS = 3000;
/**
 * Maximum time that `initialize` waits for several servers. Servers that are installed on demand start slowly, and
 * clients wait at least 10 s. Milliseconds.
 */
export const SHARED_INITIALIZE_TIMEOUT_MS = 8000;
/** Timeout of a list request to a server. Milliseconds. */
export const LIST_TIMEOUT_MS = 30_000;

/** Resolves to true if `work` settles within the time limit, otherwise to false. */
export async function settlesWithin(work: Promise<unknown>, timeoutMs = SHARED_LIST_TIMEOUT_MS): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timedOut = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), timeoutMs)));
  try {
    return await Promise.race([
      work.then(
        () => true,
        () => true,
      ),
      timedOut,
    ]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Returns a function that resolves to a server's list. If the server is slow, the function resolves to the previous
 * list, which is empty at first. It then calls `onChanged` if the late list differs.
 * @param textOf returns the text of an item, for the comparison
 */
export function createListCache<T>(
  textOf: (item: T) => string,
  onChanged: (upstream: Upstream) => void,
  log: (line: string) => void,
): (upstream: Upstream, list: Promise<T[]>) => Promise<T[]> {
  const lastLists = new WeakMap<Upstream, T[]>();
  const textsOf = (items: T[]): string => JSON.stringify(items.map(textOf));
  return async (upstream, list) => {
    if (await settlesWithin(list)) {
      const items = await list;
      lastLists.set(upstream, items);
      return items;
    }
    const { name } = upstream.config;
    log(`the server "${name}" is slow to return its list; for now the proxy returns the other servers' items`);
    list.then(
      (items) => {
        const previous = lastLists.get(upstream) ?? [];
        lastLists.set(upstream, items);
        if (textsOf(previous) !== textsOf(items)) onChanged(upstream);
      },
      (error: unknown) => log(error instanceof Error ? error.message : String(error)),
    );
    return lastLists.get(upstream) ?? [];
  };
}

/** One of several servers that is slow: the others are not held up by it. */
import type { Upstream } from "./upstream.ts";

/** How long one server may hold up the lists of several. Milliseconds. */
const SHARED_LIST_TIMEOUT_MS = 3000;
/** How long it may hold up their greeting: servers that are installed on demand begin slowly, and clients wait 10 seconds and more. Milliseconds. */
export const INITIALIZE_TIMEOUT_MS = 8000;
/** How long a server may take for its list at all. Milliseconds. */
export const LIST_TIMEOUT_MS = 30_000;

/** @returns whether it settled in time */
export async function settlesWithin(work: Promise<unknown>, within = SHARED_LIST_TIMEOUT_MS): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), within)));
  try {
    return await Promise.race([
      work.then(
        () => true,
        () => true,
      ),
      late,
    ]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * For lists that a client is shown. What a slow server said last stands in for what it has not said yet, or nothing;
 * `changed` is called when its list comes and is another one.
 * @param textOf an item as it is compared
 */
export function createListCache<T>(
  textOf: (item: T) => string,
  changed: (upstream: Upstream) => void,
  log: (line: string) => void,
): (upstream: Upstream, list: Promise<T[]>) => Promise<T[]> {
  const last = new WeakMap<Upstream, T[]>();
  const textsOf = (items: T[]): string => JSON.stringify(items.map(textOf));
  return async (upstream, list) => {
    if (await settlesWithin(list)) {
      const items = await list;
      last.set(upstream, items);
      return items;
    }
    const { name } = upstream.config;
    log(`the server "${name}" is slow to give its list; the others are shown without it for now`);
    list.then(
      (items) => {
        const before = last.get(upstream) ?? [];
        last.set(upstream, items);
        if (textsOf(before) !== textsOf(items)) changed(upstream);
      },
      (error: unknown) => log(error instanceof Error ? error.message : String(error)),
    );
    return last.get(upstream) ?? [];
  };
}

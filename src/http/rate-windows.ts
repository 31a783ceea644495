/** Counts uses by name, in windows that begin with a name's first use. By a clock that nobody sets. */

/** How often it was used in its window, this time included, and when that is over. Milliseconds. */
export interface RateWindow {
  uses: number;
  endsIn: number;
}

/** Counts one use with each call. `steady` is in milliseconds. */
export function createRateWindows(
  ms: number,
  steady: () => number = () => performance.now(),
): (name: string) => RateWindow {
  /** All last equally long: the first in the map are the first that are over. */
  const windows = new Map<string, { uses: number; end: number }>();
  return (name) => {
    const now = steady();
    for (const [over, { end }] of windows) {
      if (end > now) break;
      windows.delete(over);
    }
    const window = windows.get(name) ?? { uses: 0, end: now + ms };
    window.uses += 1;
    windows.set(name, window);
    return { uses: window.uses, endsIn: window.end - now };
  };
}

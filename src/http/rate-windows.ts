/**
 * Counts the uses of each name in time windows. A window starts with the first use of a name. Uses a monotonic clock.
 */

/** Number of uses of a name in its window, including the current use, and the milliseconds until the window ends. */
interface RateWindow {
  uses: number;
  endsIn: number;
}

/**
 * Returns a function that counts one use.
 * @param clock a monotonic clock in milliseconds
 */
export function createRateWindows(
  ms: number,
  clock: () => number = () => performance.now(),
): (name: string) => RateWindow {
  /** Sorted by end time, because all windows have the same length. */
  const windows = new Map<string, { uses: number; end: number }>();
  return (name) => {
    const now = clock();
    for (const [expired, { end }] of windows) {
      if (end > now) break;
      windows.delete(expired);
    }
    const window = windows.get(name) ?? { uses: 0, end: now + ms };
    window.uses += 1;
    windows.set(name, window);
    return { uses: window.uses, endsIn: window.end - now };
  };
}

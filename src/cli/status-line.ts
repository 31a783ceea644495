/** Shows the progress of long-running work on a terminal. Prints nothing if standard error is not a terminal. */
import type { Output } from "./command.ts";

const UPDATE_INTERVAL_MS = 100;

/**
 * Runs the work and shows its messages on one line of standard error. Clears the line when the work is done.
 * @example
 * await withStatusLine(io, (say) => readPages((count) => say(`${count} pages read`)));
 */
export async function withStatusLine<T>(io: Output, work: (say: (text: string) => void) => Promise<T>): Promise<T> {
  if (!io.watched) return work(() => undefined);
  let last = -Infinity;
  let isDisplayed = false;
  try {
    return await work((text) => {
      if (performance.now() - last < UPDATE_INTERVAL_MS) return;
      process.stderr.write(`\r\u001b[K${text}`);
      last = performance.now();
      isDisplayed = true;
    });
  } finally {
    if (isDisplayed) process.stderr.write("\r\u001b[K");
  }
}

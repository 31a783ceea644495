/** The progress of long work, for somebody who waits at a terminal; nothing anywhere else. */
import type { Output } from "./command.ts";

const BETWEEN_MS = 100;

/** Runs the work; what it says stands on one line of standard error, which is gone when the work ends. */
export async function withStatus<T>(io: Output, work: (say: (text: string) => void) => Promise<T>): Promise<T> {
  if (!io.watched) return work(() => undefined);
  let last = -Infinity;
  let shown = false;
  try {
    return await work((text) => {
      if (performance.now() - last < BETWEEN_MS) return;
      process.stderr.write(`\r\u001b[K${text}`);
      last = performance.now();
      shown = true;
    });
  } finally {
    if (shown) process.stderr.write("\r\u001b[K");
  }
}

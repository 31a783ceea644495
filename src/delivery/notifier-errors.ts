/**
 * What a notifier throws where nobody awaits it: in a timer, in an event of a socket, in a promise it forgot. That would
 * end the process. It is told apart from the service's own faults, which still do, by the context that it was thrown in.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Logger } from "../contract/host.ts";

const calling = new AsyncLocalStorage<{ notifier: string }>();

/** Everything that `work` begins, however late, is known to be this notifier's. */
export function runAsNotifier<T>(notifier: string, work: () => T): T {
  return calling.run({ notifier }, work);
}

/** For a process of its own. Anything that no notifier threw ends the process, as it would without this. */
export function reportStrayErrors(log: Logger): void {
  const report = (error: unknown): void => {
    const stray = calling.getStore();
    if (stray !== undefined) {
      log.error("a notifier threw where nobody awaits it; the service goes on", {
        notifier: stray.notifier,
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
      return;
    }
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  };
  process.on("uncaughtException", report);
  process.on("unhandledRejection", report);
}

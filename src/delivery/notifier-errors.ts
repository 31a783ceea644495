/**
 * Catches errors that a notifier throws outside of its promise: in a timer, a socket event or a floating promise.
 * Without this, such an error would end the process. The async context distinguishes it from the service's own errors,
 * which still end the process.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Logger } from "../contract/host.ts";

const calling = new AsyncLocalStorage<{ notifier: string }>();

/** Runs `work` and attributes all later asynchronous errors of it to this notifier. */
export function runInNotifierContext<T>(notifier: string, work: () => T): T {
  return calling.run({ notifier }, work);
}

/**
 * Handles uncaught exceptions and unhandled rejections: logs those of notifiers, and ends the process for all others.
 * Call it only in a process that runs nothing except the service.
 */
export function reportStrayErrors(log: Logger): void {
  const report = (error: unknown): void => {
    const context = calling.getStore();
    if (context !== undefined) {
      log.error("a notifier threw an error outside its promise; the service continues", {
        notifier: context.notifier,
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

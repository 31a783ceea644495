/**
 * Catches errors that the code of a plugin throws outside of its promise: in a timer, a socket event or a floating
 * promise. Without this, such an error would end the process. The async context distinguishes it from the service's own
 * errors, which still end the process.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Logger } from "../contract/host.ts";

const calling = new AsyncLocalStorage<Readonly<Record<string, string>>>();

/**
 * Runs `work` and attributes all later asynchronous errors of it to a part of a plugin.
 * @param part the members with which the log identifies the part
 * @example
 * runInPluginContext({ notifier: "email" }, () => notifier.deliver(message, signal));
 */
export function runInPluginContext<T>(part: Readonly<Record<string, string>>, work: () => T): T {
  return calling.run(part, work);
}

/**
 * Handles uncaught exceptions and unhandled rejections: logs those of plugins, and ends the process for all others. Call
 * it only in a process that runs nothing except the service.
 */
export function reportStrayErrors(log: Logger): void {
  const report = (error: unknown): void => {
    const part = calling.getStore();
    if (part !== undefined) {
      log.error("a plugin threw an error outside its promise; the service continues", {
        ...part,
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

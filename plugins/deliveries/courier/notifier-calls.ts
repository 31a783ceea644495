import { type DeliveryResult, type Message, type Notifier, NotifierError } from "../../../src/plugin.ts";
import { runInPluginContext } from "../../../src/core.ts";
/** Calls notifiers. Limits the time of each call and the number of calls that hang. */

/**
 * Maximum number of calls of one notifier that timed out and are still running. A notifier with this many hanging calls
 * is not called again until one of them ends.
 */
const MAX_HANGING = 20;

/** Name of the notifier in deliveries to a channel that is not configured. */
export const NO_NOTIFIER = "";

/** Thrown if a notifier failed, as opposed to the store. */
export class NotifierCallFailure extends Error {
  constructor(cause: unknown) {
    super("the notifier failed", { cause });
  }
}

interface NotifierCalls {
  /** Makes one attempt to deliver the message. Rejects with NotifierCallFailure. */
  call(name: string, message: Message): Promise<DeliveryResult | void>;
  /** Aborts running calls. Calls after `stop` fail. */
  stop(): void;
}

export function missingChannelMessage(name: string): string {
  return `no one was notified: the configuration has no channel "${name}"; add it to channels in assent.yaml, or correct approval.notify of the policy`;
}

const STOPPING = new Error("the service is stopping");

/** @param timeoutMs the timeout of one call */
export function createNotifierCalls(notifiers: readonly Notifier[], timeoutMs: number): NotifierCalls {
  const byName = new Map(notifiers.map((notifier) => [notifier.name, notifier]));
  const hanging = new Map<string, number>();
  const enders = new Set<() => void>();
  let stopping = false;

  return {
    async call(name, message) {
      const notifier = byName.get(name);
      if (name === NO_NOTIFIER)
        throw new NotifierCallFailure(new NotifierError(missingChannelMessage(message.to), { permanent: true }));
      if (notifier === undefined) throw new NotifierCallFailure(new Error(`no notifier "${name}" is configured`));
      if ((hanging.get(name) ?? 0) >= MAX_HANGING)
        throw new NotifierCallFailure(
          new Error(`${MAX_HANGING} earlier calls of the notifier "${name}" have not ended`),
        );
      if (stopping) throw new NotifierCallFailure(STOPPING);
      // Do not use AbortSignal.any() with AbortSignal.timeout(): Node 20 can garbage-collect the signals, so the
      // timeout might never fire.
      const aborter = new AbortController();
      const end = (): void => aborter.abort(STOPPING);
      const timer = setTimeout(
        () => aborter.abort(new Error(`the notifier did not respond within ${timeoutMs / 1000} s`)),
        timeoutMs,
      );
      enders.add(end);
      const calling = invoke(notifier, message, aborter.signal);
      let ended = false;
      const done = calling.then(
        () => void (ended = true),
        () => void (ended = true),
      );
      try {
        return await Promise.race([calling, aborted(aborter.signal)]);
      } catch (error) {
        throw new NotifierCallFailure(error);
      } finally {
        clearTimeout(timer);
        enders.delete(end);
        if (!ended) {
          hanging.set(name, (hanging.get(name) ?? 0) + 1);
          void done.then(() => hanging.set(name, (hanging.get(name) ?? 1) - 1));
        }
      }
    },
    stop() {
      stopping = true;
      for (const end of enders) end();
    },
  };
}

/** Calls the notifier. Async, so that a synchronous throw becomes a rejection. */
async function invoke(notifier: Notifier, message: Message, signal: AbortSignal): Promise<DeliveryResult | void> {
  return runInPluginContext({ notifier: notifier.name }, () => notifier.deliver(message, signal));
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
  );
}

/** Calls of notifiers, bounded in time and in number whatever a notifier does. */
import { NotifierError, type Delivered, type Message, type Notifier } from "../contract/notifier.ts";
import { runAsNotifier } from "./notifier-errors.ts";

/** Calls of one notifier that were given up and have not ended: more are not begun. */
const MAX_HANGING = 20;

/** Stands for the notifier of a channel that the configuration does not have. */
export const NO_NOTIFIER = "";

/** A notifier's own failure, told apart from the store's. */
export class NotifierCallFailure extends Error {
  constructor(cause: unknown) {
    super("the notifier failed", { cause });
  }
}

export interface NotifierCalls {
  /** One attempt. Throws Failed. */
  call(name: string, message: Message): Promise<Delivered | void>;
  /** Ends those that are under way; none is begun after it. */
  stop(): void;
}

export function missingChannelMessage(name: string): string {
  return `nobody was told: the configuration has no channel "${name}"; add it to channels in assent.yaml, or correct approval.notify of the policy`;
}

const STOPPING = new Error("the service is stopping");

/** @param timeoutMs of one call */
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
      // Not AbortSignal.any() over AbortSignal.timeout(): Node 20 collects those as garbage, and then nothing ends the call.
      const over = new AbortController();
      const end = (): void => over.abort(STOPPING);
      const timer = setTimeout(
        () => over.abort(new Error(`it gave no answer within ${timeoutMs / 1000} s`)),
        timeoutMs,
      );
      enders.add(end);
      const calling = invoke(notifier, message, over.signal);
      let ended = false;
      const done = calling.then(
        () => void (ended = true),
        () => void (ended = true),
      );
      try {
        return await Promise.race([calling, aborted(over.signal)]);
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

/** What throws before its first await rejects like anything else. */
async function invoke(notifier: Notifier, message: Message, signal: AbortSignal): Promise<Delivered | void> {
  return runAsNotifier(notifier.name, () => notifier.deliver(message, signal));
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
  );
}

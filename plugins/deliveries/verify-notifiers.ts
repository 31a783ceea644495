/**
 * Verifies the credentials of notifiers before their first message. A message that cannot be delivered is otherwise the
 * first sign of a wrong token.
 */
import type { CoreHost } from "../../src/core.ts";
import type { HealthCheck, Notifier } from "../../src/plugin.ts";

/** Credentials that were verified longer ago are verified again when the state is read. Milliseconds. */
const FRESH_MS = 600_000;

export interface NotifierVerification {
  /** Returns the newest state, and does not wait, because a slow service must not delay `/readyz`. */
  read: HealthCheck["read"];
  stop(): void;
}

/** @param timeoutMs time limit for each notifier */
export function verifyNotifiers(
  { clock, log }: Pick<CoreHost, "clock" | "log">,
  notifiers: readonly Notifier[],
  timeoutMs: number,
): NotifierVerification {
  const stopping = new AbortController();
  let faulty: string[] = [];
  let verifiedAt = -Infinity;

  async function findFaulty(notifier: Notifier): Promise<string[]> {
    try {
      await notifier.verify?.(AbortSignal.any([stopping.signal, AbortSignal.timeout(timeoutMs)]));
      return [];
    } catch (error) {
      if (stopping.signal.aborted) return [];
      log.warn("the credentials of a notifier could not be verified", {
        notifier: notifier.name,
        error: error instanceof Error ? error.message : String(error),
      });
      return [notifier.name];
    }
  }

  async function verify(): Promise<void> {
    // Set this first, so that requests at the same time cause one verification.
    verifiedAt = clock();
    faulty = (await Promise.all(notifiers.map(findFaulty))).flat();
  }

  return {
    async read() {
      if (Math.abs(clock() - verifiedAt) > FRESH_MS) void verify();
      // Callers of the route are not authenticated, so the reason is in the log only.
      const detail = `the services of ${faulty.map((name) => `"${name}"`).join(", ")} do not accept the configured credentials, or do not answer; the log has the reason`;
      return { ok: faulty.length === 0, detail: faulty.length === 0 ? "ok" : detail, held: 0 };
    },
    stop: () => stopping.abort(),
  };
}

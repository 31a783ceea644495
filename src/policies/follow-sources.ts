/** Loads the policies of all sources at startup, and again whenever a source changes. */
import type { Logger } from "../contract/host.ts";
import type { PolicySource } from "../contract/policy-source.ts";
import type { PolicyService } from "./policy-store.ts";

const RETRY_MS = 5000;

/** Loads the sources, starting with the baseline, and watches them. Resolves to a function that stops watching. */
export async function followSources(
  policies: PolicyService,
  sources: readonly PolicySource[],
  log: Logger,
): Promise<() => Promise<void>> {
  const inOrder = [...sources].sort((a, b) => Number(b.baseline ?? false) - Number(a.baseline ?? false));
  const stops: (() => Promise<void>)[] = [];
  const retries = new Set<ReturnType<typeof setTimeout>>();
  const running = new Set<Promise<void>>();
  let stopped = false;
  async function follow(source: PolicySource): Promise<void> {
    await policies.sync(source);
    const stop = source.watch?.(syncWhenChanged(source));
    if (stop !== undefined) stops.push(stop);
  }
  /**
   * Returns a function that loads the source. Calls during a load cause only one further load, so that a slow source
   * does not accumulate loads.
   */
  function syncWhenChanged(source: PolicySource): () => void {
    let isRunning = false;
    let hasChanged = false;
    async function syncUntilUnchanged(): Promise<void> {
      isRunning = true;
      while (hasChanged && !stopped) {
        hasChanged = false;
        try {
          await syncWithDependents(source);
        } catch (error) {
          if (!stopped) retryLater(error);
        }
      }
      isRunning = false;
    }
    function retryLater(error: unknown): void {
      // The content is not the cause; the store might be unavailable, for example. So retry with the same content.
      log.error("the policies of a source could not be loaded; trying again", {
        source: source.name,
        error: String(error),
      });
      const retry = setTimeout(() => {
        retries.delete(retry);
        changed();
      }, RETRY_MS);
      retry.unref?.();
      retries.add(retry);
    }
    function changed(): void {
      hasChanged = true;
      if (isRunning || stopped) return;
      const run = syncUntilUnchanged();
      running.add(run);
      void run.then(() => running.delete(run));
    }
    return changed;
  }
  /**
   * Loads a source. After a baseline, also loads all other sources. They may have been rejected before the baseline was
   * loaded, or the baseline may have released policies that it had taken over.
   */
  async function syncWithDependents(source: PolicySource): Promise<void> {
    await policies.sync(source);
    if (source.baseline !== true || policies.isRejected(source.name)) return;
    for (const other of inOrder) if (other !== source) await policies.sync(other);
  }
  async function stopAll(): Promise<void> {
    stopped = true;
    for (const retry of retries) clearTimeout(retry);
    for (const stop of stops) await stop();
    await Promise.all(running);
  }
  try {
    for (const source of inOrder) await follow(source);
    await warnOfOrphans(policies, log);
  } catch (error) {
    // Stop watching the earlier sources, because their watchers would prevent the process from exiting.
    await stopAll();
    throw error;
  }
  return stopAll;
}

/**
 * Warns of active policies without a configured source. They remain active, because silently removing a rule that
 * denies would allow actions.
 */
async function warnOfOrphans(policies: PolicyService, log: Logger): Promise<void> {
  const orphans = await policies.orphans();
  if (orphans.length > 0)
    log.warn(
      "the source of some active policies is no longer configured; they stay active until they are deactivated or another source provides them",
      { policies: orphans.join(", ") },
    );
}

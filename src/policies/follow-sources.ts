/** Keeps the policies at what their sources have, from the start on. */
import type { Logger } from "../contract/host.ts";
import type { PolicySource } from "../contract/policy-source.ts";
import type { PolicyService } from "./store.ts";

/** Milliseconds. */
const TAKE_AGAIN = 5000;

/** Takes what the sources have, and whatever they have later. Returns a function that stops it. */
export async function followSources(
  policies: PolicyService,
  sources: readonly PolicySource[],
  log: Logger,
): Promise<() => Promise<void>> {
  const stops: (() => Promise<void>)[] = [];
  const retries = new Set<ReturnType<typeof setTimeout>>();
  let running: Promise<void> = Promise.resolve();
  let over = false;
  async function begin(source: PolicySource): Promise<void> {
    await policies.sync(source);
    const take = (): void => {
      if (over) return;
      running = policies.sync(source).catch((error: unknown) => {
        // Not its content's fault: the store was not there, for instance. The same content must not be lost over it.
        log.error("a policy source could not be taken; trying again", { source: source.name, error: String(error) });
        const retry = setTimeout(() => {
          retries.delete(retry);
          take();
        }, TAKE_AGAIN);
        retry.unref?.();
        retries.add(retry);
      });
    };
    const stop = source.watch?.(take);
    if (stop !== undefined) stops.push(stop);
  }
  async function stopAll(): Promise<void> {
    over = true;
    for (const retry of retries) clearTimeout(retry);
    for (const stop of stops) await stop();
    await running;
  }
  try {
    for (const source of sources) await begin(source);
    await tellOrphans(policies, log);
  } catch (error) {
    // The ones before it watch already, and would keep the process from ending.
    await stopAll();
    throw error;
  }
  return stopAll;
}

/** They go on deciding: to drop them silently could open what they deny. */
async function tellOrphans(policies: PolicyService, log: Logger): Promise<void> {
  const orphans = await policies.orphans();
  if (orphans.length > 0)
    log.warn(
      "policies are active whose source is no longer configured; they stay until they are deactivated or another source brings them",
      { policies: orphans.join(", ") },
    );
}

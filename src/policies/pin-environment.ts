/** Refuses to start a process whose environment differs from the environment of its database. */
import type { Logger } from "../contract/host.ts";
import type { Storage } from "../contract/storage.ts";

/** Thrown if the environment of this process differs from the environment that the database was started with. */
export class EnvironmentError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "EnvironmentError";
  }
}

/** Stored if a process has no environment, because `null` means that nothing is stored yet. */
const NO_ENVIRONMENT = "";

/**
 * Stores the environment at the first start, and compares it at every later start. Otherwise, two processes with
 * different environments would replace each other's policies.
 *
 * A store that only one process uses accepts a new environment.
 * @param environment the value of `environment` in the configuration
 * @param accept whether to store this environment even if it differs
 * @throws EnvironmentError if it differs
 * @example await pinEnvironment(storage, "staging", log, false);
 */
export async function pinEnvironment(
  storage: Storage,
  environment: string | null,
  log: Logger,
  accept: boolean,
): Promise<void> {
  const configured = environment ?? NO_ENVIRONMENT;
  const stored = await storage.write(async (tx) => {
    const earlier = await tx.meta("environment");
    if (earlier === null || (earlier !== configured && (accept || storage.exclusive)))
      await tx.putMeta("environment", configured);
    return earlier;
  });
  if (stored === null || stored === configured) return;
  if (!storage.exclusive && !accept) throw new EnvironmentError(describeDifference(configured, stored));
  log.warn("the environment has changed; policies now use the shared data of the new one", {
    before: stored === NO_ENVIRONMENT ? null : stored,
    now: environment,
  });
}

function describeDifference(configured: string, stored: string): string {
  const actual = configured === NO_ENVIRONMENT ? "no environment is configured" : `the environment is "${configured}"`;
  const [expected, fix] =
    stored === NO_ENVIRONMENT
      ? ["without one", "unset ASSENT_ENVIRONMENT and `environment`"]
      : [`with "${stored}"`, `set ASSENT_ENVIRONMENT=${stored}`];
  return `${actual}, and this database was started ${expected}; ${fix}, because processes with different environments would replace each other's policies. To change the environment, stop all processes and start one with --accept-environment`;
}

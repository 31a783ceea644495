/** Processes that share one Postgres, as an operator sets them up: the same secret and keys for each. */
import { newKey } from "./keys.ts";

export const SECRET = "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU";
export const ADMIN: string = `assent-test-admin-${"0".repeat(32)}`;

/** The environment that all of them have; each has an ASSENT_DATA of its own besides. @param origin the log's name */
export const sharedEnvironment = (origin: string): Record<string, string> => ({
  ASSENT_SECRET: SECRET,
  ASSENT_LOG_KEY: newKey(),
  ASSENT_PERMIT_KEY: newKey(),
  ASSENT_LOG_ORIGIN: origin,
  ASSENT_ADMIN_KEY: ADMIN,
});

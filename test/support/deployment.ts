/** Configuration of several processes that share one Postgres: the same secret and the same keys for each. */
import { newKey } from "./keys.ts";

export const SECRET = "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU";
export const ADMIN: string = `assent-test-admin-${"0".repeat(32)}`;

/**
 * Returns the environment variables that all processes share. Each process also needs its own ASSENT_DATA. @param
 * origin the log's name
 */
export const sharedEnvironment = (origin: string): Record<string, string> => ({
  ASSENT_SECRET: SECRET,
  ASSENT_LOG_KEY: newKey(),
  ASSENT_PERMIT_KEY: newKey(),
  ASSENT_LOG_ORIGIN: origin,
  ASSENT_ADMIN_KEY: ADMIN,
});

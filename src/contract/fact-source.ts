/**
 * The contract of fact sources: systems that the service asks before it decides, such as a customer database. A policy names
 * them under `facts`. The service reads outside any transaction, keeps answers for `maxAgeMs`, and records the value that a
 * decision used. A source that throws, hangs or returns anything but JSON is an error, and the policy denies.
 */
import type { JsonValue } from "../domain/json.ts";

/** Time for one read, and for how long its answer is used, if the source does not say. Milliseconds. */
export const DEFAULT_FACT_TIMEOUT_MS = 2_000;
export const DEFAULT_FACT_AGE_MS = 30_000;
export const MAX_FACT_TIMEOUT_MS = 10_000;
/** Reads of one source at a time. Others wait within their timeout. */
export const MAX_CONCURRENT_READS = 32;

export interface FactSource {
  /** The name that policies use: lowercase letters, digits and dashes. */
  readonly name: string;
  /** Names of the inputs that a read takes. A policy must pass exactly these. */
  readonly inputs: readonly string[];
  /** Default: 2 s. At most 10 s. */
  readonly timeoutMs?: number;
  /** For how long an answer is used. Default: 30 s. At least 2 s, because a decision waits for the ledger's lock. */
  readonly maxAgeMs?: number;
  /** How many reads run at a time. Default and maximum: 32. */
  readonly maxConcurrent?: number;
  /**
   * Makes one attempt. Rejects if there is no answer. `inputs` come from requests of agents: never use them as a part of
   * SQL, of a command, or of the host in an address. Errors are logged, so they must not contain inputs.
   * @example
   * read: async ({ id }, signal) => (await lookUp(String(id), signal)) ?? null,
   */
  read(inputs: Readonly<Record<string, string | number | boolean>>, signal: AbortSignal): Promise<JsonValue>;
}

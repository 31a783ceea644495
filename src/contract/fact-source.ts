/**
 * The contract of fact sources, which are systems that the service reads before a decision, such as a customer
 * database. A policy declares facts, each with its source, under `facts`. The service reads outside any transaction,
 * caches results for `maxAgeMs`, and records the value that a decision used. If a source throws, hangs or returns
 * anything except JSON, its fact is an error, and the policy denies the action.
 */
import type { JsonValue } from "../domain/json.ts";

/** Default timeout of one read, and default cache lifetime of its result. Milliseconds. */
export const DEFAULT_FACT_TIMEOUT_MS = 2_000;
export const DEFAULT_FACT_AGE_MS = 30_000;
export const MAX_FACT_TIMEOUT_MS = 10_000;
/**
 * Maximum number of concurrent reads of one source. Other reads wait for a slot. The maximum wait is the timeout of one
 * read.
 */
export const MAX_CONCURRENT_READS = 32;

export interface FactSource {
  /** The name that policies use: lowercase letters, digits and dashes. */
  readonly name: string;
  /** Names of the inputs of a read. A policy must pass exactly these inputs. */
  readonly inputs: readonly string[];
  /** Timeout of one read. Default: 2 s. At most 10 s. */
  readonly timeoutMs?: number;
  /**
   * Cache lifetime of a result. Default: 30 s. 0: each decision reads the value again. A decision uses what it read for
   * at least 2 s, because it waits for the ledger's lock after the read.
   */
  readonly maxAgeMs?: number;
  /** Maximum number of concurrent reads. Default: 32. At most 32. */
  readonly maxConcurrent?: number;
  /**
   * Reads the source once. Resolves to null if there is no record for the inputs. The fact is then null if its schema
   * accepts null; otherwise it has the fault `not_found`. Reject with an error whose `code` is `NOT_FOUND` to report
   * this fault even if the schema accepts null. Rejects with another error if the attempt fails. Must end soon after
   * `signal` aborts, because a read that does not end occupies one of the `maxConcurrent` slots of its source. Agents
   * control the `inputs`: never insert them into SQL, a command, or the host of an address. The service logs errors, so
   * they must not contain inputs.
   * @example
   * read: async ({ id }, signal) => (await lookUp(String(id), signal)) ?? null,
   */
  read(inputs: Readonly<Record<string, string | number | boolean>>, signal: AbortSignal): Promise<JsonValue>;
}

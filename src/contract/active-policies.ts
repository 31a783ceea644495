import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";

/** A policy set that is or was active. */
export interface ActivePolicies {
  /** Null before the first activation. */
  readonly digest: string | null;
  readonly compiled: CompiledPolicySet;
  /**
   * Source of the last activation, in the form of its ledger entry, for example `{kind: "git", commit, …}`. Null if
   * unknown.
   */
  readonly source: Readonly<Record<string, string>> | null;
}

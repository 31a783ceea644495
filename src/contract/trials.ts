/** Policies that somebody sends, tried out on another thread: what they cost, whoever sent them waits for, and nobody else. */
import type { ActionRequest } from "../domain/actions.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import type { Decision, Facts, PolicyDocument } from "../domain/policy/types.ts";
import type { BacktestRange, BacktestReport } from "./backtest.ts";

/** As they came: one policy as JSON, with where it stands in the body, or one or more as YAML. */
export type Candidates = { policy: unknown; pointer: string } | { yaml: string };

/** A policy that compiles. */
export interface ParsedPolicy {
  document: PolicyDocument;
  /** Canonical JSON, and its SHA-256 in hex. */
  text: string;
  digest: string;
}

/** A policy set that is written out. */
export interface SerializedPolicySet {
  /** SHA-256 in hex; null for the set of no policies. */
  readonly digest: string | null;
  /** The document, as JSON. */
  readonly text: string;
}

/** One action at one moment. What the facts do not know of limits counts as unused. */
export interface TrialCase {
  request: ActionRequest;
  facts: Facts;
  /** Milliseconds. */
  now: number;
}

/**
 * Each rejects with TOO_MANY_TRIALS when as many are under way as this process takes, with TRIAL_TOO_LONG when it
 * takes longer than one request may, with TRIAL_LOST when the thread was lost, and with SHUTTING_DOWN when `signal`
 * aborted. No failure is a decision.
 */
export interface PolicyTrials {
  /** At least one, each of another name. Rejects with POLICY_INVALID. */
  read(candidates: Candidates, signal: AbortSignal): Promise<ParsedPolicy[]>;
  /**
   * The set in which the candidates take the place of the active policies of their names, or join them; or stand
   * `alone`. Rejects with POLICY_INVALID.
   */
  withCandidates(
    active: CompiledPolicySet,
    candidates: Candidates,
    alone: boolean,
    signal: AbortSignal,
  ): Promise<SerializedPolicySet>;
  /** What each set decides about each case: by set, then in the order of the cases. */
  decide(
    sets: readonly (CompiledPolicySet | SerializedPolicySet)[],
    cases: readonly TrialCase[],
    signal: AbortSignal,
  ): Promise<Decision[][]>;
  /** What a set would have decided: past decisions made again, each with its own request, facts and clock. */
  backtest(set: CompiledPolicySet | SerializedPolicySet, range: BacktestRange): Promise<BacktestReport>;
}

/** Compiles and tests callers' policies on a separate thread, so that expensive policies delay only their caller. */
import type { ActionRequest } from "../domain/actions.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import type { NamedTool, NamedType } from "../domain/policy/check/expression-names.ts";
import type { Decision, Effect, Facts, PolicyDocument } from "../domain/policy/policy-types.ts";
import type { FieldError } from "./errors.ts";

/**
 * Unparsed policies: a single policy as JSON, with its JSON pointer in the request body, or at least one policy as
 * YAML.
 */
export type CandidatePolicies = ({ policy: unknown; pointer: string } | { yaml: string }) & {
  /** Evaluates candidates in shadow mode as if they were enforced. */
  enforce?: boolean;
};

/** A policy that was parsed and compiled. */
export interface ParsedPolicy {
  document: PolicyDocument;
  /** Canonical JSON, and its SHA-256 in hex. */
  text: string;
  digest: string;
  /** The YAML, if it contains only this policy; null if the policy was sent as JSON or with other policies. */
  yaml: string | null;
}

/** A policy set as JSON text. */
export interface SerializedPolicySet {
  /** SHA-256 in hex; null for the set of no policies. */
  readonly digest: string | null;
  /** The policy set as JSON. */
  readonly text: string;
}

/** An action to decide, with its time and facts. A limit without a fact counts as unused. */
export interface TrialCase {
  request: ActionRequest;
  facts: Facts;
  /** Milliseconds. */
  now: number;
  /**
   * Values, keyed by name, for facts that are not in `facts`. A fact in neither counts as a source that did not
   * respond.
   */
  given?: Readonly<Record<string, unknown>>;
}

/** The YAML of policies and tests in an editor. `tests` is null if there are no tests. */
export interface PolicyTexts {
  yaml: string;
  tests: string | null;
}

/** Results of the tests. If their YAML has a fault, no test runs. */
export interface PolicyTestResults {
  faults: FieldError[];
  passed: number;
  failed: number;
  /** The first results, in the order of the tests. `failure` is null if the case passed. */
  results: {
    name: string;
    line: number | null;
    column: number | null;
    effect: Effect | null;
    failure: string | null;
  }[];
}

/**
 * Result of a check of policies and tests. The lists of documents, variables and tools are empty if the policies have a
 * fault.
 */
export interface CheckedText {
  documents: PolicyDocument[];
  faults: FieldError[];
  warnings: FieldError[];
  tests: PolicyTestResults | null;
  variables: NamedType[];
  tools: NamedTool[];
}

/** A plugin's job on the thread for policy trials. */
export interface TrialJob<Input, Query, Page> {
  /** The thread imports this module. Its default export is a `TrialWork`. */
  module: URL;
  /** Input and pages are sent to the thread as structured clones. */
  input: Input;
  /** Reads a page for the job. Runs on the main thread, because only the main thread has opened the store. */
  read(query: Query): Promise<Page>;
}

/** What a plugin's job uses on the thread. */
export interface TrialContext<Input, Query, Page> {
  sets: readonly [CompiledPolicySet, ...CompiledPolicySet[]];
  input: Input;
  /** Calls `read` of the job. Rejects if that fails, or if the caller no longer waits. */
  read(query: Query): Promise<Page>;
  /**
   * Call it between steps, and await its result. Returns null if the last yield was less than 20 ms ago. Throws
   * TRIAL_TOO_LONG if the job has used up its time.
   */
  yieldIfSlow(): Promise<void> | null;
  /**
   * Like `yieldIfSlow`, for a job that limits its own time and returns a partial result: checks neither the time nor
   * whether the caller still waits.
   */
  yieldWithoutLimit(): Promise<void> | null;
  /** Aborts when the caller no longer waits. */
  signal: AbortSignal;
}

export type TrialWork<Input, Output, Query, Page> = (context: TrialContext<Input, Query, Page>) => Promise<Output>;

/** The name of a candidate, and the path of a redacted parameter that it can read, such as `params.card.number`. */
export interface RedactedRead {
  policy: string;
  path: string;
}

/**
 * Each method rejects with one of these errors. A failure is never a decision.
 * - TOO_MANY_TRIALS: the limit of this process is reached.
 * - TRIAL_TOO_LONG: the call exceeds the time limit of a request.
 * - TRIAL_LOST: the thread failed.
 * - SHUTTING_DOWN: `signal` aborted.
 */
export interface PolicyTrials {
  /** Parses at least one policy. Names must be unique. Rejects with POLICY_INVALID. */
  read(candidates: CandidatePolicies, signal: AbortSignal): Promise<ParsedPolicy[]>;
  /**
   * Builds the set in which the candidates replace active policies of the same name or are added to them. With `alone`,
   * the set contains only the candidates. Rejects with POLICY_INVALID.
   */
  withCandidates(
    active: CompiledPolicySet | SerializedPolicySet,
    candidates: CandidatePolicies,
    alone: boolean,
    signal: AbortSignal,
  ): Promise<SerializedPolicySet>;
  /**
   * Returns the first candidate that can read a redacted parameter, with the path of the parameter; null if there is
   * none. A parameter counts as redacted if enforced policies of the active set redact it. Rejects with POLICY_INVALID.
   */
  findRedactedRead(
    active: CompiledPolicySet,
    candidates: CandidatePolicies,
    signal: AbortSignal,
  ): Promise<RedactedRead | null>;
  /** Checks policies and runs their tests. The result contains the faults of both. */
  check(texts: PolicyTexts, signal: AbortSignal): Promise<CheckedText>;
  /** Evaluates every case with every set. Resolves to one array for each set, in the order of the cases. */
  decide(
    sets: readonly (CompiledPolicySet | SerializedPolicySet)[],
    cases: readonly TrialCase[],
    signal: AbortSignal,
  ): Promise<Decision[][]>;
  /** Runs a plugin's job with policy sets. Resolves to what the job's `TrialWork` returns. */
  run<Input, Output, Query, Page>(
    sets: readonly [CompiledPolicySet | SerializedPolicySet, ...(CompiledPolicySet | SerializedPolicySet)[]],
    job: TrialJob<Input, Query, Page>,
    signal?: AbortSignal,
  ): Promise<Output>;
}

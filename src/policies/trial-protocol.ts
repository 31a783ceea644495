/** Messages between the main thread and the thread for policy trials. */
import type { ErrorCode, FieldError } from "../contract/errors.ts";
import type {
  CandidatePolicies,
  CheckedText,
  ParsedPolicy,
  PolicyTexts,
  RedactedRead,
  TrialCase,
  SerializedPolicySet,
} from "../contract/trials.ts";
import type { Decision } from "../domain/policy/policy-types.ts";

/** Input and output of the jobs, keyed by the name of the job. */
export interface Jobs {
  read: { input: CandidatePolicies; output: ParsedPolicy[] };
  withCandidates: {
    input: { active: SerializedPolicySet; candidates: CandidatePolicies; alone: boolean };
    output: SerializedPolicySet;
  };
  findRedactedRead: {
    input: { active: SerializedPolicySet; candidates: CandidatePolicies };
    output: RedactedRead | null;
  };
  check: { input: PolicyTexts; output: CheckedText };
  decide: { input: { sets: SerializedPolicySet[]; cases: readonly TrialCase[] }; output: Decision[][] };
  /** Runs a plugin's module. */
  plugin: { input: { sets: readonly SerializedPolicySet[]; module: string; input: unknown }; output: unknown };
}
export type JobName = keyof Jobs;

export type MessageToThread =
  | {
      [Name in JobName]: { kind: "job"; id: number; name: Name; input: Jobs[Name]["input"]; budgetMs: number };
    }[JobName]
  | { kind: "abort"; id: number }
  | { kind: "answer"; call: number; value: unknown }
  /** The read failed, so the job has ended. */
  | { kind: "unanswered"; call: number }
  | { kind: "ping" };

export type MessageFromThread =
  | { kind: "done"; id: number; value: unknown }
  | { kind: "refused"; id: number; code: ErrorCode; detail: string; errors: FieldError[] }
  | { kind: "failed"; id: number; message: string }
  /** A read for a plugin's job. The main thread runs it, because only the main thread has opened the store. */
  | { kind: "call"; id: number; call: number; query: unknown }
  /** Reports that the thread is now running this job. If the thread stops responding, this job is the cause. */
  | { kind: "at"; id: number }
  | { kind: "pong" };

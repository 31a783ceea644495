/** `assent/client`: a client for the `/v1` API. It uses only web APIs such as `fetch`, so it runs on any runtime. */
export { newAttempt } from "./action-calls.ts";
export { createAssent, type Assent, type AssentOptions } from "./client.ts";
export {
  AssentError,
  ProofInvalid,
  RequestRefused,
  ServiceUnavailable,
  Unauthorized,
  type Problem,
} from "./client-errors.ts";
export { submitAndStart, type StartOutcome, type SubmitAndStartOptions } from "./submit-and-start.ts";
export {
  ActionRefused,
  govern,
  OutputWithheld,
  Pending,
  type GovernedCallOptions,
  type GovernOptions,
  type RunContext,
} from "./govern.ts";
export { openQuestion, questionText, type Question } from "./open-question.ts";
export { toSingleLine, explainRefusal, type RefusalExplanation, type RefusalOutcome } from "./refusal.ts";
export {
  PermitRefused,
  verifyPermit,
  type PermitClaims,
  type PermitKeySet,
  type PermitRefusedReason,
  type PermittedRequest,
  type VerifyPermitOptions,
} from "./permit.ts";
export type {
  AnswerOptions,
  ActionPage,
  ActionQuery,
  ActionRecord,
  ActionRequest,
  ActionResult,
  ActionStatus,
  CallOptions,
  EventQuery,
  Inspection,
  InspectOptions,
  LedgerEvent,
  PlanQuery,
  PlanRecord,
  PlanSummary,
  PlanVoteOptions,
  StartOptions,
  SubmitOptions,
  SubmitPlanOptions,
  ApproveOptions,
  GrantTerms,
  VoteOptions,
  WaitOptions,
} from "./action-types.ts";

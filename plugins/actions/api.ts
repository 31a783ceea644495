/** `assent/actions`: what this feature exports to features that name `actions` in `needs`. */
export { type GatewayRequest } from "../../src/core.ts";
export {
  ACTION_RESPONSE,
  buildActionReply,
  commitPreview,
  createApprovalMac,
  readActionRecord,
} from "./action-record.ts";
export { readSession } from "./agent-sessions.ts";
export {
  assertMeetsOversightMode,
  findVoteIneligibility,
  isRequesterKnown,
  maySelfConfirm,
  readApproverEligibility,
  toCountedVotes,
} from "./approver-plans.ts";
export { isUnderAuthority } from "./authority-inputs.ts";
export { BarredError } from "./barred.ts";
export {
  approvalExpiredError,
  approvalPeriodMs,
  assertPending,
  cancelVisibleAction,
  findVotedPinChanges,
  pendingAction,
  type PreparedVote,
  prepareVote,
  recordUnvotableAction,
  recordVote,
  type UnvotableAction,
} from "./cast-vote.ts";
export {
  answerButton,
  codeOf,
  describeStatus,
  detailOf,
  type LinkResponse,
  linkToken,
  listLinkFacts,
  openButtons,
} from "./chat-vote.ts";
export { type ApproveAddition } from "./cli/approve-addition.ts";
export { printAction } from "./cli/print-action.ts";
export { type PinChange } from "./compare-pins.ts";
export { compareRequest } from "./compare-request.ts";
/** Loads the client only when a command calls it. */
export const readSignInOrigin: typeof import("./cli/watch/terminal-session.ts").readSignInOrigin = async (...args) =>
  (await import("./cli/watch/terminal-session.ts")).readSignInOrigin(...args);
export { matchesTerminalCode, terminalChallenge, terminalCode } from "./cli/watch/terminal-code.ts";
export { countPeople, isNewPerson } from "./count-people.ts";
export { decideByRules, findRejection } from "./decide-action.ts";
export { digestSchema, GrantSum } from "./entry-parts.ts";
export { LedgerEntry } from "./entry-schemas.ts";
export { scheduleExpiry } from "./expiry.ts";
export {
  describeRefusal,
  describeRetryableFault,
  type GateAction,
  type GateOutcome,
  type GateRequest,
  readApiFault,
  submitAndStart,
  submitAndStartAll,
} from "./gateway/gate.ts";
export { createGatewayFacade, GATEWAY_OPTIONS } from "./gateway/gateway-facade.ts";
export { raiseToReports, releaseLimitUses, writeLimitUses } from "./limit-usage.ts";
export { decodeMeta } from "./meta.ts";
export { writePastActions } from "./past-actions.ts";
export { factsChangedError, findPinChanges } from "./pins.ts";
export { prefetchRedecision, readRequest } from "./prefetch-redecision.ts";
export { createFactReadingHost } from "./read-inputs.ts";
export { readRecordedName } from "./recorded-name.ts";
export {
  collectCurrentFacts,
  noLongerAllowedError,
  recordDenial,
  recordEdit,
  type Redecision,
  reevaluateAction,
  requireMoreApprovals,
} from "./redecision.ts";
export { digestRejection } from "./rejection.ts";
export { newSalt } from "./salt.ts";
export {
  ActionBody,
  ActionRecord,
  ApprovalBody,
  CancelBody,
  IdParams,
  MAX_QUESTIONS,
  SESSION_HEADER,
} from "./schemas.ts";
export { coversChain, findSelfApproval } from "./self-approval.ts";
export { readVoteStatement, requireVoteSigner } from "./signed-vote-routes.ts";
export { Nonce, PasskeyResponse, VoteChallenge } from "./signed-vote-schemas.ts";
export {
  assertAgentBinding,
  prefetchSubmissionFacts,
  type PreparedSubmission,
  prepareSubmission,
  readMeta,
  recordSubmission,
} from "./submit.ts";
export {
  findMatchingHistory,
  readVerifiedHistory,
  recordAlteredError,
  type VerifiedHistory,
  verifyAgainstLedger,
  verifyStoredContent,
} from "./verify-record.ts";
export {
  assertNotErased,
  contentByteLength,
  isOverdue,
  isStartable,
  rereadAction,
  visibleAction,
  withCurrentStatus,
} from "./visible-action.ts";
export { principalsBehindCredential, principalsBehindVote, principalsOfKeys } from "./vote-principals.ts";
export { assertNotSelf, assertToken, verifyTokenVoter, type Vote, type Voter } from "./voter.ts";
export { describeUncovered, findUserAsApprover, findVotingBlock, type PendingApprover } from "./voting-capacity.ts";
export { isAgentOfAction } from "./wait-tracker.ts";

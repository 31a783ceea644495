/** `assent/actions`: what features that name `actions` in `needs` may use of this one. */
export { type GatewayRequest } from "../../src/core.ts";
export { commitPreview, createApprovalMac, readActionRecord } from "./action-record.ts";
export { readSession } from "./agent-sessions.ts";
export { maySelfConfirm, readApproverEligibility } from "./approver-plans.ts";
export { pendingAction } from "./ask-agent.ts";
export { isUnderAuthority } from "./authority-inputs.ts";
export { BarredError } from "./barred.ts";
export {
  approvalPeriodMs,
  cancelVisibleAction,
  findVotedPinChanges,
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
export { matchesTerminalCode, terminalChallenge } from "./cli/watch/terminal-code.ts";
export { type PinChange } from "./compare-pins.ts";
export { compareRequest } from "./compare-request.ts";
export { countPeople, isNewPerson } from "./count-people.ts";
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
export { releaseLimitUses } from "./limit-usage.ts";
export { factsChangedError, findPinChanges } from "./pins.ts";
export { prefetchRedecision, readRequest } from "./prefetch-redecision.ts";
export { createFactReadingHost } from "./read-inputs.ts";
export { readRecordedName } from "./recorded-name.ts";
export {
  noLongerAllowedError,
  recordDenial,
  type Redecision,
  reevaluateAction,
  requireMoreApprovals,
} from "./redecision.ts";
export { ActionBody, ActionRecord, CancelBody, IdParams, SESSION_HEADER } from "./schemas.ts";
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
  hasRecordedRequest,
  matchesLedger,
  readVerifiedHistory,
  recordAlteredError,
  type VerifiedHistory,
  verifyAgainstLedger,
} from "./verify-record.ts";
export { assertNotErased, isOverdue, isStartable, visibleAction, withCurrentStatus } from "./visible-action.ts";
export { principalsBehindCredential, principalsBehindVote, principalsOfKeys } from "./vote-principals.ts";
export { assertToken, type Vote } from "./voter.ts";
export { findUserAsApprover, findVotingBlock, type PendingApprover } from "./voting-capacity.ts";

/** `assent/actions`: what features that name `actions` in `needs` may use of this one. */
export { pendingAction } from "./ask-agent.ts";
export { maySelfConfirm, readApproverEligibility } from "./approver-plans.ts";
export {
  answerButton,
  codeOf,
  describeStatus,
  detailOf,
  linkToken,
  type LinkResponse,
  listLinkFacts,
  openButtons,
} from "./chat-vote.ts";
export type { ApproveAddition } from "./cli/approve-addition.ts";
export { matchesTerminalCode, terminalChallenge } from "./cli/watch/terminal-code.ts";
export { countPeople, isNewPerson } from "./count-people.ts";
export { GrantSum } from "./entry-parts.ts";
export { LedgerEntry } from "./entry-schemas.ts";
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
export type { GatewayRequest } from "../../src/core.ts";
export { readRequest } from "./prefetch-redecision.ts";
export { readRecordedName } from "./recorded-name.ts";
export { ActionRecord, IdParams } from "./schemas.ts";
export { coversChain, findSelfApproval } from "./self-approval.ts";
export { readSession } from "./agent-sessions.ts";
export { readVerifiedHistory, recordAlteredError, verifyAgainstLedger } from "./verify-record.ts";
export { principalsBehindCredential, principalsBehindVote, principalsOfKeys } from "./vote-principals.ts";
export { findUserAsApprover, findVotingBlock, type PendingApprover } from "./voting-capacity.ts";
export { assertNotErased, isOverdue, visibleAction } from "./visible-action.ts";

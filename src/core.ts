/**
 * `assent/core`: what the resources that make up the product need beyond `assent/plugin`. A plugin that imports it works on
 * actions, keys, policies and entries directly, so it can break what the ledger promises. Prefer `assent/plugin`.
 */
export type { BacktestCounts, BacktestReport } from "./contract/backtest.ts";
export { closed, orNull, text, time } from "./contract/entry-parts.ts";
export { LedgerEntry } from "./contract/entry-schemas.ts";
export type {
  AgentFacts,
  LeaderLease,
  OpenActionCursor,
  PolicyEdit,
  Prefetch,
  SignedCheckpoint,
  UrgentJob,
} from "./contract/host.ts";
export type { PolicyState } from "./contract/policy-source.ts";
export { createRepeatingTask } from "./contract/repeating-task.ts";
export type { ParsedPolicy, SerializedPolicySet } from "./contract/trials.ts";
export { type ActionEntry, differingColumns, buildActionHistory } from "./domain/action-history.ts";
export { ACTION_STATUSES, type ActionRequest } from "./domain/actions.ts";
export { SELF_RELATION_REASONS, type SelfRelation, findSelfRelation } from "./domain/approval.ts";
export { canonicalBytes, canonicalText } from "./domain/canonical.ts";
export { buildKeyEntry, toPolicyChange } from "./domain/changes.ts";
export { parseVkey } from "./domain/checkpoint.ts";
export { DENIED_BY, findDeniedBy } from "./domain/denied-by.ts";
export {
  type Actor,
  type AgentEntry,
  type ApprovalEntry,
  type EntryType,
  type ErasureEntry,
  type ExecutionEntry,
  type PolicyChange,
  type RedecisionEntry,
  type StopEntry,
  encodeEntry,
} from "./domain/entries.ts";
export { findErasureBlocker } from "./domain/erasure.ts";
export { concatBytes, equalBytes, fromHex, sha256, toBase64, toBase64Url, toHex } from "./domain/hash.ts";
export { type JsonObject, type JsonValue, isJsonObject } from "./domain/json.ts";
export { commitSalted, matchesCommitment, decodeSalted } from "./domain/kept.ts";
export { USE_RETENTION_MS, mayHaveRun, selectCountedLimits } from "./domain/limit-uses.ts";
export { hashLeaf } from "./domain/merkle.ts";
export { MAX_META_BYTES, isTraceparent, countMetaBytes, decodeMeta, commitMeta } from "./domain/meta.ts";
export { foldName } from "./domain/names.ts";
export { actionEntryFields, cancellationEntry } from "./domain/open-actions.ts";
export { FOLD } from "./domain/outline.ts";
export { isValidOwner } from "./domain/owner.ts";
export { commitPast, restoreFacts, findPast, decodePasts, commitFacts } from "./domain/past.ts";
export {
  PERMIT_ALGORITHMS,
  PERMIT_TYPE,
  type PermitFault,
  type PermitTerms,
  type PermitSubject,
  permitDecisionHash,
  computePermitTimes,
} from "./domain/permit.ts";
export { findUnknownChannels } from "./domain/policy/check/channels.ts";
export { findRuleWarnings } from "./domain/policy/check/rule-warnings.ts";
export { isNeverAllowed } from "./domain/policy/check/never-allowed.ts";
export type { CompiledPolicySet } from "./domain/policy/compile/compile.ts";
export { matchesAnyName } from "./domain/policy/compile/name-patterns.ts";
export { decide, decideEvaluation, decideForEntry } from "./domain/policy/decide/decide.ts";
export { Evaluation } from "./domain/policy/decide/evaluation.ts";
export { type MatchedLimit, findMatchedLimits, findUsedBefore } from "./domain/policy/decide/limit-facts.ts";
export { findMembersShownFirst } from "./domain/policy/decide/shown-first.ts";
export { rejectionHoldMs, approvalValidityMs } from "./domain/policy/decide/validity.ts";
export { diffPolicies } from "./domain/policy/diff/diff.ts";
export { MAX_FILE_LENGTH } from "./domain/policy/parse/parse.ts";
export { PolicySchema } from "./domain/policy/parse/schema.ts";
export type {
  Decision,
  Facts,
  LimitFact,
  PolicyDocument,
  RecordedFacts,
  RejectionFact,
} from "./domain/policy/types.ts";
export {
  computeActionDigest,
  commitDigest,
  commitResult,
  parseStoredRequest,
  encodeRequest,
  parseCompleteRequest,
} from "./domain/request.ts";
export { PRESETS, type Preset, hasScope, canCreateApprovers } from "./domain/scopes.ts";
export { type RecordedKey, countPeople, listKeyMakers } from "./domain/standing.ts";
export { type Stop, type Stops, listActiveStops, isStopActive } from "./domain/stops.ts";
export { suggest } from "./domain/suggest.ts";
export { toSingleLine } from "./domain/text.ts";
export { TILE_WIDTH, encodeEntryBundle, parseTilePath } from "./domain/tiles.ts";
export { parseRfc3339 } from "./domain/time.ts";
export { formatTlogProof } from "./domain/tlog-proof.ts";
export { type TokenClaims, type TokenCheckResult, checkToken, makeToken, decodeToken } from "./domain/tokens.ts";
export { type AssetFile, createAssets, createDocument } from "./http/resource/assets.ts";
export { BacktestResponse, FlipFields, SpanFields, renderBacktest, parseSpan } from "./http/resource/backtest.ts";
export { parseCandidates } from "./http/resource/candidates.ts";
export {
  type GateAction,
  type GateRequest,
  type GateOutcome,
  readFault,
  submitAndStart,
  submitAndStartAll,
  describeRefusal,
  describeFault,
} from "./http/resource/gate.ts";
export { GATEWAY_OPTIONS, createGatewayFacade } from "./http/resource/gateway-facade.ts";
export type { GatewayRequest } from "./http/resource/gateway.ts";
export {
  type IdempotentCall,
  readIdempotencyKey,
  idempotencyLookup,
  idempotencyConflict,
} from "./http/resource/idempotency.ts";
export { UnreadableRequest, readJsonObject } from "./http/resource/json-body.ts";
export { invalidCursor, decodeSeqCursor, listReply, readPage } from "./http/resource/paging.ts";
export { principalsBehindVote } from "./http/resource/vote-principals.ts";

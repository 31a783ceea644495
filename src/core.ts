/**
 * `assent/core`: what the resources that make up the product need beyond `assent/plugin`. A plugin that imports it works on
 * actions, keys, policies and entries directly, so it can break what the ledger promises. Prefer `assent/plugin`.
 */
export type { BacktestCounts, BacktestReport } from "./contract/backtest.ts";
export { closed, orNull, text, time } from "./contract/entry-parts.ts";
export { LedgerEntry } from "./contract/entry-schemas.ts";
export type {
  AgentFacts,
  Duty,
  OpenPlace,
  PolicyEdit,
  Prefetch,
  SignedCheckpoint,
  UrgentJob,
} from "./contract/host.ts";
export type { PolicyState } from "./contract/policy-source.ts";
export { repeat } from "./contract/repeat.ts";
export type { ReadPolicy, WrittenSet } from "./contract/trials.ts";
export { type ActionEntry, differences, historyOf } from "./domain/action-history.ts";
export { ACTION_STATUSES, type ActionRequest } from "./domain/actions.ts";
export { RELATION_WORDS, type SelfRelation, selfRelation } from "./domain/approval.ts";
export { canonicalBytes, canonicalText } from "./domain/canonical.ts";
export { keyEntry, policyChange } from "./domain/changes.ts";
export { parseVkey } from "./domain/checkpoint.ts";
export { DENIED_BY, deniedBy } from "./domain/denied-by.ts";
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
  sealEntry,
} from "./domain/entries.ts";
export { openBecause } from "./domain/erasure.ts";
export { concat, equalBytes, fromHex, sha256, toBase64, toBase64Url, toHex } from "./domain/hash.ts";
export { type JsonObject, type JsonValue, isJsonObject } from "./domain/json.ts";
export { commitKept, opensKept, readKept } from "./domain/kept.ts";
export { USES_KEPT, mayHaveRun, usedBy } from "./domain/limit-uses.ts";
export { hashLeaf } from "./domain/merkle.ts";
export { MAX_META_BYTES, isTraceparent, metaBytes, openMeta, sealMeta } from "./domain/meta.ts";
export { foldName } from "./domain/names.ts";
export { aboutAction, cancellation } from "./domain/open-actions.ts";
export { FOLD } from "./domain/outline.ts";
export { isOwner } from "./domain/owner.ts";
export { commitPast, openFacts, openPast, readPasts, sealFacts } from "./domain/past.ts";
export {
  PERMIT_ALGORITHMS,
  PERMIT_TYPE,
  type PermitFault,
  type PermitGrant,
  type PermitSubject,
  groundOf,
  permitTimes,
} from "./domain/permit.ts";
export { unknownChannels } from "./domain/policy/check/channels.ts";
export { isNeverAllowed } from "./domain/policy/check/never-allowed.ts";
export type { CompiledPolicySet } from "./domain/policy/compile/compile.ts";
export { matchesAnyName } from "./domain/policy/compile/name-patterns.ts";
export { decide, decideOn, decideToRecord } from "./domain/policy/decide/decide.ts";
export { Evaluation } from "./domain/policy/decide/evaluation.ts";
export { type LimitNeed, limitNeeds, usedBefore } from "./domain/policy/decide/limit-facts.ts";
export { shownFirst } from "./domain/policy/decide/shown-first.ts";
export { rejectionHoldOf, validityOf } from "./domain/policy/decide/validity.ts";
export { diffPolicies } from "./domain/policy/diff/diff.ts";
export { MAX_FILE } from "./domain/policy/parse/parse.ts";
export { PolicySchema } from "./domain/policy/parse/schema.ts";
export type {
  Decision,
  Facts,
  LimitFact,
  PolicyDocument,
  RecordedFacts,
  RejectionFact,
} from "./domain/policy/types.ts";
export { actionDigest, commit, commitResult, requestOf, sealRequest, wholeRequestOf } from "./domain/request.ts";
export { PRESETS, type Preset, holds, makesApprovers } from "./domain/scopes.ts";
export { type RecordedKey, countPeople, lineOf } from "./domain/standing.ts";
export { type Stop, type Stops, heldStops, isHeld } from "./domain/stops.ts";
export { suggest } from "./domain/suggest.ts";
export { oneLine } from "./domain/text.ts";
export { TILE_WIDTH, encodeEntryBundle, parseTilePath } from "./domain/tiles.ts";
export { parseRfc3339 } from "./domain/time.ts";
export { formatTlogProof } from "./domain/tlog-proof.ts";
export { type TokenClaims, type TokenVerdict, checkToken, makeToken, readToken } from "./domain/tokens.ts";
export { type AssetFile, createAssets, createDocument } from "./http/resource/assets.ts";
export { BacktestAnswer, FlipFields, SpanFields, backtestJson, spanOf } from "./http/resource/backtest.ts";
export { candidatesOf } from "./http/resource/candidates.ts";
export {
  type GateAction,
  type GateRequest,
  type Verdict,
  faultIn,
  passGate,
  passTogether,
  refusalOf,
  undecided,
} from "./http/resource/gate.ts";
export { GATEWAY_OPTIONS, gatewayFacade } from "./http/resource/gateway-facade.ts";
export type { Seen } from "./http/resource/gateway.ts";
export { type IdempotentCall, idempotencyKeyOf, nameOf, usedOtherwise } from "./http/resource/idempotency.ts";
export { Unreadable, readJsonObject } from "./http/resource/json-body.ts";
export { badCursor, decodeSeqCursor, listReply, readPage } from "./http/resource/paging.ts";
export { behind } from "./http/resource/people.ts";

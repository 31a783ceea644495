/**
 * `assent/core`: what the product's own plugins use in addition to `assent/plugin`. Prefer `assent/plugin`.
 * `defineCorePlugin` gives a plugin the `CoreHost`, which can change actions, keys, policies and entries, and so can
 * break the guarantees of the ledger. The operator has to grant this privilege with `core: true` in `assent.yaml`.
 * Without a host, no export can reach the service.
 */
import type { Static, TObject } from "@sinclair/typebox";
import type { CoreHost } from "./contract/core-host.ts";
import type { Contributions, Plugin } from "./plugin.ts";

/** A plugin whose `setup` receives the privileged host. */
interface CorePlugin<Options extends TObject> extends Omit<Plugin<Options>, "core" | "setup"> {
  setup(host: CoreHost, options: Static<Options>): Contributions | Promise<Contributions>;
}

/**
 * Defines a plugin that receives the privileged host. For a third-party plugin, the operator must grant the privilege
 * in `assent.yaml`; otherwise the service does not start.
 * @example
 * // assent.yaml:  plugins: [built-in, { name: ./ledger-size.ts, core: true }]
 * export default defineCorePlugin({
 *   name: "ledger-size",
 *   setup: (host) => ({ start: async () => host.log.info(`${(await host.ledger.head()).size} entries`) }),
 * });
 */
export function defineCorePlugin<Options extends TObject>(plugin: CorePlugin<Options>): Plugin<Options> {
  return { ...plugin, core: true };
}

// The privileged host
export type {
  CoreHost,
  LeaderLease,
  Rights,
  RightsReader,
  PasskeyResponse,
  SessionPasskeys,
} from "./contract/core-host.ts";
export type {
  AgentFacts,
  LedgerTransaction,
  Prefetch,
  RecordedEntry,
  SignedCheckpoint,
  UrgentJob,
  Snapshot,
} from "./contract/ledger.ts";
export { type Channels, ChannelError, type Messenger, type MessengerParts } from "./contract/messenger.ts";
export type { ChannelSettings } from "./contract/channel-settings.ts";
export type { RowSeals } from "./contract/row-seals.ts";
export type { MessageBase } from "./contract/notifier.ts";
export { formatPrincipal } from "./messages/approval-message-text.ts";
export { runInPluginContext } from "./serve/stray-errors.ts";
export { rightsOfUser } from "./identity/users.ts";
export { createRepeatingTask, type RepeatingTask } from "./cluster/repeating-task.ts";
export { TimeLimitError, withTimeLimit } from "./cluster/time-limit.ts";
export { createSharedRead } from "./ledger/shared-read.ts";
export { callerId } from "./domain/caller-id.ts";
export { syncFolder } from "./ledger/sign/checkpoint-file.ts";

// Actions, approvals and their history
export { ACTION_STATUSES, type ActionRequest, actionStatusAt } from "./domain/actions.ts";
export { decodeAuthority, encodeAuthority, toActorClaim } from "./domain/action-authority.ts";
export {
  authorityUsageFacts,
  authorityUsePolicy,
  listAuthorityUses,
  listCountedLinks,
} from "./domain/policy/decide/authority.ts";
export { listDelegators } from "./domain/policy/decide/delegators.ts";
export { resolveObligations } from "./domain/policy/decide/resolve-obligations.ts";
export {
  type ActionEntry,
  type ActionHistory,
  buildActionHistory,
  toCountedVote,
  type ApprovalRequirement,
  type RecordedApproval,
  type RecordedEdit,
  findApprovalTerms,
  isRequestForApproval,
  readActionHistory,
} from "./domain/action-history.ts";
export { findDifferingColumns } from "./domain/differing-columns.ts";
export {
  CHANGED_BY_POLICIES,
  effectiveCommitment,
  decodeEdit,
  combineEditableParameters,
  effectiveRequestHash,
  effectiveRequest,
  encodeEdit,
  findParameter,
} from "./domain/edited-request.ts";
export { findAlteredContent, hasRecordedRequest } from "./domain/recorded-content.ts";
export { applyDecisionObligations } from "./domain/obligations.ts";
export {
  findRedactedPaths,
  omitRedacted,
  omitRedactedEditable,
  redactParams,
  redactRow,
} from "./domain/policy/decide/redact.ts";
export { SELF_RELATION_REASONS, type SelfRelation, findSelfRelation } from "./domain/approval.ts";
export { DENIED_BY, findDeniedBy } from "./domain/denied-by.ts";
export {
  commitQuestions,
  commitQuestionText,
  decodeQuestions,
  encodeQuestions,
  questionsDigest,
  type StoredQuestion,
} from "./domain/questions.ts";
export { actionEntryFields, cancellationEntry, NON_VOTE_FIELDS } from "./domain/open-actions.ts";
export {
  commitDigest,
  commitResult,
  computeActionDigest,
  encodeRequest,
  parseCompleteRequest,
  parseStoredRequest,
} from "./domain/request.ts";
export {
  commitFacts,
  commitSaltedFacts,
  decodeSaltedFacts,
  findFactsByCommitment,
  restoreFacts,
  type SaltedFacts,
} from "./domain/salted-facts.ts";
export type { Pin } from "./domain/policy/policy-types.ts";
export { commitPins, type PinnedValue, readPins } from "./domain/pins.ts";
export { commitSalted, decodeSalted, encodeSalted } from "./domain/salted-commitment.ts";
export { ERASABLE_PARTS, type ErasablePart } from "./domain/erasure.ts";
export { commitRejectionDigests } from "./domain/erased-rejection.ts";
export { type RecordedKey, isOfUnknownPerson, listKeyMakers, UNKNOWN_PERSON } from "./domain/vote-people.ts";
export { LINK_KEY_ID } from "./domain/vote-method.ts";
export {
  type TokenCheckResult,
  type TokenClaims,
  type TokenForm,
  checkToken,
  decodeToken,
  digestAddress,
  makeToken,
} from "./domain/tokens.ts";
export { type GroupLimits, intersectLimits, isWithinLimits } from "./domain/groups.ts";
export { type Visibility, canAdministerAgent, canSee, canSeeAgent, extendVisibility } from "./domain/visibility.ts";
export { describePrincipal, type PrincipalNames, readPrincipalNames } from "./identity/principal-names.ts";
export { rightsReader } from "./http/resource/rights-reader.ts";
export { confirmCredential, withoutDelegations } from "./http/resource/confirm-credential.ts";

export {
  REVIEW_DEADLINE_MS,
  findOutstandingReviewers,
  MAX_REVIEW_REASON,
  type RequiredReviewer,
  REVIEW_ANSWERS,
  REVIEWER_FAILURES,
  type ReviewFault,
  reviewsApprove,
} from "./domain/reviews.ts";

// Limits and permits
export {
  listUses,
  mayHaveRun,
  recomputeLimitUses,
  type ReportedAmounts,
  reportedUsePolicy,
  USE_RETENTION_MS,
} from "./domain/limit-uses.ts";
export {
  PERMIT_ALGORITHMS,
  PERMIT_TYPE,
  type PermitSubject,
  type PermitTerms,
  readCheckedPermit,
} from "./domain/permit.ts";
export { findEffects, findMemberships, toEffectFact } from "./domain/policy/decide/effect-keys.ts";
export { findHistoryReads, keepMembers, listHistoriesOf, toHistoryFact } from "./domain/policy/decide/history-facts.ts";
export {
  type FactResult,
  type FactCall,
  findFactReads,
  MAX_FACT_INPUT,
  listFactCalls,
  toSourceFacts,
} from "./domain/policy/decide/fact-reads.ts";
export { givenRequesterFacts } from "./domain/policy/test/given-facts.ts";
export { PreparationRequired } from "./contract/ledger.ts";
export {
  type MatchedLimit,
  findMatchedLimits,
  findRecordedUsage,
  isExceeded,
  withAssumedActivation,
  subjectOf,
} from "./domain/policy/decide/limit-facts.ts";
export { startOfWindow } from "./domain/policy/decide/window.ts";

// Policies and decisions
export { findUnknownChannels } from "./domain/policy/check/unknown-channels.ts";
export { listFunctions, listTools, listVariables } from "./domain/policy/check/expression-names.ts";
export { findRuleWarnings } from "./domain/policy/check/rule-warnings.ts";
export { findScopeFault, findSumFault } from "./domain/policy/check/scope-fault.ts";
export { readUsageName } from "./domain/policy/compile/compile-definition.ts";
export { omitRedactedUsage } from "./domain/policy/check/redacted-reads.ts";
export { type Alternative, findAlternative, readParameter } from "./domain/policy/decide/alternative.ts";
export { describeComparisons } from "./domain/policy/condition/compared-numbers.ts";
export {
  buildPolicySet,
  type CompiledLimit,
  type CompiledPolicy,
  type CompiledPolicySet,
  type CompiledRule,
  compilePolicySet,
  emptyPolicySet,
  PolicyCompileError,
  policySetDigest,
} from "./domain/policy/compile/compile.ts";
export {
  celLiteral,
  celMember,
  celPath,
  REQUEST_PARTS,
  type RequestPart,
} from "./domain/policy/condition/cel-literal.ts";
export { type CompiledResultRule, evaluateResultCondition } from "./domain/policy/compile/compile-results.ts";
export { chargeSteps, Meter, runMetered } from "./domain/policy/condition/cel-meter.ts";
export { matchesOf } from "./domain/policy/condition/cel-pattern-functions.ts";
export { NameMatches } from "./domain/policy/decide/name-matches.ts";
export { matchesAnyName, matchNames } from "./domain/policy/compile/name-patterns.ts";
export { doesGlobInclude, doGlobsOverlap, isGlob, matchGlob } from "./domain/policy/compile/glob.ts";
export { findExtendedName, listNameReadings } from "./domain/policy/compile/name-variants.ts";
export {
  applyStepFacts,
  decide,
  decideForEntry,
  type DecisionForEntry,
  evaluateAllPolicies,
  findAgentBar,
  type StepFacts,
} from "./domain/policy/decide/decide.ts";
export { Evaluation } from "./domain/policy/decide/evaluation.ts";
export { hasUnrecordedInputs } from "./domain/policy/decide/unrecorded-inputs.ts";
export { type PreviewPart, renderPreview, renderValue } from "./domain/policy/decide/preview.ts";
export { findPresentation, presentRequest } from "./domain/policy/decide/request-presentation.ts";
export { approvalValidityMs, rejectionHoldMs } from "./domain/policy/decide/validity.ts";
export { diffPolicies } from "./domain/policy/diff/diff.ts";
export { MAX_FILE_LENGTH } from "./domain/policy/parse/parse.ts";
export {
  GivenAgent,
  GivenFacts,
  GivenPrincipal,
  PolicySchema,
  PolicyTestSchema,
} from "./domain/policy/parse/policy-schema.ts";
export type {
  AuthorityFact,
  AuthorityLink,
  Decision,
  Effect,
  Facts,
  GrantFact,
  SumCap,
  GrantTerms,
  EffectFact,
  HistoryFact,
  LimitFact,
  PastAction,
  PolicyDocument,
  PolicySetDocument,
  RecordedFacts,
  RejectionFact,
  ResultEffect,
  SessionFact,
} from "./domain/policy/policy-types.ts";
export type { PolicyActivation, PolicyUpdate } from "./contract/policies.ts";
export type { PolicyState } from "./contract/policy-source.ts";
export type { CandidatePolicies, ParsedPolicy, SerializedPolicySet, TrialContext } from "./contract/trials.ts";
export { siblingModule } from "./policies/worker-thread.ts";
export { createYieldIfSlow } from "./policies/yield-if-slow.ts";

export { isBaselinePolicy } from "./policies/baseline.ts";
export { renderDiffMarkdown, renderDiffTotals } from "./policies/diff-markdown.ts";
export { markdownCell } from "./policies/markdown.ts";
export { formatFault, locateFault } from "./policies/policy-store.ts";
export { diffPolicySets, type SetDiff } from "./domain/policy/diff/set-diff.ts";
export { findFreeMembers } from "./domain/scope-freedom.ts";
export {
  computeGrantUse,
  findGrantUsage,
  type GrantUsage,
  grantUseLimitPolicy,
  matchGrant,
  usageOf,
} from "./domain/policy/decide/grant.ts";

// Keys and agents
export { assertAgentUnaltered } from "./identity/agents.ts";
export { registeredAgentState } from "./domain/registered-agents.ts";
export { SCOPE_PRESETS, canCreateApprovers, hasScope } from "./domain/scopes.ts";
export { keyState } from "./domain/recorded-keys.ts";
export { type ChangedPolicy, newPolicy } from "./domain/recorded-policies.ts";
export {
  findAssertionFault,
  type VoteSignature,
  MAX_SIGNED_VOTES,
  type PasskeyAssertion,
  voteDigest,
  createVotesChallenge,
  type VoteGrantTerms,
  type VoteStatement,
} from "./domain/gesture.ts";
export { isSecureOrigin } from "./domain/loopback.ts";
export { verifyPasskeySignature } from "./identity/passkey-signature.ts";
export { parseCoseKey } from "./domain/passkey-key.ts";
export { openText, sealText } from "./identity/sealed-text.ts";
export { describeSecretWeakness } from "./identity/secret-strength.ts";
export {
  digestEmail,
  domainOfEmail,
  findAmbiguity,
  findReferredUser,
  REFERENCE_FORMS,
  referenceKey,
} from "./domain/person-reference.ts";
export { displayPrincipal, principalOfKey, principalOfUser, userOfPrincipal } from "./domain/principals.ts";
export { renderCsvCell } from "./domain/csv.ts";
export { foldName, sameName } from "./domain/names.ts";
export { type Rota, shiftAt, shiftsBetween } from "./domain/rota.ts";

// Users
export {
  delegationState,
  type Delegation,
  delegationStatus,
  limitsOfDelegation,
  MAX_DELEGATION_MS,
} from "./domain/delegations.ts";
export { type Role, ROLE_NAMES, scopesBeyondOwner, scopesOfRoles } from "./domain/roles.ts";
export {
  userState,
  findUser,
  findUserByIdentity,
  createEnrolmentLinkRecord,
  hasEnrolled,
  newUser,
  toRecordedKey,
  type Passkey,
  type User,
  type Users,
} from "./domain/users.ts";

// Ledger entries, checkpoints and proofs
export {
  type Actor,
  type AgentEntry,
  type ApiKeyEntry,
  type ApprovalEntry,
  type DecisionEntry,
  type DelegationEntry,
  type EntryType,
  type ErasureEntry,
  type ExecutionEntry,
  type LogKeyEntry,
  type PluginEntry,
  type RecordedPolicyChange,
  type RedecisionEntry,
  type ReviewEntry,
  type UserEntry,
  decodeEntry,
  encodeEntry,
  isCoreEntry,
} from "./domain/entries.ts";
export { findFirstEntry } from "./ledger/find-first-entry.ts";
export { readFollowedPages } from "./ledger/followed-pages.ts";
export { toActor } from "./domain/actor.ts";
export {
  Actor as ActorSchema,
  closed,
  countSchema,
  orNull,
  textSchema,
  timeSchema,
} from "./http/resource/entry-parts.ts";
export {
  isNoteName,
  NoteError,
  type NoteSigner,
  openCheckpoint,
  parseCheckpoint,
  parseVkey,
  readNote,
  SIGNATURE_PREFIX,
  type VerifySignature,
} from "./domain/checkpoint.ts";
export { formatCosignature, formatCosignerVkey, parseCosignerVkey, verifyCosignatures } from "./domain/cosignature.ts";
export { verifyEd25519 } from "./identity/vault.ts";
export { createProofReader } from "./ledger/reader.ts";
export { hashLeaf, verifyConsistency } from "./domain/merkle.ts";
export { TILE_WIDTH, encodeEntryBundle, parseTilePath } from "./domain/tiles.ts";
export { formatTlogProof } from "./domain/tlog-proof.ts";
export { VERSION } from "./version.ts";

// Requests and responses
export { type AssetFile, createAssets, createDocument } from "./http/resource/assets.ts";
export {
  type IdempotentCall,
  REPLAYED_HEADERS,
  findCreatedResource,
  idempotencyConflictRefusal as idempotencyConflict,
  toIdempotencyLookup,
  readIdempotencyKey,
  readIdempotentCall,
  recordCreatedResource,
} from "./http/resource/idempotency.ts";
export { type GatewayRequest, assertUnambiguous, toHttpAction } from "./domain/http-action.ts";
export { UnreadableRequest, readJson, readJsonObject } from "./domain/json-body.ts";
export {
  decodeSeqCursor,
  encodeCursor,
  invalidCursorRefusal as invalidCursor,
  listReply,
  readPage,
  slicePageBySeq,
} from "./http/resource/paging.ts";

// Bytes, JSON, text and time
export {
  type ApproverPlan,
  type CountedVote,
  combinePlans,
  countApproversNeeded,
  evaluatePlanProgress,
  strictestOversightMode,
  requiresSignature,
  areSamePlans,
  satisfiesPlans,
  listStageChannels,
} from "./domain/approvers.ts";
export { canonicalBytes, canonicalText } from "./domain/canonical.ts";
export {
  concatBytes,
  equalBytes,
  fromBase64,
  fromBase64Url,
  fromHex,
  sha256,
  sha256Hex,
  toBase64,
  toBase64Url,
  toHex,
  utf8,
} from "./domain/hash.ts";
export { decodeUtf8, type JsonObject, type JsonValue, isJsonObject } from "./domain/json.ts";
export { escapePointerToken, unescapePointerToken } from "./domain/json-pointer.ts";
export { HIDDEN_LINES_PATTERN } from "./domain/outline.ts";
export { findSimilarName } from "./domain/similar-name.ts";
export { clipText, hasHiddenCharacters, toSingleLine } from "./domain/text.ts";
export { renderMarkedText } from "./domain/visible-text.ts";
export { parseDuration, parseRfc3339 } from "./domain/time.ts";
export { toInstant, utcOffset } from "./domain/time-zone.ts";

// Programs
export { ProgramError, type ProgramResult, runProgram } from "./programs/run-program.ts";

// Deliveries
export { DELIVERY_RETRY_MS } from "./contract/notifier.ts";

// Features with steps of decisions, and what they do with votes and ends
export type { ActionOutcome, Reaction, ReactionTransaction } from "./contract/reaction.ts";
export type { SoleApproval } from "./contract/sole-approval.ts";
export type { Guard } from "./contract/guard.ts";
export type { Grantor, VotedGrant, VoteAddition } from "./contract/vote-addition.ts";
export type {
  CountedDecision,
  ApprovalSubmission,
  DecisionStep,
  RelaxableAction,
  StartPreparation,
  StepReader,
  SubmittedAction,
} from "./contract/step.ts";

// Features that place bars
export { parseEntryTime } from "./domain/time.ts";
export type { Bar } from "./domain/policy/policy-types.ts";

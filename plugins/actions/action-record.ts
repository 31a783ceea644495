/** Renders an action for the API, limited to what one credential can see. */
import {
  canonicalBytes,
  commitDigest,
  commitQuestions,
  type CompiledPolicySet,
  type CoreHost,
  type Decision,
  decodeAuthority,
  decodeEntry,
  decodeEdit,
  decodeQuestions,
  effectiveRequestHash,
  effectiveRequest,
  findDeniedBy,
  type GrantTerms,
  makeToken,
  evaluatePlanProgress,
  strictestOversightMode,
  parseCompleteRequest,
  presentRequest,
  questionsDigest,
  omitRedactedEditable,
  redactRow,
  type ReviewEntry,
  sha256Hex,
  toActorClaim,
  type TokenClaims,
  type PrincipalNames,
  readPrincipalNames,
  userState,
  utf8,
} from "../../src/core.ts";
import { type Credential, Refusal, type Reply, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow, ApprovalRow } from "../../src/storage/index.ts";
import { voteMethod } from "../../src/browser.ts";
import { type ComparedMember, compareRequest } from "./compare-request.ts";
import { decodeMeta } from "./meta.ts";
import { hasWaitingAgent } from "./wait-tracker.ts";
import type { PermitOutcome, Permit } from "./grant-permit.ts";
import { withCurrentStatus } from "./visible-action.ts";
import { renderPins } from "./render-pins.ts";
import { readRejection } from "./rejection.ts";
import type { Rejection } from "./rejection-schemas.ts";
import { ActionRecord, GATE_OUTCOMES } from "./schemas.ts";
import { toCountedVotes } from "./approver-plans.ts";
import { findSelfApproval } from "./self-approval.ts";
import { readVerifiedHistory, recordAlteredError, type VerifiedHistory } from "./verify-record.ts";
import { tracedAction } from "./traced-action.ts";
import { describeVoting } from "./voting-capacity.ts";

/** Digests of what an approver sees in addition to the request: questions to the agent, preview, and pinned facts. */
interface ShownDigests {
  questions: string | null;
  preview: string | null;
  pins: string | null;
}

/**
 * Returns the claims of the token with which this principal votes on this action.
 * @param shown digests of the questions and the preview that the approver sees; null for the token of a link, because a
 * vote by link sends its own digest of what its page displayed
 */
export function approvalTokenClaims(row: ActionRow, principal: string, shown: ShownDigests | null): TokenClaims {
  const { id, expires_at } = row;
  return {
    action_id: id,
    request_hash: effectiveRequestHash(row),
    ...shown,
    approver: principal,
    expires_at: expires_at ?? 0,
  };
}

export function createApprovalMac(host: CoreHost): (message: Uint8Array) => Uint8Array {
  return (message) => host.vault.mac("approval", message);
}

export function createLinkMac(host: CoreHost): (message: Uint8Array) => Uint8Array {
  return (message) => host.vault.mac("approval-link", message);
}

/**
 * Returns the commitment to the preview that the rule renders; null if the rule has no preview. It is salted like the
 * request, because a reader of the log could otherwise guess a short preview, even after the request was erased.
 */
export function commitPreview(row: ActionRow, set: CompiledPolicySet): string | null {
  const { params, context } = effectiveRequest(row) ?? { params: {}, context: {} };
  const { preview } = presentRequest(set, { ...row, params, context });
  return preview === null ? null : commitDigest(row.salt, sha256Hex(utf8(preview)));
}

/**
 * Returns the digest of the questions and answers that a page displays for this row. The history can be newer than the
 * row, so a digest of the whole history would accept a vote from someone who has not seen the newest question.
 */
export function digestShownQuestions(
  row: ActionRow,
  { questions, erasedParts }: Pick<VerifiedHistory, "questions" | "erasedParts">,
): string | null {
  return questionsDigest(erasedParts.includes("questions") ? questions : commitQuestions(row.questions));
}

/** Returns the digest of what an approver sees. A vote by link must contain this digest. Lowercase hex. */
export function digestShownRequest(row: ActionRow, { questions, preview, pins }: ShownDigests): string {
  return sha256Hex(canonicalBytes({ pins, preview, questions, request_hash: effectiveRequestHash(row) }));
}

/**
 * Returns the approval terms of a pending action. For a credential that can vote, adds the token for its vote and a
 * comparison with earlier actions. Returns null if the action is not pending, if its entries cannot be read, or if the
 * credential can neither vote nor read all actions.
 */
async function readVoting(
  host: CoreHost,
  row: ActionRow,
  votes: readonly ApprovalRow[],
  history: VerifiedHistory | null,
  credential: Credential,
  { set, isCompared = true }: Pick<RecordOptions, "set" | "isCompared">,
): Promise<Pick<ActionRecord, "approval_terms" | "approval_token" | "pins" | ComparedMember> | null> {
  if (set === undefined || row.status !== "pending_approval") return null;
  if (row.expires_at === null || row.expires_at <= host.clock()) return null;
  if (history === null || history.requirement === null) return null;
  const { approvers, since } = history.requirement;
  const counted = toCountedVotes(host, history.approvals);
  const mode = strictestOversightMode(approvers);
  const open = approvers.flatMap((plan) => evaluatePlanProgress(plan, counted, since, host.clock()).open);
  const mayVote = credential.hasScope("approvals:decide");
  const self = mayVote ? findSelfApproval(host, row, credential) : null;
  const { grants, editable = [] } = history.newest.decision.approval ?? {};
  const terms = {
    mode,
    approvers: [...approvers],
    open_groups: [...new Set(open)],
    since: toRfc3339(since),
    editable: history.edit === null && !history.mayHaveRun ? omitRedactedEditable(set, row, editable) : [],
    grants: renderGrantLimits(row, grants),
  };
  if (!mayVote) {
    const none = { blocked: null, on_behalf_of: null, may_break_glass: false };
    if (!credential.hasScope("actions:read")) return null;
    return { approval_terms: { ...terms, ...none }, ...(await pinsMember(host, row, history, false)) };
  }
  const moment = await host.snapshot();
  const votingHistory = { ...history, requirement: history.requirement, self };
  const voting = describeVoting(host, row, credential, votingHistory, moment);
  const hasVoted = votes.some((vote) => vote.principal === credential.principal);
  return {
    ...(isCompared ? await compareRequest(host, row, credential.visibility) : null),
    approval_terms: { ...terms, ...voting },
    ...(await pinsMember(host, row, history, true)),
    // A voter who cannot approve can still reject, unless they are the person behind the agent or have already voted.
    ...(voting.blocked?.code === "SELF_APPROVAL" || hasVoted
      ? {}
      : {
          approval_token: makeToken(
            "approval",
            approvalTokenClaims(row, credential.principal, {
              questions: digestShownQuestions(row, history),
              preview: commitPreview(row, set),
              pins: history.pins,
            }),
            createApprovalMac(host),
          ),
        }),
  };
}

/** Renders the pins for a list. Omits those that someone altered in the store, because a list also has other actions. */
async function listPins(host: CoreHost, row: ActionRow, history: VerifiedHistory): Promise<Pick<ActionRecord, "pins">> {
  try {
    return await pinsMember(host, row, history, false);
  } catch (error) {
    if (error instanceof Refusal) return {};
    throw error;
  }
}

/** @param readsCurrent whether to read the current values of the facts */
async function pinsMember(
  host: CoreHost,
  row: ActionRow,
  history: VerifiedHistory,
  readsCurrent: boolean,
): Promise<Pick<ActionRecord, "pins">> {
  const pins = await renderPins(host, row, history, readsCurrent);
  return pins.length === 0 ? {} : { pins };
}

/**
 * Renders the largest grant that a vote on the action can create; null if it cannot create a grant. A vote on a plan
 * never creates a grant.
 */
export function renderGrantLimits(
  { plan_id }: ActionRow,
  grants: GrantTerms | undefined,
): { count: number; for_seconds: number } | null {
  return grants === undefined || plan_id !== null ? null : { count: grants.count, for_seconds: grants.for_ms / 1000 };
}

const toTimeOrNull = (ms: number | null): string | null => (ms === null ? null : toRfc3339(ms));

interface RecordOptions {
  /** Whether to add what lists omit: reviews, approval terms and the approval token. */
  token: boolean;
  /** Whether to add the pinned facts without the token, so that a list displays the facts that a vote is about. */
  pins?: boolean;
  permit?: Permit | null;
  /** The credential that the start issued. */
  issued?: ActionRecord["credential"];
  redecision?: ActionRecord["redecision"];
  /**
   * Whether to compare the request with up to 300 earlier actions. The comparison takes milliseconds. Default: true.
   */
  isCompared?: boolean;
  /** Votes on the action. Default: they are read from the store. */
  votes?: readonly ApprovalRow[];
  /** Policies that determine what approvers see first. Default: those under which a pending action is displayed. */
  set?: CompiledPolicySet | undefined;
  /** The grant that the vote created. */
  newGrant?: ActionRecord["new_grant"];
  /** The nearest alternative to the denied action. */
  alternative?: ActionRecord["alternative"];
}

/** Returns the active policies for a pending action, else undefined. */
export async function readPendingPolicySet(
  host: CoreHost,
  { status }: ActionRow,
): Promise<CompiledPolicySet | undefined> {
  return status === "pending_approval" ? (await host.policies.current()).compiled : undefined;
}

type Content = Pick<ActionRecord, "params" | "context" | "meta" | "questions" | "proposed" | "request_hash" | "result">;
const NO_CONTENT: Content = {
  params: {},
  context: {},
  meta: {},
  questions: [],
  proposed: null,
  request_hash: null,
  result: null,
};

/**
 * Parses the JSON in the row. Returns null if it cannot be parsed, because someone altered the store.
 * @param displayed the row with the requests that the reader may see
 */
function readContent(row: ActionRow, displayed: ActionRow): Content | null {
  try {
    const { params, context } = effectiveRequest(displayed) ?? NO_CONTENT;
    return {
      params,
      context,
      meta: decodeMeta(row.meta),
      questions: renderQuestions(row),
      proposed: renderOriginalRequest(displayed),
      request_hash: row.erased_at === null ? effectiveRequestHash(row) : null,
      result: renderResult(row),
    };
  } catch {
    return null;
  }
}

/**
 * Returns the row with the requests that the credential may see. Redacted parameters are only visible to the key that
 * submitted the action and to the key that started it.
 */
async function redactFor({ key }: Pick<Credential, "key">, host: CoreHost, row: ActionRow): Promise<ActionRow> {
  const runs = key.id === row.submitted_by || key.id === row.started_by;
  return runs ? row : redactRow((await host.policies.current()).compiled, row);
}

function renderAction(
  host: CoreHost,
  row: ActionRow,
  displayed: ActionRow,
  votes: readonly ApprovalRow[],
  rejection: Rejection | null,
  voting: Awaited<ReturnType<typeof readVoting>>,
  options: RecordOptions,
): ActionRecord {
  const { permit = null, issued, redecision, newGrant, alternative } = options;
  const content = readContent(row, displayed);
  const { params, context, meta, questions, proposed, request_hash, result } = content ?? NO_CONTENT;
  const record: ActionRecord = {
    id: row.id,
    agent_id: row.agent_id,
    tool: row.tool,
    operation: row.operation,
    params,
    context,
    meta,
    questions,
    proposed,
    status: withCurrentStatus(row, host.clock()).status,
    decision: row.decision,
    // If obligations changed the request, abstain, because a gate would run the submitted request.
    outcome: row.decision === "allow" && row.effective !== null ? "ABSTAIN" : GATE_OUTCOMES[row.decision],
    reason: row.reason,
    reason_code: row.reason_code,
    denied_by: findDeniedBy(row),
    rejection,
    risk_level: row.risk_level,
    policy: row.policy,
    rule: row.rule,
    policy_hash: row.policy_hash,
    policy_version: row.policy_version,
    request_hash,
    decision_hash: row.decision_hash,
    provenance_id: row.decision_hash,
    submitted_by: row.submitted_by,
    grant: row.allowed_by,
    plan: row.plan_id === null ? null : { id: row.plan_id, position: row.plan_position ?? 0 },
    ...renderChain(row),
    approvals: renderVotes(votes),
    approvals_needed: row.quorum,
    approved_until: toTimeOrNull(row.approved_until),
    permit: permit?.text ?? null,
    permit_expires_at: toTimeOrNull(permit?.expires_at ?? null),
    expires_at: toTimeOrNull(row.expires_at),
    result,
    waiting: hasWaitingAgent(row, host.clock()),
    asked_at: toRfc3339(row.asked_at ?? row.created_at),
    erased_at: toTimeOrNull(row.erased_at),
    created_at: toRfc3339(row.created_at),
    updated_at: toRfc3339(row.updated_at),
  };
  if (content === null) return { ...record, altered: true };
  Object.assign(record, voting);
  const { set } = options;
  if (set !== undefined && row.erased_at === null && isRequestPresented(row, votes, options))
    Object.assign(record, presentRequest(set, record));
  if (inspectsOutput(host, row)) record.inspect = true;
  if (redecision !== undefined) record.redecision = redecision;
  if (newGrant !== undefined) record.new_grant = newGrant;
  if (alternative !== undefined) record.alternative = alternative;
  if (issued !== undefined) record.credential = issued;
  return record;
}

/**
 * Returns true for a pending action, and for a settled one if `set` contains the version of the policy that decided it. Only
 * that version presents the request as approvers saw it. False for a response about one settled action with votes, which
 * has the preview that `readShownPreview` verifies.
 */
function isRequestPresented(row: ActionRow, votes: readonly ApprovalRow[], { set, token }: RecordOptions): boolean {
  if (row.status === "pending_approval") return true;
  if (token && votes.length > 0) return false;
  return set?.policies.some(({ name, version }) => name === row.policy && version === row.policy_version) === true;
}

function renderChain(row: ActionRow): Pick<ActionRecord, "chain"> {
  const authority = decodeAuthority(row.authority);
  if (authority === null) return {};
  const { id, links } = authority;
  return { chain: { authority: id, links, act: { ...toActorClaim(row.agent_id, authority) } } };
}

const MAY_RUN: readonly string[] = ["allowed", "approved", "executing", "unknown"];

/**
 * Returns true if the action's output must be inspected. Uses the policies that this process read last, which are at
 * least as new as those of its own newest decision.
 */
function inspectsOutput({ steps, policies }: CoreHost, row: ActionRow): boolean {
  if (!MAY_RUN.includes(row.status)) return false;
  const { compiled } = policies.latest();
  const inspectors = steps.flatMap(({ inspectsOutput: inspects }) => inspects ?? []);
  // Without a feature that inspects, clients find no route for it. They then withhold the output instead of ignoring
  // the rules.
  return inspectors.length === 0
    ? compiled.withResults.length > 0
    : inspectors.some((inspects) => inspects(compiled, row));
}

/**
 * Returns the result, or null if none has been reported. Ignores a value in the column of an action without a reported
 * result: someone altered the store, which the audit reports.
 */
function renderResult({ status, result }: ActionRow): ActionRecord["result"] {
  const isReported = status === "succeeded" || status === "failed";
  return isReported && result !== null ? (JSON.parse(result) as ActionRecord["result"]) : null;
}

/**
 * Returns the agent's original request if an approver or the policies changed it; else null. Throws SyntaxError if
 * someone altered the store.
 */
export function renderOriginalRequest(row: ActionRow): ActionRecord["proposed"] {
  const edit = decodeEdit(row.effective);
  const request = edit === null ? null : parseCompleteRequest(row);
  if (edit === null || request === null) return null;
  const { at, by, comment } = edit;
  const { params } = request;
  return { params, request_hash: row.request_hash, edited_by: by, edited_at: toRfc3339(at), reason: comment };
}

/** Returns the questions to the agent, with its answers. Throws SyntaxError if someone altered the store. */
export function renderQuestions(row: Pick<ActionRow, "questions">): ActionRecord["questions"] {
  return decodeQuestions(row.questions).map(({ asked_by, asked_at, question, answered_at, answer }, i) => ({
    number: i + 1,
    asked_by,
    asked_at: toRfc3339(asked_at),
    question: question.text,
    answered_at: toTimeOrNull(answered_at),
    answer: answer?.text ?? null,
  }));
}

export function renderVotes(votes: readonly ApprovalRow[]): ActionRecord["approvals"] {
  return votes.map((vote) => ({
    approver: vote.principal,
    key_id: vote.key_id,
    approve: vote.approve,
    reason: vote.reason,
    self_approval: vote.self_approval,
    on_behalf_of: vote.on_behalf_of,
    break_glass: vote.break_glass,
    method: voteMethod({ by: vote, gesture: vote.signed ? {} : null }),
    created_at: toRfc3339(vote.created_at),
  }));
}

function renderReview(entry: ReviewEntry): NonNullable<ActionRecord["reviews"]>[number] {
  const { reviewer, version, answer, fault, comment: reason, latency_ms, at: created_at } = entry;
  return { reviewer, version, answer, fault, reason, latency_ms, created_at };
}

/**
 * Returns the action and its votes as of one moment. Reads the row of a pending action again after its votes, because
 * the row could be older than a vote that was cast between the two reads.
 */
export async function readRowWithVotes(
  { storage }: Pick<CoreHost, "storage">,
  row: ActionRow,
): Promise<{ row: ActionRow; votes: readonly ApprovalRow[] }> {
  if (row.quorum === null) return { row, votes: [] };
  for (let present = row; ;) {
    const votes = await storage.approvals(row.id);
    if (present.status !== "pending_approval" || votes.length === 0) return { row: present, votes };
    const later = (await storage.action(row.id)) ?? present;
    if (later.status === present.status && later.updated_at === present.updated_at) return { row: present, votes };
    present = later;
  }
}

/** Reads the votes and the rejection of an action, and renders the action for the credential. */
export async function readActionRecord(
  host: CoreHost,
  row: ActionRow,
  credential: Credential,
  options: RecordOptions,
): Promise<ActionRecord> {
  const { votes } = options;
  const current = votes === undefined ? await readRowWithVotes(host, row) : { row, votes };
  const rejection = await readRejection(host.storage, current.row, current.votes, host.clock());
  // Pinned facts are recorded with the facts of the decision.
  const isListed =
    options.pins === true &&
    current.row.past !== null &&
    (credential.hasScope("approvals:decide") || credential.hasScope("actions:read"));
  const history =
    (options.token || isListed) && current.row.quorum !== null
      ? await readVerifiedHistory(host.storage, current.row)
      : null;
  // Read the policies once, also for the preview of the record: reading them waits for the database if other processes
  // write to it.
  const set = options.set ?? (await readPendingPolicySet(host, current.row));
  // No one can vote on a request that cannot be read.
  const displayed = await redactFor(credential, host, current.row);
  const mayVote = options.token && readContent(current.row, displayed) !== null;
  const shown = { ...options, set };
  const voting = mayVote ? await readVoting(host, current.row, current.votes, history, credential, shown) : null;
  const record = renderAction(host, current.row, displayed, current.votes, rejection, voting, shown);
  const mayHavePreview = current.votes.length > 0 || current.row.allowed_by !== null;
  if (options.token && mayHavePreview && credential.hasScope("actions:read"))
    record.preview ??= await readShownPreview(host, current.row, record);
  const names = await readNames(host, record);
  if (isListed && history !== null) Object.assign(record, await listPins(host, current.row, history));
  if (names !== null) record.names = names;
  if (history !== null && history.reviews.length > 0) record.reviews = history.reviews.map(renderReview);
  return record;
}

/** Returns the names of the people and keys in the record; null if it mentions none. */
async function readNames(
  host: CoreHost,
  { approvals, rejection, proposed, questions }: ActionRecord,
): Promise<PrincipalNames | null> {
  const principals = [
    ...approvals.flatMap(({ approver, on_behalf_of }) => [approver, on_behalf_of]),
    ...questions.map(({ asked_by }) => asked_by),
    rejection?.approver ?? null,
    proposed?.edited_by ?? null,
  ].filter((each) => each !== null);
  if (principals.length === 0) return null;
  return readPrincipalNames(host.storage, await host.state(userState), principals);
}

/**
 * Returns the preview that an approver saw, computed from the policies of the decision and verified against the
 * commitment in the vote. Null if there was none, or if other policies rendered it. If no one voted because a grant
 * allowed the action, returns the preview of the policies that decided.
 */
async function readShownPreview(host: CoreHost, row: ActionRow, record: ActionRecord): Promise<string | null> {
  if (row.erased_at !== null || record.altered === true) return null;
  const entries = (await host.storage.entriesOfAction(row.id)).map(({ bytes }) => decodeEntry(bytes));
  const seen = new Set(
    entries.filter(({ type }) => type === "approval").map(({ preview }) => preview as string | null),
  );
  for (const digest of new Set(entries.map(({ policy_set }) => policy_set as string | null | undefined))) {
    const set = digest == null ? null : await host.policies.byDigest(digest);
    const commitment = set === null ? null : commitPreview(row, set.compiled);
    const isShown = commitment !== null && (seen.has(commitment) || (seen.size === 0 && row.allowed_by !== null));
    if (set !== null && isShown) return presentRequest(set.compiled, record).preview;
  }
  return null;
}

export const ACTION_RESPONSE = { description: "The action.", schema: ActionRecord };

/**
 * Returns the response of a route for one action, with the approval token if this credential can use it. Throws
 * RECORD_ALTERED if the stored request, `meta` or result cannot be read.
 */
export async function buildActionReply(
  host: CoreHost,
  row: ActionRow,
  credential: Credential,
  { headers = {}, ...options }: { headers?: Record<string, string> } & Omit<RecordOptions, "token"> = {},
): Promise<Reply> {
  host.trace()?.describeAction(tracedAction(row));
  const record = await readActionRecord(host, row, credential, { token: true, ...options });
  if (record.altered === true) throw recordAlteredError(row, ["request, meta or result"]);
  return { status: 200, json: record, headers };
}

/** Renders the redecision for a permit, with the names of the members that changed since the previous decision. */
export function renderRedecision({
  previous: before,
  current: now,
  changedPins,
}: PermitOutcome): NonNullable<ActionRecord["redecision"]> {
  const { effect, reason, reason_code, risk_level, policy, rule, policy_version } = now.decision;
  const is = { effect, reason, reason_code, risk_level, policy, rule, policy_version, policy_hash: now.policySet };
  const was = { ...before.decision, policy_hash: before.policy_set };
  const approvalsNeeded = (decision: Decision) => decision.approval?.quorum ?? null;
  const approvals_needed = approvalsNeeded(now.decision);
  const changed = Object.keys(is).filter((name) => is[name as keyof typeof is] !== was[name as keyof typeof is]);
  if (approvals_needed !== approvalsNeeded(before.decision)) changed.push("approvals_needed");
  changed.push(...changedPins);
  return { ...is, approvals_needed, changed };
}

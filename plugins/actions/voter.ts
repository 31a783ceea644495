/** Verifies who may vote on an action: the holder of a key with its token, or the recipient of a link. */
import {
  displayPrincipal,
  userState,
  type Actor,
  canSee,
  checkToken,
  type CompiledPolicySet,
  type CoreHost,
  type DecisionEntry,
  decodeEntry,
  decodeToken,
  digestAddress,
  type VoteSignature,
  questionsDigest,
  voteDigest,
  type RedecisionEntry,
  SELF_RELATION_REASONS,
  LINK_KEY_ID,
  listStageChannels,
  type SelfRelation,
  toActor,
  type TokenCheckResult,
  type Rights,
  type RightsReader,
  rightsReader,
  userOfPrincipal,
  type VoteGrantTerms,
  type VoteStatement,
} from "../../src/core.ts";
import { assertMeetsOversightMode } from "./approver-plans.ts";
import { assertNotEarlierPins } from "./pins.ts";
import { type Credential, Refusal, type Session, type VerifiedAccount } from "../../src/plugin.ts";
import { type ActionRow, type StorageReader, nullIfCorrupt } from "../../src/storage/index.ts";
import { createApprovalMac, commitPreview, createLinkMac, approvalTokenClaims } from "./action-record.ts";
import { recordAlteredError, type VerifiedHistory } from "./verify-record.ts";
import { findSelfApproval } from "./self-approval.ts";

/** A verified voter. */
export interface Voter {
  actor: Actor;
  self: SelfRelation | null;
  groups: readonly string[];
  gesture: VoteSignature | null;
  /**
   * Commitment to the preview that the voter saw; null if there was none. For a vote by link, `prepareVote` sets it
   * later.
   */
  preview: string | null;
  /** The actions that the voter can see, by delegations, too. */
  visibility: Rights["visibility"];
  /** The session of a signed-in user; null for a key or a link. */
  session: Session | null;
}

/** The user to whom a link was sent. */
export interface LinkRecipient {
  principal: string;
  visibility: Rights["visibility"];
}

/** A person's vote on an action: approval or rejection, with a comment. */
export interface Vote {
  approve: boolean;
  reason?: string;
  /** Grant for later actions, to be created together with this approval. */
  grant?: unknown;
  /** Approves in an emergency, without other approvers. */
  break_glass?: boolean;
  /** Digest of the list of actions that the vote approves together. Never read from a request body. */
  list?: string;
}

/**
 * The proof that a vote is about this action: the token from the action's record, a verified signature, or another proof
 * that the voter saw the action, which the caller has verified.
 */
export type VoteProof = { token: string } | { gesture: VoteSignature } | { shown: "verified" };

/** Throws SELF_APPROVAL, VOTE_SIGNATURE_REQUIRED, VOTE_SIGNATURE_INVALID, or the error of an invalid token. */
export function verifyVoter(
  host: CoreHost,
  row: ActionRow,
  caller: Credential,
  { vote, proof }: { vote: Vote; proof: VoteProof },
  { history, set }: { history: VerifiedHistory; set: CompiledPolicySet },
): Voter {
  const self = findSelfApproval(host, row, caller);
  const gesture = "gesture" in proof ? proof.gesture : null;
  // Check this first, so that the person behind the agent gets this refusal instead of a refusal of the token.
  assertMeetsOversightMode({ self, gesture }, history.requirement?.approvers ?? []);
  // The token and the signature both cover the current preview.
  const preview = commitPreview(row, set);
  if ("token" in proof) assertApprovalToken(host, row, caller, proof.token, { history, set });
  else if ("gesture" in proof) assertSigned(host, row, caller, vote, proof.gesture, { history, set });
  const { groups, session = null, visibility } = caller;
  return { actor: toActor(caller.key, caller.principal), self, groups, gesture, preview, visibility, session };
}

/** Verifies the token of an approver who changes the request. Throws the error of an invalid token. */
export function verifyTokenVoter(
  host: CoreHost,
  row: ActionRow,
  caller: Credential,
  token: string,
  shown: ShownAction,
): Voter {
  const self = findSelfApproval(host, row, caller);
  assertNotSelf(self);
  assertApprovalToken(host, row, caller, token, shown);
  return {
    actor: toActor(caller.key, caller.principal),
    self,
    groups: caller.groups,
    visibility: caller.visibility,
    session: caller.session ?? null,
    gesture: null,
    preview: commitPreview(row, shown.set),
  };
}

function assertApprovalToken(
  host: CoreHost,
  row: ActionRow,
  caller: Credential,
  token: string,
  { history, set }: ShownAction,
): void {
  const check = (pins: string | null): TokenCheckResult => {
    const shown = { questions: questionsDigest(history.questions), preview: commitPreview(row, set), pins };
    return checkToken("approval", token, approvalTokenClaims(row, caller.principal, shown), createApprovalMac(host));
  };
  const result = check(history.pins);
  if (result === "altered") assertNotEarlierPins(history, row, (pins) => check(pins) === "ok");
  assertToken(result);
}

/** What determines the text that the approver saw: the action's verified history, and the policies with its preview. */
interface ShownAction {
  history: Pick<VerifiedHistory, "askedHash" | "commitment" | "questions" | "pins" | "requests">;
  set: CompiledPolicySet;
}

/**
 * Returns the terms of the member `grant` of a vote's body; null if the body has none. Throws VALIDATION_FAILED for terms
 * that no loaded feature reads.
 */
export function readVoteGrantTerms(
  { voteAddition }: Pick<CoreHost, "voteAddition">,
  body: unknown,
): VoteGrantTerms | null {
  if (body === undefined) return null;
  if (voteAddition === null)
    throw new Refusal("VALIDATION_FAILED", "`grant` is not a member of a vote in this service");
  return voteAddition.readTerms(body);
}

/**
 * Returns the statement that the credential signs for this vote. Throws ACTION_NOT_PENDING if no approval was
 * requested.
 */
export function voteStatement(
  host: CoreHost,
  row: ActionRow,
  { principal }: Credential,
  { approve, reason, break_glass = false, grant, list }: Vote,
  nonce: string,
  { history: { askedHash, commitment, questions }, set }: ShownAction,
): VoteStatement {
  if (askedHash === null) throw new Refusal("ACTION_NOT_PENDING", `the action ${row.id} never required approval`);
  return {
    action_id: row.id,
    commitment,
    decision: askedHash,
    grant: readVoteGrantTerms(host, grant),
    nonce,
    origin: host.ledger.origin,
    plan: list ?? null,
    preview: commitPreview(row, set),
    questions: questionsDigest(questions),
    reason: reason ?? null,
    user: principal,
    vote: break_glass ? "break_glass" : approve ? "approve" : "deny",
  };
}

/**
 * Checks a signature that was verified before the lock was acquired. The action and the user may have changed since
 * then.
 */
function assertSigned(
  host: CoreHost,
  row: ActionRow,
  caller: Credential,
  vote: Vote,
  { nonce, votes, credential_id, preview }: VoteSignature,
  shown: ShownAction,
): void {
  const statement = voteStatement(host, row, caller, vote, nonce, shown);
  if (!votes.includes(voteDigest(statement)) || statement.preview !== preview)
    throw new Refusal(
      "VOTE_SIGNATURE_INVALID",
      "the action has changed since you signed; read it again and sign again",
    );
  if (caller.session?.user.passkeys.every(({ id }) => id !== credential_id) ?? true)
    throw new Refusal("VOTE_SIGNATURE_INVALID", "the passkey was removed since you signed");
}

/** The reads that verify a link: of a ledger transaction, or of the store. */
type LinkReader = Pick<StorageReader, "entriesOfAction"> & RightsReader;

/**
 * Verifies a link token. Throws TOKEN_INVALID if the token is forged, if its recipient is no longer in a channel of the
 * decision, or if the recipient was deactivated. Throws APPROVER_NOT_ELIGIBLE if the recipient may not see the action or
 * may not approve, and SELF_APPROVAL if the recipient is the person behind the agent.
 */
export async function verifyLinkVoter(host: CoreHost, tx: LinkReader, row: ActionRow, token: string): Promise<Voter> {
  const { principal, groups, visibility } = await readLinkRights(host, tx, row, token);
  assertNotSelf(findSelfApproval(host, row, { key: { id: LINK_KEY_ID, agent_id: null, owner: principal } }));
  const actor = { key_id: LINK_KEY_ID, principal, agent_id: null, owner: principal };
  return { actor, self: null, groups, gesture: null, preview: null, visibility, session: null };
}

/**
 * Returns the rights with which a vote by link creates a grant. Throws TOKEN_INVALID unless a facade has verified that
 * the voter uses the account to which the link was sent, because a link can be forwarded.
 */
export async function readLinkGrantor(
  host: CoreHost,
  tx: LinkReader,
  row: ActionRow,
  { link, account }: { link: string; account: VerifiedAccount | null },
): Promise<Rights> {
  if (account === null || readClaims(link).address !== digestAddress(account.notifier, account.to))
    throw new Refusal("TOKEN_INVALID", "the link was sent to another account, so it cannot grant later actions");
  return readLinkRights(host, tx, row, link);
}

/** Returns the rights of a link's recipient. Throws as `verifyLinkVoter` does, except SELF_APPROVAL. */
async function readLinkRights(host: CoreHost, tx: LinkReader, row: ActionRow, token: string): Promise<Rights> {
  const { approver: principal, address } = readClaims(token);
  assertToken(checkToken("link", token, approvalTokenClaims(row, principal, null), createLinkMac(host)));
  const id = userOfPrincipal(principal) ?? "";
  const recipient = displayPrincipal(principal, tx.state(userState).get(id)?.name);
  const addresses = host.channels.addressesOfUser(await readChannels(tx, row), id, tx.state(userState));
  if (addresses.length === 0)
    throw new Refusal(
      "TOKEN_INVALID",
      `the link was sent to ${recipient}, who is no longer in a channel of this decision; vote with a key, or ask the operator`,
    );
  // The earlier address, such as a mailbox or a Slack account, can belong to another person by now.
  if (address !== undefined && !addresses.some(({ notifier, to }) => digestAddress(notifier, to) === address))
    throw new Refusal(
      "TOKEN_INVALID",
      `the link was sent to an earlier address of ${recipient}; use a newer message, or sign in and vote in the console`,
    );
  const rights = await host.keys.rightsOf(tx, id);
  if (rights === null) throw new Refusal("TOKEN_INVALID", `the link was sent to ${recipient}, a deactivated user`);
  if (!rights.hasScope("approvals:decide"))
    throw new Refusal("APPROVER_NOT_ELIGIBLE", `${recipient} has no role that may approve`);
  if (!canSee(rights.visibility, row))
    throw new Refusal("APPROVER_NOT_ELIGIBLE", `the groups of ${recipient} do not cover this agent and tool`);
  return rights;
}

/** Verifies a link token before the ledger's lock is acquired. Throws as `verifyLinkVoter` does. */
export async function verifyLinkEarly(host: CoreHost, row: ActionRow, token: string): Promise<void> {
  await verifyLinkVoter(host, await linkReader(host), row, token);
}

async function linkReader(host: CoreHost): Promise<LinkReader> {
  const reader = rightsReader(host, await host.snapshot());
  return { ...reader, entriesOfAction: (id) => host.storage.entriesOfAction(id) };
}

/**
 * Returns the action of a link, its recipient, and the refusal of a vote by the recipient; null if they may vote.
 * Throws if the recipient may not see the action.
 */
export async function readLink(
  host: CoreHost,
  token: string,
): Promise<{ row: ActionRow; recipient: LinkRecipient; refusal: Refusal | null }> {
  const row = await findLinkedAction(host.storage, token);
  const { principal, visibility } = await readLinkRights(host, await linkReader(host), row, token);
  // The person behind the agent may see the action although they may not vote on it.
  const self = findSelfApproval(host, row, { key: { id: LINK_KEY_ID, agent_id: null, owner: principal } });
  return {
    row,
    recipient: { principal, visibility },
    refusal: self === null ? null : selfApprovalRefusal(self),
  };
}

/**
 * Returns the action that a link token names. Throws the same error for an unknown action as for a forged token, so
 * that the error does not reveal which actions exist.
 */
export async function findLinkedAction(tx: Pick<StorageReader, "action">, token: string): Promise<ActionRow> {
  const row = await tx.action(readClaims(token).action_id);
  if (row === null) throw tokenError("altered");
  return row;
}

/** Returns the claims of a link token without verifying them. */
function readClaims(token: string): { action_id: string; approver: string; address?: string } {
  const claims = decodeToken("link", token);
  if (claims === null) throw tokenError("malformed");
  return claims;
}

/** Returns the channels that were notified: those in the decision, and in every redecision that required approval. */
async function readChannels(tx: Pick<StorageReader, "entriesOfAction">, row: ActionRow): Promise<readonly string[]> {
  const named: string[] = [];
  const entries = await nullIfCorrupt(tx.entriesOfAction(row.id));
  if (entries === null) throw recordAlteredError(row, ["entries"]);
  for (const { type, bytes } of entries) {
    if (type !== "decision" && type !== "redecision") continue;
    const { status, decision } = decodeEntry<DecisionEntry | RedecisionEntry>(bytes);
    if (status !== "pending_approval") continue;
    named.push(...(decision.approval?.notify ?? []), ...listStageChannels(decision.approval?.approvers ?? []));
  }
  return named;
}

export function assertNotSelf(self: SelfRelation | null): void {
  if (self !== null) throw selfApprovalRefusal(self);
}

function selfApprovalRefusal(self: SelfRelation): Refusal {
  return new Refusal("SELF_APPROVAL", `${SELF_RELATION_REASONS[self]}; someone else must vote`);
}

export function assertToken(verdict: TokenCheckResult): void {
  if (verdict !== "ok") throw tokenError(verdict);
}

function tokenError(verdict: Exclude<TokenCheckResult, "ok">): Refusal {
  switch (verdict) {
    case "malformed":
      return new Refusal(
        "TOKEN_MALFORMED",
        "this is not an approval token; get `approval_token` from GET /v1/actions/{id} with your own key, or open the link as it was sent",
      );
    case "altered":
      return new Refusal(
        "TOKEN_INVALID",
        "the token does not match this action and approver, or the action has changed since; get it again from GET /v1/actions/{id}, or open the link as it was sent",
      );
    case "other_action":
      return new Refusal(
        "TOKEN_OTHER_ACTION",
        "the token was issued for another action; get `approval_token` from this action",
      );
    case "other_approver":
      return new Refusal(
        "TOKEN_OTHER_APPROVER",
        "the token was issued to another approver; get your own from GET /v1/actions/{id}",
      );
  }
}

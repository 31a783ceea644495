/** Claims a request, hands it over, and releases it. */
import {
  confirmCredential,
  type CoreHost,
  describePrincipal,
  type LedgerTransaction,
  principalOfUser,
  readPrincipalNames,
  toActor,
  userState,
} from "../../src/core.ts";
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import {
  findUserAsApprover,
  findVotingBlock,
  pendingAction,
  type PendingApprover,
  readVerifiedHistory,
} from "../actions/api.ts";
import { CLAIM_ENTRY, type ClaimBody, type ClaimChange, type ClaimOptions, ERRORS } from "./schemas.ts";
import { type Claim, claimState, findClaim, isPending } from "./state.ts";

const MS_PER_MINUTE = 60_000;
/** Maximum number of open claims of one approver. */
const MAX_CLAIMS = 20;
/**
 * Maximum number of entries about the claims of one action, after which it can only be released. Each vote reads all
 * entries of its action, so repeated claims must not make votes slow. Also limits the notices.
 */
const MAX_CHANGES = 100;
/** Maximum number of users whose rights one search evaluates, and maximum number that it returns. */
const [MAX_EVALUATED, MAX_FOUND] = [500, 20];

/**
 * Claims a pending action for the caller, or hands it to a user. A repeated call changes nothing during the first half of the claim's lifetime.
 */
export function claimAction(
  host: CoreHost,
  { minutes }: ClaimOptions,
  credential: Credential,
  id: string,
  { user_id, take_over }: ClaimBody,
): Promise<Claim> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "approvals:decide");
    const row = await pendingAction(host, tx, id, caller);
    await assertMayVote(host, tx, row, caller, "you cannot approve this action");
    const holder = user_id === undefined ? caller : await readHolder(host, tx, row, user_id);
    const current = findClaim(tx, row, await tx.approvals(id));
    if (current !== null && current.holder !== caller.principal && take_over !== true)
      throw new Refusal(
        ERRORS.held,
        `${await describePrincipal(tx, tx.state(userState), current.holder)} claimed the action until ${toRfc3339(current.until)}; you can still vote, or set \`take_over\``,
      );
    const until = Math.min(tx.now + minutes * MS_PER_MINUTE, row.expires_at ?? Infinity);
    if (current?.holder === holder.principal && (current.until - tx.now) * 2 > until - tx.now) return current;
    if ((await countOtherClaims(tx, holder.principal, id)) >= MAX_CLAIMS)
      throw new Refusal(
        ERRORS.tooMany,
        `${await describePrincipal(tx, tx.state(userState), holder.principal)} has ${MAX_CLAIMS} claims, which is the limit; vote on one of these requests or release it`,
      );
    if ((await tx.entriesOfAction(id)).filter(({ type }) => type === CLAIM_ENTRY).length >= MAX_CHANGES)
      throw new Refusal(
        ERRORS.tooMany,
        `claims of the action ${id} changed ${MAX_CHANGES} times, which is the limit; vote on it without a claim`,
      );
    const change = holder.principal === caller.principal ? "claimed" : "handed_over";
    record(tx, row, caller, { change, holder: holder.principal, until: toRfc3339(until) });
    return tx.state(claimState).get(id) as Claim;
  });
}

/** Counts the holder's open claims of other actions. */
async function countOtherClaims(tx: LedgerTransaction, holder: string, id: string): Promise<number> {
  const ids = [...tx.state(claimState).values()]
    .filter((claim) => claim.holder === holder && claim.action_id !== id)
    .map(({ action_id }) => action_id);
  if (ids.length < MAX_CLAIMS) return ids.length;
  const votes = await tx.approvalsOfActions(ids);
  return (await tx.actionsById(ids)).filter((row) => findClaim(tx, row, votes) !== null).length;
}

/** Ends the caller's claim. Throws CLAIM_NOT_FOUND if the caller has no claim of the action. */
export function releaseClaim(host: CoreHost, credential: Credential, id: string): Promise<void> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "approvals:decide");
    const row = await pendingAction(host, tx, id, caller);
    const claim = findClaim(tx, row, await tx.approvals(id));
    if (claim?.holder !== caller.principal)
      throw new Refusal(ERRORS.notFound, `you have no claim of the action ${id}; it may have ended`);
    record(tx, row, caller, { change: "released", holder: claim.holder, until: null });
  });
}

/**
 * Returns the users other than the caller who can approve the action now, by name. Adds the id to a name that several
 * users have. Returns an empty list if the caller cannot hand the action over: it is not pending, or the caller cannot
 * approve it.
 */
export async function findApprovers(
  host: CoreHost,
  credential: Credential,
  row: ActionRow,
  name: string,
): Promise<{ id: string; name: string }[]> {
  const history = await readVerifiedHistory(host.storage, row);
  const moment = await host.snapshot();
  const mayApprove = (approver: PendingApprover): boolean =>
    history !== null && findVotingBlock(host, row, approver, history, moment, null) === null;
  if (!isPending(row, moment.now) || !mayApprove(credential)) return [];
  const lowerCaseName = name.toLowerCase();
  const users = [...moment.state(userState).values()]
    .filter(
      (user) =>
        user.ended_at === null &&
        principalOfUser(user.id) !== credential.principal &&
        user.name.toLowerCase().includes(lowerCaseName),
    )
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const found: string[] = [];
  for (const user of users.slice(0, MAX_EVALUATED)) {
    if (found.length === MAX_FOUND) break;
    await host.waitForReadSlot(credential.key.id);
    const approver = await findUserAsApprover(host, moment, user.id);
    if (approver !== null && mayApprove(approver)) found.push(user.id);
  }
  const names = await readPrincipalNames(host.storage, moment.state(userState), found.map(principalOfUser));
  return found.map((id) => ({ id, name: names[principalOfUser(id)] ?? "" }));
}

async function readHolder(host: CoreHost, tx: LedgerTransaction, row: ActionRow, id: string): Promise<PendingApprover> {
  const approver = await findUserAsApprover(host, tx, id);
  if (approver === null) {
    const detail = `"${id}" is not the id of an active user`;
    throw new Refusal("VALIDATION_FAILED", `the claim is not valid: ${detail}`, {
      errors: [{ pointer: "/user_id", detail }],
    });
  }
  await assertMayVote(host, tx, row, approver, "this user cannot approve the action");
  return approver;
}

async function assertMayVote(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  approver: PendingApprover,
  sentence: string,
): Promise<void> {
  const history = await readVerifiedHistory(tx, row);
  const blocked =
    history === null
      ? { detail: "its entries cannot be read" }
      : findVotingBlock(host, row, approver, history, tx, null);
  if (blocked !== null) throw new Refusal("APPROVER_NOT_ELIGIBLE", `${sentence}: ${blocked.detail}`);
}

function record(tx: LedgerTransaction, row: ActionRow, caller: Credential, data: ClaimChange): void {
  const { id: action_id, agent_id } = row;
  const by = toActor(caller.key, caller.principal);
  tx.record({ type: CLAIM_ENTRY, v: 1, at: toRfc3339(tx.now), action_id, agent_id, data, by }, row.submitted_by);
}

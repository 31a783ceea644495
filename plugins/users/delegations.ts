/** Changes delegations. Each change is a ledger transaction that records an entry. */
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import {
  userState,
  delegationState,
  type CoreHost,
  type Delegation,
  delegationStatus,
  hasScope,
  type LedgerTransaction,
  MAX_DELEGATION_MS,
  parseRfc3339,
  scopesOfRoles,
  toActor,
  type User,
  type Users,
} from "../../src/core.ts";
import { ERRORS } from "./user-errors.ts";
import { recordDelegation, recordDelegationEnd } from "./delegation-entries.ts";
import { assertUnlimited, requireActiveUser, sessionRequiredError } from "./user-changes.ts";

/** Maximum number of open delegations from a user, and to a user, because a vote tries each of them. */
const MAX_OPEN = 20;
const DAYS = MAX_DELEGATION_MS / 86_400_000;

/** The terms of a delegation. It covers everything that no limit excludes. */
interface DelegationTerms {
  to: string;
  groups?: string[];
  agents?: string[];
  tools?: string[];
  /** RFC 3339 time. Default: now. */
  starts_at?: string;
  until: string;
  comment?: string;
}

/**
 * Lets another user approve on behalf of the signed-in user, who must be `from`. Throws USERS_DELEGATION_INVALID for an
 * invalid period or user.
 */
export function createDelegation(
  host: CoreHost,
  credential: Credential,
  from: string,
  terms: DelegationTerms,
): Promise<Delegation> {
  const id = host.newId();
  return host.ledger.transact(async (tx) => {
    const caller = await tx.confirm(credential);
    if (caller.session?.user.id !== from) throw sessionRequiredError();
    if (!caller.hasScope("approvals:decide"))
      throw new Refusal("INSUFFICIENT_SCOPE", "you cannot approve, so there is nothing to delegate");
    const { to, groups = null, agents = null, tools = null, comment = null } = terms;
    assertMayReceive(requireActiveUser(tx.state(userState), to), from);
    const knownGroups = delegableGroups(host, caller);
    const unknown = groups?.find((group) => !knownGroups.includes(group));
    if (unknown !== undefined) throw invalidRefusal(`"${unknown}" is neither one of your groups nor a rota`);
    for (const end of ["from", "to"] as const) assertRoom(tx, end, end === "from" ? from : to);
    const delegation = { id, from, to, groups, agents, tools, ...readPeriod(terms, tx.now) };
    recordDelegation(tx, toActor(caller.key, caller.principal), "created", null, comment, delegation);
    return tx.state(delegationState).get(id) as Delegation;
  });
}

/** Ends a delegation. Allowed for both of its users, in a session, and for callers with `users:manage`. */
export function revokeDelegation(
  host: CoreHost,
  credential: Credential,
  id: string,
  comment: string | null,
): Promise<Delegation> {
  return host.ledger.transact(async (tx) => {
    const caller = await tx.confirm(credential);
    const delegation = requireVisibleDelegation(tx.state(delegationState).get(id), id, caller);
    const user = caller.session?.user.id;
    if (user !== delegation.from && user !== delegation.to) {
      if (!caller.hasScope("users:manage"))
        throw new Refusal("INSUFFICIENT_SCOPE", "only its two users, or a caller with users:manage, can revoke it");
      assertUnlimited(caller);
    }
    if (delegationStatus(delegation, tx.state(userState), tx.now) === "ended")
      throw new Refusal(ERRORS.DELEGATION_ENDED, `the delegation ${id} has ended`);
    recordDelegationEnd(tx, toActor(caller.key, caller.principal), delegation, "revoked", comment);
    return tx.state(delegationState).get(id) as Delegation;
  });
}

/** Returns the delegation if the caller may see it: as one of its two users, or as a reader of users. */
export function requireVisibleDelegation(
  delegation: Delegation | undefined,
  id: string,
  caller: Credential,
): Delegation {
  if (delegation === undefined || !canSeeDelegation(delegation, caller))
    throw new Refusal(ERRORS.DELEGATION_NOT_FOUND, `there is no delegation ${id} that you may see`);
  return delegation;
}

/** Returns true if the caller is one of the two users of the delegation, or can read users. */
export function canSeeDelegation({ from, to }: Delegation, caller: Credential): boolean {
  const user = caller.session?.user.id;
  return user === from || user === to || caller.hasScope("users:read") || caller.hasScope("users:manage");
}

/** Returns the users to whom `from` can delegate. Newest users first. */
export function listDelegates(users: Users, from: string): { id: string; name: string; created_at: number }[] {
  return [...users.values()]
    .filter((user) => user.id !== from && user.ended_at === null && mayApprove(user))
    .map(({ id, name, created_at }) => ({ id, name, created_at: parseRfc3339(created_at) ?? 0 }))
    .reverse();
}

/**
 * Returns the groups that a delegation of this user can include: the user's groups, and every rota, even while another
 * person is on call.
 */
export function delegableGroups(host: CoreHost, { groups }: Credential): string[] {
  return [...new Set([...groups, ...host.groups.rotas.keys()])].sort();
}

function mayApprove({ roles }: User): boolean {
  return hasScope(scopesOfRoles(roles), "approvals:decide");
}

function assertMayReceive(to: User, from: string): void {
  if (to.id === from) throw invalidRefusal("you cannot delegate to yourself");
  if (!mayApprove(to)) throw invalidRefusal(`${to.name} is not an approver; an admin must give them the role first`);
}

function assertRoom(tx: LedgerTransaction, end: "from" | "to", user: string): void {
  const open = [...tx.state(delegationState).values()].filter(
    (each) => each[end] === user && delegationStatus(each, tx.state(userState), tx.now) !== "ended",
  );
  if (open.length >= MAX_OPEN)
    throw invalidRefusal(
      `${MAX_OPEN} delegations ${end} this user have not ended, which is the limit; revoke one first`,
    );
}

function readPeriod({ starts_at, until }: DelegationTerms, now: number): { starts_at: string; until: string } {
  const start = starts_at === undefined ? now : parseRfc3339(starts_at);
  const end = parseRfc3339(until);
  if (start === null || end === null)
    throw invalidRefusal("`starts_at` and `until` must be times such as 2026-02-01T09:00:00Z");
  if (start < now) throw invalidRefusal("`starts_at` is in the past; omit it to start now");
  if (end <= start) throw invalidRefusal("`until` must be after the start");
  if (end - start > MAX_DELEGATION_MS || start - now > MAX_DELEGATION_MS)
    throw invalidRefusal(`a delegation must start within ${DAYS} days and end at most ${DAYS} days later`);
  return { starts_at: toRfc3339(start), until: toRfc3339(end) };
}

function invalidRefusal(detail: string): Refusal {
  return new Refusal(ERRORS.DELEGATION_INVALID, detail);
}

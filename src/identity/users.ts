/**
 * Users, and the credentials of their sessions. Each process reads new entries of users whenever the epoch changes, so
 * a removed role or a deactivation applies to the next request.
 */
import { Refusal } from "../contract/errors.ts";
import type { Groups, Rights, UserList, VerifiedSession } from "../contract/core-host.ts";
import type { Credential, ApprovalDelegator, Session, WorkloadIdentity } from "../contract/host.ts";
import type { LedgerTransaction } from "../contract/ledger.ts";
import type { StatesReader } from "../contract/states.ts";
import type { LedgerHead, StorageReader } from "../contract/storage.ts";
import {
  activeDelegationsTo,
  delegationState,
  limitsOfDelegation,
  nextDelegationChange,
} from "../domain/delegations.ts";
import { principalOfUser } from "../domain/principals.ts";
import { scopesOfRoles } from "../domain/roles.ts";
import { nextShiftChange } from "../domain/rota.ts";
import { hasScope, type Scope } from "../domain/scopes.ts";
import { userState, type User, type Users } from "../domain/users.ts";
import { parseRfc3339 } from "../domain/time.ts";
import { extendVisibility, intersectVisibility } from "../domain/visibility.ts";
import type { Directory } from "./directory.ts";
import { assertUnexpired, scopesOfToken } from "./workloads.ts";

export interface UserService extends UserList {
  /** Returns the users as of the last commit that this process followed. Reads nothing. */
  known(): Users;
  /** Returns the users as of the newest commit. Rejects with StorageError. */
  refreshed(): Promise<Users>;
  /**
   * Reads the session and its user again; null if the session has ended or the user is deactivated.
   * @param epoch an epoch that was read before the call. The session is at least as recent
   */
  refresh(session: Session, epoch: number): Promise<Credential | null>;
  /** Returns the credential of an agent that acts for a user; null if the user does not exist or is deactivated. */
  agentCredential(userId: string, agentId: string, workload: WorkloadIdentity): Promise<Credential | null>;
  /**
   * Reads the session and its user again under the ledger's lock. Rejects with MISSING_CREDENTIAL if the session has
   * ended or the user was deactivated after the request was authenticated. For an agent that acts for a user, rejects
   * with INVALID_CREDENTIAL instead.
   */
  confirm(tx: LedgerTransaction, credential: Credential, epoch: number): Promise<Credential>;
}

export function createUserService(options: {
  storage: StorageReader;
  directory: Directory;
  groups: Groups;
  head(): Promise<LedgerHead>;
  clock(): number;
}): UserService {
  /** Sessions that this process has verified. Only these can be confirmed. */
  const verified = new WeakMap<Session, VerifiedSession>();

  /**
   * Returns the current users and delegations. Reads the epoch first, so that they are at least as new as the epoch.
   */
  async function current(): Promise<{ snapshot: StatesReader; users: Users; epoch: number }> {
    const { directory } = options;
    const head = await options.head();
    await directory.follow(options.storage, head);
    const states = directory.current();
    const snapshot = { now: options.clock(), state: states.state.bind(states) };
    return { snapshot, users: states.state(userState), epoch: head.epoch };
  }

  function createCredential(user: User, session: VerifiedSession, snapshot: StatesReader): Credential {
    const ownRights = rightsOfUser(user, options.groups, snapshot.state(userState));
    const delegators = delegatorsOf(user, snapshot, options.groups);
    const known: Session = {
      id: session.id,
      user,
      terminal: session.terminal,
      visibility: ownRights.visibility,
      delegators,
    };
    verified.set(known, session);
    return {
      ...ownRights,
      visibility: extendVisibility(ownRights.visibility, delegators),
      epoch: session.epoch,
      valid_until: Math.min(session.valid_until, nextDelegatorChange(user.id, snapshot, options.groups)),
      session: known,
    };
  }

  async function credential(session: VerifiedSession): Promise<Credential | null> {
    const { snapshot, users } = await current();
    const user = users.get(session.user_id);
    return user === undefined || user.ended_at !== null ? null : createCredential(user, session, snapshot);
  }

  function confirmAgent(
    tx: LedgerTransaction,
    { key }: Credential,
    workload: WorkloadIdentity,
    epoch: number,
  ): Credential {
    assertUnexpired(workload, tx.now);
    const users = tx.state(userState);
    const user = users.get(key.id);
    if (user === undefined || user.ended_at !== null)
      throw new Refusal("INVALID_CREDENTIAL", `the user "${key.name}", for whom this agent acts, was deactivated`);
    return createAgentCredential(rightsOfUser(user, options.groups, users), key.agent_id as string, workload, epoch);
  }

  return {
    passkeys: ({ session }) => (session === undefined ? null : (verified.get(session)?.passkeys ?? null)),
    known: () => options.directory.users(),
    refreshed: async () => (await current()).users,
    async delegatorsOf(id) {
      const { snapshot, users } = await current();
      const user = users.get(id);
      return user === undefined ? [] : delegatorsOf(user, snapshot, options.groups);
    },
    credential,
    async refresh(cachedSession, epoch) {
      const session = verified.get(cachedSession);
      if (session === undefined) return null;
      const valid_until = await session.recheck(null);
      return valid_until === null ? null : credential({ ...session, epoch, valid_until });
    },
    async agentCredential(userId, agentId, workload) {
      const { users, epoch } = await current();
      const user = users.get(userId);
      return user === undefined || user.ended_at !== null
        ? null
        : createAgentCredential(rightsOfUser(user, options.groups, users), agentId, workload, epoch);
    },
    async confirm(tx, credential, epoch) {
      if (credential.workload !== undefined) return confirmAgent(tx, credential, credential.workload, epoch);
      const { session: known } = credential;
      const session = known === undefined ? undefined : verified.get(known);
      const user = session === undefined ? undefined : tx.state(userState).get(session.user_id);
      const valid_until = session === undefined ? null : await session.recheck(tx);
      if (session === undefined || valid_until === null || user === undefined || user.ended_at !== null)
        throw new Refusal("MISSING_CREDENTIAL", "your session has ended; sign in again");
      return createCredential(user, { ...session, epoch, valid_until }, tx);
    },
  };
}

/**
 * Returns the users on whose behalf this user can approve now. Both users must have the right to approve. A delegation
 * that is restricted to groups must cover at least one group or rota of the delegator.
 */
function delegatorsOf(to: User, { state, now }: StatesReader, groups: Groups): ApprovalDelegator[] {
  if (!hasScope(scopesOfRoles(to.roles), "approvals:decide")) return [];
  const users = state(userState);
  return activeDelegationsTo(state(delegationState), users, to.id, now).flatMap((delegation) => {
    const user = users.get(delegation.from);
    const rights = user === undefined ? null : rightsOfUser(user, groups, users);
    if (user === undefined || rights === null || !rights.hasScope("approvals:decide")) return [];
    const isNamed = (group: string): boolean => delegation.groups?.includes(group) ?? true;
    const covered = rights.groups.filter(isNamed);
    // Skip a delegation whose groups no longer include a group or rota of the delegator. Its list of covered groups
    // would be empty, which `groups.visibility` treats as no limits.
    const applies =
      delegation.groups === null || covered.length > 0 || groups.onCall(rights.principal, now, users).some(isNamed);
    if (!applies) return [];
    const limits = limitsOfDelegation(delegation);
    const visibility = [
      groups.visibility(rights.groups),
      groups.visibility(covered),
      limits === null ? ({ all: true } as const) : { within: [limits] },
    ].reduce(intersectVisibility);
    return [{ delegation, user, groups: rights.groups, visibility }];
  });
}

/**
 * Returns the next time at which the user's delegators can change without a new ledger entry: when a delegation starts
 * or ends, or the on-call member of a rota changes. Milliseconds; Infinity if there is no such time.
 */
function nextDelegatorChange(to: string, { state, now }: StatesReader, groups: Groups): number {
  const delegations = state(delegationState);
  const ofRotas = activeDelegationsTo(delegations, state(userState), to, now).some(
    (delegation) => delegation.groups !== null,
  )
    ? [...groups.rotas.values()].map((rota) => nextShiftChange(rota, now))
    : [];
  return Math.min(nextDelegationChange(delegations, to, now) ?? Infinity, ...ofRotas);
}

/**
 * Returns the rights of a user, even if the user is not signed in.
 * @param users the users of the same moment
 */
export function rightsOfUser(user: User, groups: Groups, users: Users): Rights {
  const memberOf = groups.of(principalOfUser(user.id), users);
  const scopes = scopesOfRoles(user.roles);
  const limits = groups.visibility(memberOf);
  return {
    key: {
      id: user.id,
      name: user.name,
      hash: "",
      prefix: "",
      scopes,
      agent_id: null,
      owner: principalOfUser(user.id),
      created_by: null,
      created_at: 0,
      expires_at: null,
      revoked_at: user.ended_at === null ? null : parseRfc3339(user.ended_at),
      last_used_at: null,
    },
    principal: principalOfUser(user.id),
    groups: memberOf,
    roles: user.roles,
    visibility: hasScope(scopes, "actions:read") ? limits : { key_id: user.id },
    limits,
    hasScope: (scope: Scope) => hasScope(scopes, scope),
  };
}

/**
 * Returns the credential of an agent that acts for a user. In ledger entries, the user is the actor. The agent can see
 * only actions that it submitted for this user, and not those of the user's other agents.
 * @param rights the rights of the user
 */
function createAgentCredential(
  { key, principal, groups, roles = [] }: Rights,
  agentId: string,
  workload: WorkloadIdentity,
  epoch: number,
): Credential {
  // The user's agents share the user's id, so also compare the agent.
  const limits = { within: [{ agents: null, tools: null, agent_id: agentId, submitted_by: key.id }] };
  const scopes = scopesOfToken(workload);
  return {
    key: { ...key, scopes: [...scopes], agent_id: agentId },
    epoch,
    valid_until: workload.expires_at,
    principal,
    groups,
    roles,
    visibility: limits,
    limits,
    workload,
    hasScope: (scope) => hasScope(scopes, scope),
  };
}

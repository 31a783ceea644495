/**
 * Checks delegations, emergency approvals and their reviews. Each vote on behalf of another user must use an active
 * delegation. The person who gave an emergency approval must not have reviewed it.
 */
import { parseEntryTime } from "../domain/time.ts";
import { applyBreakGlassEntry, NO_BREAK_GLASS } from "../domain/break-glass.ts";
import { applyDelegationEntry, delegationStatus, limitsOfDelegation, NO_DELEGATIONS } from "../domain/delegations.ts";
import type { ApprovalEntry, BreakGlassEntry, DelegationEntry, ApiKeyEntry } from "../domain/entries.ts";
import { isWithinLimits } from "../domain/groups.ts";
import { principalOfUser } from "../domain/principals.ts";
import { scopesOfRoles } from "../domain/roles.ts";
import { hasScope, type Scope } from "../domain/scopes.ts";
import { listKeyMakers, principalsOfKeys, type RecordedKey } from "../domain/vote-people.ts";
import { toRecordedKey, type Users } from "../domain/users.ts";
import type { EntryBody } from "./report.ts";

export interface ExceptionalVotesAuditor {
  /** Applies the next entry; call it in order. Throws for an entry that contradicts earlier entries. */
  fold(body: EntryBody): void;
  /**
   * Returns the fault of a vote's delegation for this agent and tool, as of the entry that was applied last; null if
   * the delegation covers the vote.
   */
  findUncovered(vote: ApprovalEntry, subject: { agent_id: string; tool: string }): string | null;
}

/** @param users a function that returns the users as of the previous entry */
export function createExceptionalVotesAuditor(users: () => Users): ExceptionalVotesAuditor {
  let delegations = NO_DELEGATIONS;
  let uses = NO_BREAK_GLASS;
  const keys = new Map<string, RecordedKey>();
  /** The emergency approval that the next entry must record; null if none is due. */
  let expected: ApprovalEntry | null = null;

  const keyOf = (id: string): RecordedKey | null => {
    const user = users().get(id);
    return keys.get(id) ?? (user === undefined ? null : toRecordedKey(user));
  };

  function userMay(id: string, scope: Scope): boolean {
    const user = users().get(id);
    return user !== undefined && user.ended_at === null && hasScope(scopesOfRoles(user.roles), scope);
  }

  function foldDelegation(entry: DelegationEntry & { seq: number }): void {
    const { from, to } = entry.delegation;
    if (entry.change === "created") {
      if (entry.by.principal !== principalOfUser(from))
        throw new RangeError(`the delegation of the user ${from} was created by ${entry.by.principal}`);
      for (const user of [from, to])
        if (!userMay(user, "approvals:decide")) throw new RangeError(`the user ${user} of a delegation cannot approve`);
    }
    delegations = applyDelegationEntry(delegations, entry);
  }

  function assertDelegated({ delegation: used, by, at }: ApprovalEntry): void {
    if (used === null) return;
    const delegation = delegations.get(used.id);
    if (delegation === undefined) throw new RangeError(`it uses the delegation ${used.id}, which does not exist`);
    if (used.from !== principalOfUser(delegation.from) || by?.principal !== principalOfUser(delegation.to))
      throw new RangeError(`it uses the delegation ${used.id}, which is of other users`);
    if (delegationStatus(delegation, users(), parseEntryTime(at)) !== "active")
      throw new RangeError(`it uses the delegation ${used.id}, which was not active`);
    if (!userMay(delegation.from, "approvals:decide"))
      throw new RangeError(`it is given on behalf of the user ${delegation.from}, who could not approve`);
  }

  function assertUse(entry: BreakGlassEntry): void {
    const isSame =
      expected?.action_id === entry.related_action &&
      expected.by?.principal === entry.by.principal &&
      expected.comment === entry.comment;
    if (!isSame) throw new RangeError(`the emergency approval ${entry.use.id} does not follow its vote`);
    if (!userMay(entry.by.key_id, "approvals:break_glass"))
      throw new RangeError(`the emergency approval ${entry.use.id} is of ${entry.by.principal}, who could not give it`);
  }

  function assertReview({ use, by }: BreakGlassEntry): void {
    const approver = uses.all.get(use.id)?.by;
    if (approver === undefined) return;
    const people = ({ principal, key_id }: typeof by): string[] => [
      principal,
      ...principalsOfKeys(listKeyMakers(key_id, keyOf)),
    ];
    if (people(by).some((principal) => people(approver).includes(principal)))
      throw new RangeError(`the emergency approval ${use.id} is reviewed by the person who gave it`);
  }

  function foldKey({ change, key, by }: ApiKeyEntry): void {
    if (change !== "created" || keys.has(key.id)) return;
    keys.set(key.id, { ...key, created_by: by?.key_id ?? null, expires_at: null, revoked: false });
  }

  return {
    // The caller passes the agent and the tool, because the decision entry that contains the tool may be much older
    // than the vote.
    findUncovered({ delegation: used }, subject) {
      const delegation = used === null ? undefined : delegations.get(used.id);
      const limits = delegation === undefined ? null : limitsOfDelegation(delegation);
      if (limits === null || isWithinLimits(limits, subject)) return null;
      return `uses the delegation ${used?.id}, which does not cover ${subject.tool} of ${subject.agent_id}`;
    },
    fold(body) {
      const type = body["type"];
      const vote = expected;
      if (vote !== null && (type !== "break_glass" || body["change"] !== "used")) {
        expected = null;
        throw new RangeError(`the entry before is an emergency approval of ${vote.action_id}, which nothing records`);
      }
      if (type === "delegation") foldDelegation(body as unknown as DelegationEntry & { seq: number });
      if (type === "api_key") foldKey(body as unknown as ApiKeyEntry);
      if (type === "approval") {
        const entry = body as unknown as ApprovalEntry;
        assertDelegated(entry);
        if (entry.break_glass) expected = entry;
      }
      if (type !== "break_glass") return;
      const entry = body as unknown as BreakGlassEntry & { seq: number };
      if (entry.change === "used") assertUse(entry);
      else assertReview(entry);
      expected = null;
      uses = applyBreakGlassEntry(uses, entry);
    },
  };
}

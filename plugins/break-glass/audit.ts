/**
 * Checks emergency approvals and their reviews. Each approval follows its vote, by a person who had the right to give
 * it. The reviewer is another person.
 */
import {
  type ApprovalEntry,
  hasScope,
  keyState,
  listKeyMakers,
  type RecordedKey,
  scopesOfRoles,
  toRecordedKey,
  type Users,
  userState,
} from "../../src/core.ts";
import type { AuditStates, FeatureAuditor } from "../../src/plugin.ts";
import { principalsOfKeys } from "../actions/api.ts";
import { type BreakGlassEntry, breakGlassState } from "./state.ts";

export function createBreakGlassAuditor(): FeatureAuditor {
  /** The emergency approval that the next entry must record; null if none is due. */
  let expected: ApprovalEntry | null = null;

  function assertReviewedByOther({ use, by }: BreakGlassEntry, approver: typeof by, state: AuditStates["state"]): void {
    const keyOf = (id: string): RecordedKey | null => {
      const user = state(userState).get(id);
      return state(keyState).get(id) ?? (user === undefined ? null : toRecordedKey(user));
    };
    const people = ({ principal, key_id }: typeof by): string[] => [
      principal,
      ...principalsOfKeys(listKeyMakers(key_id, keyOf)),
    ];
    if (people(by).some((principal) => people(approver).includes(principal)))
      throw new RangeError(`the emergency approval ${use.id} is reviewed by the person who gave it`);
  }

  return {
    check(entry, { state }) {
      const vote = expected;
      expected = null;
      if (vote !== null && (entry.type !== "break_glass" || entry.change !== "used"))
        throw new RangeError(`the entry before is an emergency approval of ${vote.action_id}, which nothing records`);
      if (entry.type === "approval" && entry.break_glass) expected = entry;
      if (entry.type !== "break_glass") return;
      if (entry.change === "used") assertUse(entry, vote, state(userState));
      else {
        const approver = state(breakGlassState).all.get(entry.use.id)?.by;
        if (approver !== undefined) assertReviewedByOther(entry, approver, state);
      }
    },
  };
}

/** @param vote the entry before, if it is an emergency approval */
function assertUse(entry: BreakGlassEntry, vote: ApprovalEntry | null, users: Users): void {
  const isSame =
    vote?.action_id === entry.related_action &&
    vote.by?.principal === entry.by.principal &&
    vote.comment === entry.comment;
  if (!isSame) throw new RangeError(`the emergency approval ${entry.use.id} does not follow its vote`);
  const user = users.get(entry.by.key_id);
  if (user === undefined || user.ended_at !== null || !hasScope(scopesOfRoles(user.roles), "approvals:break_glass"))
    throw new RangeError(`the emergency approval ${entry.use.id} is of ${entry.by.principal}, who could not give it`);
}

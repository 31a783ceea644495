/** Detects votes on the voter's own action, from the recorded keys and their creators. */
import { type CoreHost, findSelfRelation, listKeyMakers, type RecordedKey, type SelfRelation } from "../../src/core.ts";
import type { Credential } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";

/** An action, or one that is about to be decided, with its submitter. */
export type SubmittedAction = Pick<
  ActionRow,
  "agent_id" | "tool" | "operation" | "submitted_by" | "submitted_agent" | "submitted_owner"
>;

/** Returns why a vote of this credential would be a self-approval; null if it would not be. */
export function selfApprovalRelation(
  host: CoreHost,
  row: SubmittedAction,
  { key }: { key: Pick<RecordedKey, "id" | "agent_id" | "owner"> },
): SelfRelation | null {
  const { earlier_owners = [] } = host.keys.recordedKey(key.id) ?? {};
  const direct = relationOfKey(row, key) ?? relationOfOwners(row, earlier_owners);
  if (direct !== null) return direct;
  const makers = host.config.approvals.trust_key_makers
    ? []
    : listKeyMakers(key.id, (id) => host.keys.recordedKey(id)).slice(1);
  const isMaker = makers.some(
    (maker) => relationOfKey(row, maker) !== null || relationOfOwners(row, maker.earlier_owners ?? []) !== null,
  );
  return isMaker ? "same_maker" : relationToUnknown(host, row, key.owner);
}

/** If only one of the two owners is a user, nobody can tell whether the other name is the same person. */
function relationToUnknown(host: CoreHost, row: SubmittedAction, owner: string | null): SelfRelation | null {
  if (owner === null || row.submitted_owner === null) return null;
  return host.keys.isUnknownOwner(owner) === host.keys.isUnknownOwner(row.submitted_owner) ? null : "unknown_owner";
}

/** A user who was renamed is still the owner of what was submitted under an earlier name. */
function relationOfOwners(row: SubmittedAction, owners: readonly string[]): SelfRelation | null {
  return owners.some((owner) => relationOfKey(row, { id: "", agent_id: null, owner }) !== null) ? "same_owner" : null;
}

function relationOfKey(
  row: SubmittedAction,
  { id, agent_id, owner }: Pick<RecordedKey, "id" | "agent_id" | "owner">,
): SelfRelation | null {
  const submitter = { key_id: row.submitted_by, agent_id: row.submitted_agent, owner: row.submitted_owner };
  return findSelfRelation(submitter, row.agent_id, { key_id: id, agent_id, owner });
}

/** Returns why a vote of a person by link, without a key, would be a self-approval; null if it would not be. */
export function selfRelationOfOwner(host: CoreHost, row: ActionRow, owner: string): SelfRelation | null {
  return relationOfKey(row, { id: "", agent_id: null, owner }) ?? relationToUnknown(host, row, owner);
}

/** Whether the key counts as the submitter's: the same key, agent or owner. */
export function isSubmitter(row: ActionRow, { key }: Credential): boolean {
  return relationOfKey(row, key) !== null;
}

/** Detects votes on the voter's own action, from the recorded keys and their creators. */
import {
  type CoreHost,
  findSelfRelation,
  expandPrincipals,
  listKeyMakers,
  principalOfOwner,
  principalOfUser,
  type RecordedKey,
  type SelfRelation,
} from "../../src/core.ts";
import type { Credential } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";

/** The submitter and names of an action that is recorded, or about to be decided. */
export type SubmittedAction = Pick<
  ActionRow,
  "agent_id" | "tool" | "operation" | "submitted_by" | "submitted_agent" | "submitted_owner"
>;

/** Returns why a vote of this credential would be a self-approval; null if it would not be. */
export function findSelfApproval(
  host: CoreHost,
  row: SubmittedAction,
  { key }: { key: Pick<RecordedKey, "id" | "agent_id" | "owner"> },
): SelfRelation | null {
  const direct = relationOfKey(host, row, key);
  if (direct !== null) return direct;
  const makers = host.config.approvals.trust_key_makers
    ? []
    : listKeyMakers(key.id, (id) => host.keys.recordedKey(id)).slice(1);
  const isMaker = makers.some((maker) => relationOfKey(host, row, maker) !== null);
  return isMaker ? "same_maker" : relationToUnknown(host, row, key.owner);
}

/**
 * Returns `unknown_owner` if the voter might be the owner of the submitting key, else null. Once users exist, the two
 * might be the same person in two cases: only one of the two owners is a user, or the voting key has no owner.
 */
function relationToUnknown(host: CoreHost, row: SubmittedAction, owner: string | null): SelfRelation | null {
  if (row.submitted_owner === null) return null;
  const isUnknown = host.keys.isUnknownOwner(owner);
  const mayBeSame = owner === null ? isUnknown : isUnknown !== host.keys.isUnknownOwner(row.submitted_owner);
  return mayBeSame ? "unknown_owner" : null;
}

function relationOfKey(
  host: CoreHost,
  row: SubmittedAction,
  key: Pick<RecordedKey, "id" | "agent_id" | "owner">,
): SelfRelation | null {
  const { id, agent_id, owner } = key;
  const submitter = { key_id: row.submitted_by, agent_id: row.submitted_agent, owner: row.submitted_owner };
  const relation = findSelfRelation(submitter, row.agent_id, { key_id: id, agent_id, owner });
  return relation ?? (isOwner(host, row, key) ? "same_owner" : null);
}

/** Whether `owner`, or the user with this id, owns the submitting key under any name that the user ever had. */
function isOwner(
  host: CoreHost,
  { submitted_owner }: SubmittedAction,
  { id, owner }: Pick<RecordedKey, "id" | "owner">,
): boolean {
  if (submitted_owner === null) return false;
  const submitter = expandPrincipals(host, [principalOfOwner(submitted_owner)]);
  const approver = expandPrincipals(host, [principalOfUser(id), ...(owner === null ? [] : [principalOfOwner(owner)])]);
  return approver.some((principal) => submitter.includes(principal));
}

/** Returns why a person's vote by link would be a self-approval; null if it would not be. A link has no key. */
export function findSelfApprovalByLink(host: CoreHost, row: ActionRow, owner: string): SelfRelation | null {
  return relationOfKey(host, row, { id: "", agent_id: null, owner }) ?? relationToUnknown(host, row, owner);
}

/** Whether the key submitted the action, is bound to its agent, or has the same owner as the submitting key. */
export function isSubmitter(host: CoreHost, row: ActionRow, { key }: Credential): boolean {
  return relationOfKey(host, row, key) !== null;
}

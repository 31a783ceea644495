/** Whether a vote is one on the voter's own action: by the keys and their makers, as the ledger has them. */
import type { Credential, Host } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { listKeyMakers, type RecordedKey, findSelfRelation, type SelfRelation } from "../../src/core.ts";

/** Why a vote of this credential would be a vote on its own action; null when it would not. */
export function selfRelationOf(host: Host, row: ActionRow, { key }: Credential): SelfRelation | null {
  const own = relationOfKey(row, key);
  if (own !== null || host.config.approvals.trust_key_makers) return own;
  const makers = listKeyMakers(key.id, (id) => host.keys.recordedKey(id)).slice(1);
  return makers.some((maker) => relationOfKey(row, maker) !== null) ? "same_maker" : null;
}

function relationOfKey(
  row: ActionRow,
  { id, agent_id, owner }: Pick<RecordedKey, "id" | "agent_id" | "owner">,
): SelfRelation | null {
  const submitter = { key_id: row.submitted_by, agent_id: row.submitted_agent, owner: row.submitted_owner };
  return findSelfRelation(submitter, row.agent_id, { key_id: id, agent_id, owner });
}

/** The same for somebody who has no key at hand. */
export function selfRelationOfOwner(row: ActionRow, owner: string): SelfRelation | null {
  return relationOfKey(row, { id: "", agent_id: null, owner });
}

/** Whether the key counts as the one that submitted, whoever made it. */
export function isSubmitter(row: ActionRow, { key }: Credential): boolean {
  return relationOfKey(row, key) !== null;
}

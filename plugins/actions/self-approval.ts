/** Detects votes on the voter's own action, from the recorded keys and their creators. */
import {
  canonicalText,
  canSee,
  type CoreHost,
  type DecisionEntry,
  decodeAuthority,
  findSelfRelation,
  listKeyMakers,
  type RecordedKey,
  type SelfRelation,
  type SubmittedAction,
  type Visibility,
} from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";

type VotingKey = Pick<RecordedKey, "id" | "agent_id" | "owner">;

/**
 * Returns why a vote of this credential would be a self-approval; null if it would not be. An agent that gave the
 * action's authority counts as its submitter, too.
 */
export function findSelfApproval(
  host: CoreHost,
  row: SubmittedAction,
  credential: { key: VotingKey },
): SelfRelation | null {
  const relations = listSubmitters(row).flatMap((submitter) => findRelation(host, submitter, credential) ?? []);
  // Only an owner can confirm their agent's action, so another relation is stricter.
  return relations.find((relation) => relation !== "same_owner") ?? relations[0] ?? null;
}

/** Returns the action as submitted, and as if each agent that gave its authority had submitted it. */
export function listSubmitters(row: SubmittedAction): SubmittedAction[] {
  const givers = (decodeAuthority(row.authority)?.links ?? []).map(({ agent_id, key_id, owner }) => ({
    ...row,
    agent_id,
    submitted_by: key_id,
    submitted_agent: agent_id,
    submitted_owner: owner,
  }));
  return [row, ...givers];
}

/**
 * Returns true if the visibility includes the action, and would include it as an action of each agent that gave its
 * authority.
 */
export function coversChain(visibility: Visibility, row: SubmittedAction): boolean {
  return listSubmitters(row).every((submitter) => canSee(visibility, submitter));
}

function findRelation(host: CoreHost, row: SubmittedAction, { key }: { key: VotingKey }): SelfRelation | null {
  const direct = relationOfKey(row, key);
  if (direct !== null) return direct;
  const makers = host.config.approvals.trust_key_makers
    ? []
    : listKeyMakers(key.id, (id) => host.keys.recordedKey(id)).slice(1);
  const isMaker = makers.some((maker) => relationOfKey(row, maker) !== null);
  return isMaker ? "same_maker" : relationToUnknown(host, row, key.owner);
}

/**
 * Returns `unknown_owner` if the voter might be the person behind the submitting key, else null. Once users exist, the
 * voter might be that person if the voting key has no owner, or if the owner of the submitting key is not a user.
 */
function relationToUnknown(
  host: CoreHost,
  { submitted_owner }: SubmittedAction,
  owner: string | null,
): SelfRelation | null {
  if (submitted_owner === null) return null;
  const mayBeSame = host.keys.isUnknownOwner(owner) || host.keys.isUnknownOwner(submitted_owner);
  return mayBeSame ? "unknown_owner" : null;
}

function relationOfKey(
  row: SubmittedAction,
  { id, agent_id, owner }: Pick<RecordedKey, "id" | "agent_id" | "owner">,
): SelfRelation | null {
  const submitter = { key_id: row.submitted_by, agent_id: row.submitted_agent, owner: row.submitted_owner };
  return findSelfRelation(submitter, row.agent_id, { key_id: id, agent_id, owner });
}

/** Returns true if the key submitted the action, is bound to its agent, or has the same owner as the submitting key. */
export function isSubmitter(row: ActionRow, { key }: Credential): boolean {
  return relationOfKey(row, key) !== null;
}

/**
 * Returns true if the caller has the claims with which the action was decided. Tokens with other claims can share a key
 * or a user, but the policies and the approvers have decided for these claims.
 */
export function hasClaimsOf(
  { facts }: Pick<DecisionEntry, "facts">,
  { workload }: Pick<Credential, "workload">,
): boolean {
  return canonicalText(facts.principal.claims ?? null) === canonicalText(workload?.claims ?? null);
}

/** Throws NOT_THE_SUBMITTER if the caller's key submitted the action with a token that had other claims. */
export function assertClaimsOf(basis: Pick<DecisionEntry, "facts">, row: ActionRow, caller: Credential): void {
  if (row.submitted_by !== caller.key.id || hasClaimsOf(basis, caller)) return;
  throw new Refusal(
    "NOT_THE_SUBMITTER",
    "a token with other claims submitted the action; submit it again with this one",
  );
}

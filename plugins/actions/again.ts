/**
 * Decides an open action again, at every vote for it and at its start: the policies, the agent and the key may have
 * changed since it was first decided.
 */
import { Refusal } from "../../src/contract/errors.ts";
import type { LedgerTransaction } from "../../src/contract/host.ts";
import type { ActionGuard, ActionRow } from "../../src/contract/storage.ts";
import type { ActionRequest } from "../../src/domain/actions.ts";
import type { Actor, DecisionEntry, RedecisionEntry } from "../../src/domain/entries.ts";
import { aboutAction } from "../../src/domain/open-actions.ts";
import { openFacts } from "../../src/domain/past.ts";
import { decideOn } from "../../src/domain/policy/decide.ts";
import { Evaluation } from "../../src/domain/policy/evaluation.ts";
import { limitNeeds, usedBefore } from "../../src/domain/policy/limits.ts";
import type { Decision, Facts, LimitFact } from "../../src/domain/policy/types.ts";
import { readUse } from "./limits.ts";
import { reread } from "./rows.ts";

export interface Redecision {
  decision: Decision;
  policySet: string | null;
  /** Without what was used of limits: from two of them a stranger could tell parameters. */
  facts: Facts;
}

/**
 * What the policies, the agent and the key of this moment say. Records nothing. Throws STOPPED while a stop holds that is about it. An action keeps its place among those
 * that a limit counts: what was used before it stays what was used before it, and it is not counted again.
 * @param first the action's own decision, from its entry
 */
export async function decideAgain(
  tx: LedgerTransaction,
  row: ActionRow,
  first: Pick<DecisionEntry, "facts">,
): Promise<Redecision> {
  const { compiled, source, digest } = tx.activePolicies;
  const request = JSON.parse(row.request) as ActionRequest;
  const commit = source?.["commit"];
  const facts: Facts = {
    principal: first.facts.principal,
    ...(await tx.agentFacts(row.agent_id)),
    ...(await keyEnded(tx, row.submitted_by)),
    ...(commit === undefined ? {} : { policy_commit: commit }),
  };
  const evaluation = new Evaluation(compiled, request, facts, tx.now);
  const counted = openFacts(first.facts, row.past);
  const limits: LimitFact[] = [];
  for (const need of limitNeeds(evaluation)) {
    const { policy, limit, basis } = need;
    limits.push({ policy, limit, basis, used: usedBefore(counted, need) ?? (await readUse(tx, need)) });
  }
  const decision = decideOn(evaluation, { ...facts, ...tx.stopFacts(row), limits });
  if (decision.reason_code === "STOPPED") throw stopped(row, decision);
  return { decision, policySet: digest, facts };
}

/** The stop decides nothing: when it is lifted, the action is where it was, unless its time is over. */
function stopped({ status }: ActionRow, { reason }: Decision): Refusal {
  return new Refusal("STOPPED", `${reason}; the action stays ${status}, and its time runs on`);
}

async function keyEnded(tx: LedgerTransaction, id: string): Promise<Pick<Facts, "key_ended">> {
  const key = await tx.key(id);
  const live = key !== null && key.revoked_at === null && (key.expires_at === null || key.expires_at > tx.now);
  return live ? {} : { key_ended: true };
}

/** Denies, in this job, an action that is allowed no longer. The caller commits that before it says so. */
export async function denyNow(
  tx: LedgerTransaction,
  row: ActionRow,
  { decision, policySet, facts }: Redecision,
  occasion: RedecisionEntry["occasion"],
  by: Actor,
): Promise<ActionRow> {
  tx.record(
    {
      type: "redecision",
      v: 1,
      ...aboutAction(row, tx.now),
      occasion,
      by,
      policy_set: policySet,
      facts,
      decision,
      status: "denied",
    },
    row.submitted_by,
  );
  const guard: ActionGuard = { status: row.status, ...(occasion === "vote" ? { expires_after: tx.now } : {}) };
  const { reason } = decision;
  const change = { status: "denied", reason, reason_code: "NO_LONGER_ALLOWED", updated_at: tx.now } as const;
  const moved = await tx.updateAction(row.id, guard, change);
  await tx.releaseLimitUses(row.id);
  if (!moved) throw new Error(`${row.id} was not denied although the ledger's lock was held`);
  return reread(tx, row.id);
}

/** Thrown after the commit: a refusal inside the job would take the record back. */
export function noLongerAllowed(row: ActionRow): Refusal {
  return new Refusal(
    "NO_LONGER_ALLOWED",
    `it was decided again with the policies, the agent and the key of now, and is denied: ${row.reason}`,
  );
}

export function isNoLongerAllowed(row: ActionRow): boolean {
  return row.status === "denied" && row.reason_code === "NO_LONGER_ALLOWED";
}

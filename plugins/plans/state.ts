/**
 * Reads a plan with its actions and verifies them against the ledger, before votes on the plan and starts of its
 * actions.
 */
import { canSee, type CoreHost, decodeEntry, equalBytes, type Guard, hashLeaf } from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import { type ActionRow, nullIfCorrupt, type StorageReader } from "../../src/storage/index.ts";
import { recordAlteredError, verifyAgainstLedger, type VerifiedHistory } from "../actions/api.ts";
import {
  actionListDigest,
  findPlanObstacle,
  MAX_PLAN_ACTIONS,
  type PlanMember,
  type PlanObstacle,
  type PlanTerms,
  toPlanMember,
} from "./action-list.ts";
import type { PlanEntry } from "./entry.ts";
import { ERRORS } from "./schemas.ts";

type Reader = Pick<StorageReader, "actions" | "entries" | "entriesOfAction">;

/** A plan that matches the ledger. */
export interface VerifiedPlan {
  entry: PlanEntry;
  terms: PlanTerms;
  /** The plan's actions, in the order of the plan. */
  rows: readonly ActionRow[];
  histories: readonly VerifiedHistory[];
  members: readonly PlanMember[];
  /** `actionListDigest` of the remaining actions. */
  digest: string;
}

/** Returns the actions of the plan, in order. Throws PLAN_NOT_FOUND unless the credential may see all of them. */
export async function readRowsOfVisiblePlan(
  reader: Pick<StorageReader, "actions">,
  id: string,
  { visibility }: Pick<Credential, "visibility">,
): Promise<ActionRow[]> {
  const rows = await readRows(reader, id);
  if (rows.length > 0 && rows.every((row) => canSee(visibility, row))) return rows;
  throw new Refusal(ERRORS.notFound, `there is no plan ${id} whose actions this key may all see`);
}

async function readRows(reader: Pick<StorageReader, "actions">, id: string): Promise<ActionRow[]> {
  const rows = await reader.actions({ visibility: { all: true }, plan_id: id, limit: MAX_PLAN_ACTIONS + 1 });
  return rows.toSorted((a, b) => a.decision_seq - b.decision_seq);
}

/**
 * Compares the actions of a plan with their entries and with the entry of the plan. Throws RECORD_ALTERED if they
 * differ.
 * @param rows all actions of the plan, in order
 */
export async function verifyPlan(
  host: Pick<CoreHost, "log">,
  reader: Reader,
  rows: readonly ActionRow[],
  now: number,
): Promise<VerifiedPlan> {
  const [first] = rows;
  if (first === undefined) throw new Error("a plan without actions cannot be verified");
  const histories = await Promise.all(rows.map((row) => verifyAgainstLedger(host, reader, row)));
  const entry = await readPlanEntry(reader, first);
  const listed = entry.plan.actions;
  const isComplete =
    listed.length === rows.length &&
    listed.every(
      ({ action_id, commitment }, i) =>
        rows[i]?.id === action_id && histories[i]?.first.commitment === commitment && rows[i]?.plan_position === i + 1,
    );
  if (!isComplete) throw recordAlteredError(first, ["plan"]);
  const members = rows.map((action, i) => toPlanMember({ ...(histories[i] as VerifiedHistory), action }, now));
  const { id, ordered, stop_on_failure } = entry.plan;
  const terms = { id, ordered, stop_on_failure };
  return { entry, terms, rows, histories, members, digest: actionListDigest(terms, members) };
}

/**
 * Reads the entry of a plan, which directly precedes the decision on its first action. Throws RECORD_ALTERED if the
 * entry is missing, damaged or of another plan.
 * @param row the plan's first action
 */
export async function readPlanEntry(reader: Pick<StorageReader, "entries">, row: ActionRow): Promise<PlanEntry> {
  const seq = row.decision_seq - 1;
  const [stored] = (await nullIfCorrupt(reader.entries(seq, seq + 1))) ?? [];
  if (stored?.type !== "plan" || !equalBytes(hashLeaf(stored.bytes), stored.leaf_hash))
    throw recordAlteredError(row, ["plan"]);
  const entry = decodeEntry<PlanEntry>(stored.bytes);
  if (entry.plan.id !== row.plan_id) throw recordAlteredError(row, ["plan"]);
  return entry;
}

/**
 * People approve a plan as a whole, so that they see everything that will run. An action of a plan can start only in
 * the plan's order, and only with approvals of the plan's current list of actions.
 */
export const planGuard: Guard<CoreHost> = {
  approvalErrors: [ERRORS.voteRequired],
  startErrors: [ERRORS.waiting, ERRORS.stopped],
  findApprovalBlock: ({ plan_id, plan_position }) =>
    plan_id === null
      ? null
      : new Refusal(
          ERRORS.voteRequired,
          `the action is number ${plan_position} of the plan ${plan_id}; approve the plan, with POST /v1/plans/${plan_id}/approval, or reject this action`,
        ),
  async selectApprovals(host, tx, row, approvals) {
    if (row.plan_id === null) return approvals;
    const { terms, members, digest } = await verifyPlan(host, tx, await readRows(tx, row.plan_id), tx.now);
    const obstacle = findPlanObstacle(terms, members, row.plan_position ?? 0);
    if (obstacle !== null) throw planObstacleError(terms, obstacle);
    return approvals.filter((vote) => vote.plan === digest);
  },
};

export function planObstacleError({ id }: PlanTerms, { kind, by }: PlanObstacle): Refusal {
  const culprit = `action ${by.position} of the plan ${id} (${by.action_id}) is ${by.status}`;
  return kind === "waiting"
    ? new Refusal(ERRORS.waiting, `the plan requires its order, and ${culprit}; try again when that action has ended`)
    : new Refusal(ERRORS.stopped, `the plan stops at the first failure, and ${culprit}; submit a new plan`);
}

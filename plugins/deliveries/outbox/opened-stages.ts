/** The stages of approval that an entry opens, from the entries of its action. */
import {
  type ActionEntry,
  type ApproverPlan,
  buildActionHistory,
  decodeEntry,
  evaluatePlanProgress,
  listStageChannels,
  toCountedVote,
} from "../../../src/core.ts";
import type { StorageTransaction } from "../../../src/storage/index.ts";
import { listReachableChannels } from "./channels.ts";
import type { BatchEntries, DeliveryCause, OutboxOptions } from "./new-delivery.ts";

/** A stage of an approval, with the channels that are notified when it opens. */
export type NotifyingStage = ReturnType<typeof evaluatePlanProgress>["stages"][number];

/**
 * Returns the entries of the body's action up to this entry. Adds the entries of the batch, which are not stored yet.
 */
export async function readActionEntries(
  tx: StorageTransaction,
  { action_id }: { action_id: string },
  { seq }: DeliveryCause,
  batch: BatchEntries,
): Promise<ActionEntry[]> {
  const stored = (await tx.entriesOfAction(action_id)).map(({ bytes }) => decodeEntry<ActionEntry>(bytes));
  const unstored = batch
    .filter((entry) => entry.seq <= seq && "action_id" in entry.body && entry.body.action_id === action_id)
    .map(({ body, ...position }) => ({ ...body, ...position }) as ActionEntry);
  return [...stored, ...unstored].filter(({ type }) => !type.includes(":"));
}

export function listApproverPlans(entry: ActionEntry): readonly ApproverPlan[] {
  if (entry.type === "decision") return entry.decision.approval?.approvers ?? [];
  return entry.type === "redecision" ? (entry.approvers ?? []) : [];
}

/**
 * Returns the stages that the last entry opened, including alternatives that open later (`stages`). Also returns the
 * channels that only earlier stages notify (`closed`).
 */
export function findOpenedStages(
  channels: OutboxOptions["channels"],
  entries: readonly ActionEntry[],
): { stages: NotifyingStage[]; closed: ReadonlySet<string> } {
  const named = listStageChannels(entries.flatMap(listApproverPlans));
  const history = named.length === 0 ? null : buildActionHistory(entries, "");
  if (history === null || history.requirement === null) return { stages: [], closed: new Set() };
  const { approvers, since } = history.requirement;
  const votes = history.approvals.map(toCountedVote);
  const earlier = entries.at(-1)?.type === "approval" ? votes.slice(0, -1) : null;
  const after = approvers.map((plan) => evaluatePlanProgress(plan, votes, since, since));
  const opened = after.filter(
    ({ isMet, steps }, i) =>
      !isMet &&
      (earlier === null || evaluatePlanProgress(approvers[i] as ApproverPlan, earlier, since, since).steps < steps),
  );
  const always = entries.flatMap((entry) => ("decision" in entry ? (entry.decision.approval?.notify ?? []) : []));
  const open = new Set([
    ...listReachableChannels(channels, always).map(({ name }) => name),
    ...after.flatMap(({ isMet, stages }) => (isMet ? [] : stages.flatMap(({ notify }) => notify))),
  ]);
  return {
    stages: opened.flatMap(({ stages }) => stages),
    closed: new Set(named.filter((name) => !open.has(name))),
  };
}

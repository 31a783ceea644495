/** The requests for approval that an entry causes. Their recipients are people who have not been notified yet. */
import type { EntryBody } from "../../../src/plugin.ts";
import {
  type ActionEntry,
  type ApproverPlan,
  type Decision,
  type DecisionEntry,
  evaluatePlanProgress,
  findApprovalTerms,
} from "../../../src/core.ts";
import type { DeliveryRow, StorageTransaction } from "../../../src/storage/index.ts";
import { isApprovalRequest } from "../courier/message.ts";
import type { BatchEntries, DeliveryCause, MessageSubject, NewDelivery, OutboxOptions } from "./new-delivery.ts";
import { findOpenedStages, readActionEntries } from "./opened-stages.ts";
import { buildApprovalRequests, computeRequestExpiry, type Urgency } from "./request-schedule.ts";
import { genuineDeliveriesOfAction } from "./genuine-deliveries.ts";

/**
 * Returns the requests for approval that the entry causes: for a pending action, for a stage that a vote opened, or for
 * a new decision on the action.
 * @param batch entries of the batch, and the requests for earlier actions of the same plan. Recipients of these
 * requests see the whole plan, so they are not notified again
 */
export async function createApprovalRequests(
  options: OutboxOptions,
  tx: StorageTransaction,
  body: EntryBody,
  cause: DeliveryCause,
  { entries: before, earlier: ofPlan }: { entries: BatchEntries; earlier: readonly NewDelivery[] },
): Promise<NewDelivery[]> {
  if (body.type === "decision" && body.status === "pending_approval") {
    const approvers = body.decision.approval?.approvers ?? [];
    const stages = approvers.flatMap((plan) => evaluatePlanProgress(plan, [], cause.now, cause.now).stages);
    return buildApprovalRequests(options, body, cause, {
      subject: subjectOf(body),
      isExcluded: findExcludedPeople(options, [body], approvers),
      urgencies: urgenciesOfPlan(body, before, cause.now),
      earlier: ofPlan,
      stages,
    });
  }
  if ((body.type !== "redecision" && body.type !== "approval") || body.status !== "pending_approval") return [];
  const entries = await readActionEntries(tx, body, cause, before);
  const { stages, closed } = findOpenedStages(options.channels, entries);
  if (body.type === "approval" && stages.length === 0) return [];
  const [first] = entries;
  if (first?.type !== "decision") return [];
  // After a vote, the earlier requests are still open, so their recipients are not notified again.
  const isVote = body.type === "approval" || body.occasion === "vote";
  const earlier = isVote ? await openRequests(options, tx, body.action_id, closed, cause) : [];
  const newest = entries.findLast((entry) => entry.type === "decision" || entry.type === "redecision");
  const request =
    body.type === "redecision"
      ? { ...body, decision: { approval: body.decision.approval ?? findEarlierTerms(entries) } }
      : { action_id: body.action_id, expires_at: newest?.expires_at ?? null, decision: null };
  const urgencies = [
    { expiresAt: computeRequestExpiry(request, cause.now), risk: newest?.decision.risk_level ?? null },
  ];
  const plans = (request.decision?.approval ?? findEarlierTerms(entries))?.approvers ?? [];
  return buildApprovalRequests(options, request, cause, {
    subject: subjectOf(first),
    isExcluded: findExcludedPeople(options, entries, plans),
    urgencies,
    earlier,
    stages,
  });
}

/**
 * Returns the approval terms of the previous decision, for an entry that has none. Machine reviewers do not receive
 * such a request.
 */
function findEarlierTerms(entries: readonly ActionEntry[]): Decision["approval"] {
  const terms = findApprovalTerms(entries);
  return terms === null ? null : { ...terms, reviewers: [] };
}

/**
 * Returns a function that returns true if a person's vote could not count for any rule. This applies to the person
 * behind an agent of the action, to people who changed the request, and to members of groups that every rule excludes.
 */
function findExcludedPeople(
  { groups, users }: OutboxOptions,
  entries: readonly (ActionEntry | DecisionEntry)[],
  plans: readonly ApproverPlan[],
): (person: string) => boolean {
  const requesters = new Set<string>();
  const editors = new Set<string>();
  for (const entry of entries)
    if (entry.type === "decision")
      for (const { owner } of [entry.submitted_by, ...(entry.facts?.authority?.links ?? [])]) {
        if (owner !== null) requesters.add(owner);
      }
    else if (entry.type === "redecision" && entry.occasion === "edit" && entry.by !== null)
      editors.add(entry.by.principal);
  const excludesGroups = plans.length > 0 && plans.every((plan) => plan.exclude_requester_groups);
  const ofRequesters = excludesGroups ? [...requesters].flatMap((each) => groups.of(each, users())) : [];
  return (person) =>
    requesters.has(person) ||
    editors.has(person) ||
    (ofRequesters.length > 0 && groups.of(person, users()).some((group) => ofRequesters.includes(group)));
}

const subjectOf = ({ agent_id, tool, submitted_by: { owner } }: DecisionEntry): MessageSubject => ({
  agent_id,
  tool,
  owner,
});

/** Returns the urgency of each pending action of the plan, because one message requests approval for all of them. */
function urgenciesOfPlan(body: DecisionEntry, batch: BatchEntries, now: number): Urgency[] {
  const isNotified = (other: EntryBody): other is DecisionEntry =>
    other.type === "decision" && other.status === "pending_approval" && other.plan?.id === body.plan?.id;
  const all = body.plan == null ? [body] : batch.map(({ body: other }) => other).filter(isNotified);
  return all.map((entry) => ({ expiresAt: computeRequestExpiry(entry, now), risk: entry.decision.risk_level }));
}

/**
 * Returns the requests that are still open. Drops scheduled messages to channels whose approvers are no longer needed.
 */
async function openRequests(
  { seals }: OutboxOptions,
  tx: StorageTransaction,
  actionId: string,
  closed: ReadonlySet<string>,
  { now }: DeliveryCause,
): Promise<DeliveryRow[]> {
  const open: DeliveryRow[] = [];
  for (const row of await genuineDeliveriesOfAction(seals(), tx, actionId)) {
    if (row.state === "scheduled" && closed.has(row.channel ?? ""))
      await tx.updateDelivery(row.id, row, { state: "obsolete", updated_at: now });
    else if (isApprovalRequest(row) && row.state !== "obsolete") open.push(row);
  }
  return open;
}

/** Changes to earlier requests for approval: sends them sooner, passes them to the next action of the plan, or closes them. */
import type { EntryBody } from "../../../src/plugin.ts";
import {
  type ApprovalEntry,
  DELIVERY_RETRY_MS,
  listStageChannels,
  type RedecisionEntry,
  type ReviewEntry,
} from "../../../src/core.ts";
import type { ActionRow, DeliveryRow, StorageTransaction } from "../../../src/storage/index.ts";
import type { Recipient } from "./channels.ts";
import { expiresWithAction, isApprovalRequest } from "../courier/message.ts";
import {
  type BatchEntries,
  type DeliveryCause,
  type NewDelivery,
  createDelivery,
  type OutboxOptions,
  recipientKey,
  resolveRecipients,
} from "./new-delivery.ts";
import { listApproverPlans, readActionEntries } from "./opened-stages.ts";
import { computeNoticeTime } from "./request-schedule.ts";
import { genuineDeliveriesOfAction } from "./genuine-deliveries.ts";

/** Plans have fewer actions. */
const MAX_ACTIONS_OF_PLAN = 1000;

type EndingEntry = ApprovalEntry | RedecisionEntry | ReviewEntry;

/**
 * Notifies people without waiting for the deadline of the machine reviewers, once a reviewer leaves the action to
 * people or all reviewers have answered. The quiet hours and digest of the channel still apply.
 */
export async function notifyAfterReview(
  { channels, seals }: OutboxOptions,
  tx: StorageTransaction,
  { action_id, answer, outstanding }: ReviewEntry,
  now: number,
): Promise<void> {
  if (answer === "approve" && outstanding > 0) return;
  const action = await tx.action(action_id);
  const [expiresAt, risk] = [action?.expires_at ?? now, action?.risk_level ?? null];
  for (const delivery of await genuineDeliveriesOfAction(seals(), tx, action_id))
    if (delivery.state === "scheduled" && delivery.kind === "approval_requested")
      await tx.updateDelivery(delivery.id, delivery, {
        ...scheduleAt(
          computeNoticeTime(channels.get(delivery.channel ?? "") ?? null, { at: now, expiresAt, risk }),
          now,
        ),
        updated_at: now,
      });
}

/**
 * Returns true if the recipients of an approval request must be notified of this entry: it settles a pending action, or
 * denies or cancels an action that was already approved. The expiry of an approved action that was not started does not
 * count.
 */
export function endsApprovalRequest(body: EntryBody): body is EndingEntry {
  if (body.type === "redecision") return body.status === "denied";
  if (body.type === "review") return body.status !== "pending_approval";
  return (
    body.type === "approval" &&
    body.verdict !== "rejection_lifted" &&
    body.status !== "pending_approval" &&
    !isExpiredApproval(body)
  );
}

/**
 * Returns true if the action was approved but not started in time. Its approvers were already notified of the approval.
 */
function isExpiredApproval({ verdict, approved_until }: ApprovalEntry): boolean {
  return verdict === "expired" && approved_until !== null;
}

function scheduleAt(at: number, now: number): Pick<NewDelivery, "state" | "next_at"> {
  return { state: at > now ? "scheduled" : "waiting", next_at: at };
}

/**
 * Notifies the recipients of requests of the outcome, and drops scheduled reminders and escalations. In a plan,
 * requests that were not delivered are moved to the next pending action, because their recipients got no separate
 * request for it.
 */
export async function notifyOfEnd(
  options: OutboxOptions,
  tx: StorageTransaction,
  entry: EndingEntry,
  cause: DeliveryCause,
  batch: BatchEntries,
): Promise<void> {
  const notified = new Set<string>();
  const deliveries = await genuineDeliveriesOfAction(options.seals(), tx, entry.action_id);
  const next = deliveries.some(isUndelivered) ? await findNextOfPlan(options, tx, entry, cause, batch) : null;
  for (const delivery of deliveries) {
    const channel = next?.channelOf(delivery) ?? null;
    if (next !== null && channel !== null && isUndelivered(delivery))
      await tx.insertDelivery(takeOver(options, { ...delivery, channel }, next.action, cause));
    if (delivery.state === "scheduled") {
      await tx.updateDelivery(delivery.id, delivery, { state: "obsolete", updated_at: cause.now });
      continue;
    }
    const key = JSON.stringify([delivery.destination, delivery.person]);
    if (!isApprovalRequest(delivery) || delivery.state === "dead" || delivery.state === "obsolete" || notified.has(key))
      continue;
    notified.add(key);
    const recipient = { notifier: delivery.notifier, to: delivery.recipient, person: delivery.person };
    await tx.insertDelivery(
      createDelivery(options, "approval_closed", cause, recipient, {
        action_id: entry.action_id,
        channel: delivery.channel,
      }),
    );
  }
}

function isUndelivered(row: DeliveryRow): boolean {
  return expiresWithAction(row) && (row.state === "scheduled" || row.state === "waiting");
}

/**
 * Returns the next pending action in the plan of an ended action; null if there is none. `channelOf` returns the next
 * action's first channel that contains the recipient of a delivery; null if there is none.
 */
async function findNextOfPlan(
  options: OutboxOptions,
  tx: StorageTransaction,
  { action_id }: EndingEntry,
  cause: DeliveryCause,
  batch: BatchEntries,
): Promise<{ action: ActionRow; channelOf(delivery: DeliveryRow): string | null } | null> {
  const { channels } = options;
  const plan = (await tx.action(action_id))?.plan_id ?? null;
  if (plan === null) return null;
  const rows = await tx.actions({ visibility: { all: true }, plan_id: plan, limit: MAX_ACTIONS_OF_PLAN });
  const action = rows
    .filter(({ id, status }) => id !== action_id && status === "pending_approval")
    .toSorted((a, b) => a.decision_seq - b.decision_seq)
    .find(({ expires_at }) => (expires_at ?? 0) > cause.now);
  if (action === undefined) return null;
  const entries = await readActionEntries(tx, { action_id: action.id }, cause, batch);
  const always = entries.flatMap((entry) => ("decision" in entry ? (entry.decision.approval?.notify ?? []) : []));
  const named = [...always, ...listStageChannels(entries.flatMap(listApproverPlans))];
  const escalations = named.flatMap((name) => channels.get(name)?.escalate?.to ?? []);
  const notified = [...named, ...escalations].flatMap((name) => channels.get(name) ?? []);
  return {
    action,
    channelOf({ notifier, recipient: to, person }) {
      const isRecipient = (other: Recipient): boolean =>
        recipientKey(other.notifier, other.to, other.person) === recipientKey(notifier, to, person);
      return notified.find(({ recipients }) => resolveRecipients(options, recipients).some(isRecipient))?.name ?? null;
    },
  };
}

/**
 * Returns a copy of the delivery for another action. The copy is due at the same time, or now if the action expires
 * before that time.
 */
function takeOver(
  options: OutboxOptions,
  delivery: DeliveryRow,
  { id, expires_at }: ActionRow,
  cause: DeliveryCause,
): NewDelivery {
  const { kind, notifier, recipient: to, person, channel, next_at } = delivery;
  const expiresAt = expires_at ?? cause.now;
  const at = next_at < expiresAt ? next_at : cause.now;
  return createDelivery(
    options,
    kind,
    cause,
    { notifier, to, person },
    {
      action_id: id,
      channel,
      ...scheduleAt(at, cause.now),
      give_up_at: Math.min(at + DELIVERY_RETRY_MS, expiresAt),
    },
  );
}

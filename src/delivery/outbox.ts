/**
 * The transactional outbox: writes notifications to the store in the transaction that records their cause. Therefore
 * approvers are notified of every recorded decision, and never of a decision that was not recorded.
 */
import { DELIVERY_RETRY_MS, type Feed, type Notifier } from "../contract/notifier.ts";
import type { Keys } from "../contract/core-host.ts";
import type { ActionRow, DeliveryKind, DeliveryRow, StorageTransaction } from "../contract/storage.ts";
import { MAX_PLAN_ACTIONS } from "../domain/action-plan.ts";
import { buildActionHistory, countRecorded, type ActionEntry } from "../domain/action-history.ts";
import { evaluatePlanProgress, stageChannels, type ApproverPlan } from "../domain/approvers.ts";
import {
  decodeEntry,
  type ApprovalEntry,
  type BreakGlassEntry,
  type DecisionEntry,
  type EntryBody,
  type ExecutionEntry,
  type RedecisionEntry,
  type ReviewEntry,
} from "../domain/entries.ts";
import { COVERAGE_ENTRY, type CoverageStatement, hasGap } from "../domain/effects/coverage-statement.ts";
import { principalOfOwner } from "../domain/owner.ts";
import { matchesAnyName } from "../domain/policy/compile/name-patterns.ts";
import { REVIEW_DEADLINE_MS } from "../domain/reviews.ts";
import { delayNotice, delayToDigest } from "../domain/quiet-hours.ts";
import { shiftsBetween } from "../domain/rota.ts";
import { parseRfc3339 } from "../domain/time.ts";
import { reachableChannels, type Channel, type ChannelRecipient, type Recipient } from "./channels.ts";
import type { AfterEntries } from "../ledger/commit/batch.ts";
import { missingChannelMessage, NO_NOTIFIER } from "./notifier-calls.ts";
import { expiresWithAction, isApprovalRequest } from "./message.ts";

export interface Outbox {
  /** Writes the notifications of a batch; null if no channel or feed is configured. */
  write: AfterEntries | null;
}

interface OutboxOptions {
  channels: ReadonlyMap<string, Channel>;
  notifiers: readonly Notifier[];
  /** Names of the configured machine reviewers. */
  reviewers: readonly string[];
  /** Returns the people of the ledger. Called within a batch. */
  people(): Pick<Keys, "identitiesOf" | "isEndedOwner">;
  /** Names of the channels that are notified of stops. */
  stops: readonly string[];
  /** Names of the channels that are notified of emergency approvals. */
  breakGlass: readonly string[];
  /** Names of the channels that are notified of gaps in coverage. */
  coverage: readonly string[];
  newId(): string;
}

type NewDelivery = Omit<DeliveryRow, "position">;
/** The subject of a request for approval. `decision` is null if a vote opened the next stage. */
type ApprovalRequest = Pick<DecisionEntry, "action_id" | "expires_at"> & { decision: DecisionEntry["decision"] | null };
/** Determines how long a notice can wait: the deadline of the votes, and the risk. */
interface Urgency {
  expiresAt: number;
  risk: string | null;
}
/** A stage of an approval, with the channels that are notified when it opens. */
type NotifyingStage = ReturnType<typeof evaluatePlanProgress>["stages"][number];
type EndingEntry = ApprovalEntry | RedecisionEntry | ReviewEntry;

export function createOutbox(options: OutboxOptions): Outbox {
  const feeds = options.notifiers.flatMap((notifier) =>
    (notifier.feeds ?? []).map((feed) => ({ notifier: notifier.name, feed })),
  );
  if (options.channels.size === 0 && feeds.length === 0) return { write: null };
  return {
    async write(tx, entries, now) {
      const ofPlans = new Map<string, NewDelivery[]>();
      for (const { seq, body } of entries) {
        const at = { seq, now };
        if (options.channels.size > 0) {
          const plan = body.type === "decision" ? (body.plan?.id ?? null) : null;
          const earlier = (plan === null ? null : ofPlans.get(plan)) ?? [];
          const requests = await newApprovalRequests(options, tx, body, at, { entries, earlier });
          for (const request of requests) await tx.insertDelivery(request);
          if (plan !== null) ofPlans.set(plan, [...earlier, ...requests]);
        }
        for (const notice of serviceNotices(options, body, at)) await tx.insertDelivery(notice);
        if (body.type === "break_glass" && body.change === "used")
          for (const notice of await breakGlassNotices(options, tx, body, at)) await tx.insertDelivery(notice);
        if (body.type === "throttle")
          for (const notice of noticesToPerson(
            options,
            "agent_throttled",
            body.submitted_by.owner,
            at,
            body.related_action,
          ))
            await tx.insertDelivery(notice);
        if (body.type === "execution" && body.status === "unknown")
          for (const notice of await unknownOutcomeNotices(options, tx, body, at)) await tx.insertDelivery(notice);
        if (body.type === "review" && body.status === "pending_approval")
          await notifyAfterReview(options, tx, body, now);
        if (isEnding(body)) await notifyOfEnd(options, tx, body, at, entries);
        for (const { notifier, feed } of feeds) {
          if (!feedIncludes(feed, body)) continue;
          const action_id = "action_id" in body ? body.action_id : null;
          await tx.insertDelivery(
            newDelivery(options, "event", at, { notifier, to: feed.to, person: null }, { action_id }),
          );
        }
      }
    },
  };
}

type BatchEntries = readonly { seq: number; body: EntryBody }[];

/** The entry that causes a delivery: its sequence number and the time of its batch. */
interface Cause {
  seq: number;
  now: number;
}

function newDelivery(
  { newId }: OutboxOptions,
  kind: DeliveryKind,
  { seq, now }: Cause,
  recipient: Recipient,
  values: Partial<NewDelivery> = {},
): NewDelivery {
  return {
    id: newId(),
    destination: destinationOf(recipient),
    notifier: recipient.notifier,
    recipient: recipient.to,
    kind,
    seq,
    action_id: null,
    person: recipient.person,
    channel: null,
    state: "waiting",
    attempts: 0,
    next_at: now,
    give_up_at: now + DELIVERY_RETRY_MS,
    last_error: null,
    reference: null,
    delivered_at: null,
    created_at: now,
    updated_at: now,
    ...values,
  };
}

/** Each destination gets one message at a time. */
function destinationOf({ notifier, to }: Recipient): string {
  return `${notifier} ${to}`;
}

const recipientKey = (notifier: string, to: string, person: string | null): string =>
  JSON.stringify([notifier, to, person]);

/** Returns true if both names can belong to one person, under any past or present name of a user. */
function isSamePerson({ people }: OutboxOptions, a: string, b: string): boolean {
  const other = people().identitiesOf(principalOfOwner(b));
  return people()
    .identitiesOf(principalOfOwner(a))
    .some((principal) => other.includes(principal));
}

/** Returns true if the recipient is a deactivated user. Such users are not notified. */
function isEnded({ people }: OutboxOptions, { person }: Recipient): boolean {
  return person !== null && people().isEndedOwner(person);
}

/** Returns the notices of an entry that is not about an action: a stop, or a coverage statement with gaps. */
function serviceNotices(options: OutboxOptions, body: EntryBody, cause: Cause): NewDelivery[] {
  if (body.type === "stop") return noticesTo(options.stops, options, "stop", cause, null);
  if (body.type === COVERAGE_ENTRY && hasGap(body.data as unknown as CoverageStatement))
    return noticesTo(options.coverage, options, "coverage_gap", cause, null);
  return [];
}

/**
 * Returns notices of an emergency approval: to the configured channels, to every channel that was notified of the
 * request, and to the person behind the agent. Each address gets one notice.
 */
async function breakGlassNotices(
  options: OutboxOptions,
  tx: StorageTransaction,
  { related_action }: BreakGlassEntry,
  cause: Cause,
): Promise<NewDelivery[]> {
  const asked = (await tx.deliveriesOfAction(related_action)).flatMap(({ channel }) => channel ?? []);
  const owner = (await tx.action(related_action))?.submitted_owner ?? null;
  const notices = [
    ...noticesTo([...options.breakGlass, ...asked], options, "break_glass", cause, related_action),
    ...noticesToPerson(options, "break_glass", owner, cause, related_action),
  ];
  const keys = notices.map(({ notifier, recipient, person }) => recipientKey(notifier, recipient, person));
  return notices.filter((_, i) => keys.indexOf(keys[i] as string) === i);
}

/** Returns one notice for each recipient of the channels, even if a recipient is in several of them. */
function noticesTo(
  names: readonly string[],
  options: OutboxOptions,
  kind: DeliveryKind,
  cause: Cause,
  action_id: string | null,
): NewDelivery[] {
  const notices = new Map<string, NewDelivery>();
  for (const channel of names.flatMap((name) => options.channels.get(name) ?? []))
    for (const recipient of channel.recipients) {
      const key = recipientKey(recipient.notifier, recipient.to, recipient.person);
      if (!notices.has(key) && !isEnded(options, recipient))
        notices.set(key, newDelivery(options, kind, cause, recipient, { action_id, channel: channel.name }));
    }
  return [...notices.values()];
}

async function unknownOutcomeNotices(
  options: OutboxOptions,
  tx: StorageTransaction,
  { action_id }: ExecutionEntry,
  cause: Cause,
): Promise<NewDelivery[]> {
  const owner = (await tx.action(action_id))?.submitted_owner ?? null;
  return noticesToPerson(options, "outcome_unknown", owner, cause, action_id);
}

/** Returns one notice for each address that the channels have for the person behind the action. */
function noticesToPerson(
  options: OutboxOptions,
  kind: DeliveryKind,
  owner: string | null,
  cause: Cause,
  action_id: string,
): NewDelivery[] {
  if (owner === null) return [];
  const notices = new Map<string, NewDelivery>();
  for (const channel of options.channels.values())
    for (const recipient of channel.recipients) {
      const { person } = recipient;
      if (person === null || !isSamePerson(options, person, owner) || isEnded(options, recipient)) continue;
      const key = recipientKey(recipient.notifier, recipient.to, person);
      if (!notices.has(key))
        notices.set(key, newDelivery(options, kind, cause, recipient, { action_id, channel: channel.name }));
    }
  return [...notices.values()];
}

/**
 * @param batch the entries of the batch, and the requests for earlier actions of the same plan. The recipients of these
 * requests see the whole plan, so they are not notified again
 */
async function newApprovalRequests(
  options: OutboxOptions,
  tx: StorageTransaction,
  body: EntryBody,
  cause: Cause,
  { entries: before, earlier: ofPlan }: { entries: BatchEntries; earlier: readonly NewDelivery[] },
): Promise<NewDelivery[]> {
  if (body.type === "decision" && body.status === "pending_approval") {
    const approvers = body.decision.approval?.approvers ?? [];
    const stages = approvers.flatMap((plan) => evaluatePlanProgress(plan, [], cause.now, cause.now).stages);
    return approvalRequests(options, body, cause, {
      submitter: body.submitted_by.owner,
      urgencies: urgenciesOfPlan(body, before, cause.now),
      earlier: ofPlan,
      stages,
    });
  }
  if ((body.type !== "redecision" && body.type !== "approval") || body.status !== "pending_approval") return [];
  const entries = await readActionEntries(tx, body, cause, before);
  const { stages, closed } = openedStages(options.channels, entries);
  if (body.type === "approval" && stages.length === 0) return [];
  const submitter = entries[0]?.type === "decision" ? entries[0].submitted_by.owner : null;
  // A vote leaves the earlier requests open, so their recipients are not notified again.
  const isVote = body.type === "approval" || body.occasion === "vote";
  const earlier = isVote ? await openRequests(tx, body.action_id, closed, cause) : [];
  const newest = entries.findLast((entry) => entry.type === "decision" || entry.type === "redecision");
  const request =
    body.type === "redecision"
      ? body
      : { action_id: body.action_id, expires_at: newest?.expires_at ?? null, decision: null };
  const urgencies = [{ expiresAt: expiryOf(request, cause.now), risk: newest?.decision.risk_level ?? null }];
  return approvalRequests(options, request, cause, { submitter, urgencies, earlier, stages });
}

const expiryOf = ({ expires_at }: Pick<ApprovalRequest, "expires_at">, now: number): number =>
  parseRfc3339(expires_at ?? "") ?? now;

/** Returns the urgency of each pending action of the plan, because one notice is for all actions. */
function urgenciesOfPlan(body: DecisionEntry, batch: BatchEntries, now: number): Urgency[] {
  const isNotified = (other: EntryBody): other is DecisionEntry =>
    other.type === "decision" && other.status === "pending_approval" && other.plan?.id === body.plan?.id;
  const all = body.plan == null ? [body] : batch.map(({ body: other }) => other).filter(isNotified);
  return all.map((entry) => ({ expiresAt: expiryOf(entry, now), risk: entry.decision.risk_level }));
}

/**
 * Returns the entries of the action up to and including `body`. Adds the entries of the batch, which are not stored
 * yet.
 */
async function readActionEntries(
  tx: StorageTransaction,
  { action_id }: { action_id: string },
  { seq }: Cause,
  batch: readonly { seq: number; body: EntryBody }[],
): Promise<ActionEntry[]> {
  const stored = (await tx.entriesOfAction(action_id)).map(({ bytes }) => decodeEntry<ActionEntry>(bytes));
  const own = batch
    .filter((entry) => entry.seq <= seq && "action_id" in entry.body && entry.body.action_id === action_id)
    .map(({ body, ...at }) => ({ ...body, ...at }) as ActionEntry);
  return [...stored, ...own].filter(({ type }) => !type.includes(":"));
}

function approversIn(entry: ActionEntry): readonly ApproverPlan[] {
  if (entry.type === "decision") return entry.decision.approval?.approvers ?? [];
  return entry.type === "redecision" ? (entry.approvers ?? []) : [];
}

/**
 * Returns the requests that are still open. Cancels scheduled messages to channels whose approvers are no longer
 * needed.
 */
async function openRequests(
  tx: StorageTransaction,
  actionId: string,
  closed: ReadonlySet<string>,
  { now }: Cause,
): Promise<DeliveryRow[]> {
  const open: DeliveryRow[] = [];
  for (const row of await tx.deliveriesOfAction(actionId)) {
    if (row.state === "scheduled" && closed.has(row.channel ?? ""))
      await tx.updateDelivery(row.id, row, { state: "obsolete", updated_at: now });
    else if (isApprovalRequest(row) && row.state !== "obsolete") open.push(row);
  }
  return open;
}

/**
 * Returns the stages that the last of these entries opened, including alternatives that open later. Also returns the
 * channels that only earlier stages notify.
 */
function openedStages(
  channels: OutboxOptions["channels"],
  entries: readonly ActionEntry[],
): { stages: NotifyingStage[]; closed: ReadonlySet<string> } {
  const named = stageChannels(entries.flatMap(approversIn));
  const history = named.length === 0 ? null : buildActionHistory(entries, "");
  if (history === null || history.requirement === null) return { stages: [], closed: new Set() };
  const { approvers, since } = history.requirement;
  const votes = history.approvals.map(countRecorded);
  const earlier = entries.at(-1)?.type === "approval" ? votes.slice(0, -1) : null;
  const after = approvers.map((plan) => evaluatePlanProgress(plan, votes, since, since));
  const opened = after.filter(
    ({ isMet, steps }, i) =>
      !isMet &&
      (earlier === null || evaluatePlanProgress(approvers[i] as ApproverPlan, earlier, since, since).steps < steps),
  );
  const always = entries.flatMap((entry) => ("decision" in entry ? (entry.decision.approval?.notify ?? []) : []));
  const asked = new Set([
    ...reachableChannels(channels, always).map(({ name }) => name),
    ...after.flatMap(({ isMet, stages }) => (isMet ? [] : stages.flatMap(({ notify }) => notify))),
  ]);
  return {
    stages: opened.flatMap(({ stages }) => stages),
    closed: new Set(named.filter((name) => !asked.has(name))),
  };
}

/**
 * Returns one request for each person, even if a person is in several channels, with reminders and escalations.
 * @param submitter the owner of the action, who is not notified unless self-approval is allowed
 * @param urgencies the urgencies of the actions of the request. The most urgent action determines when people are
 * notified
 * @param earlier the earlier deliveries, whose recipients are not notified again
 * @param stages the stages that open now, or later if the earlier stages are not satisfied in time
 */
function approvalRequests(
  options: OutboxOptions,
  entry: ApprovalRequest,
  cause: Cause,
  {
    submitter,
    urgencies,
    earlier,
    stages,
  }: {
    submitter: string | null;
    urgencies: readonly Urgency[];
    earlier: readonly NewDelivery[];
    stages: readonly NotifyingStage[];
  },
): NewDelivery[] {
  const { channels } = options;
  const { now } = cause;
  const expiresAt = expiryOf(entry, now);
  // Machine reviewers answer first, so that people are not notified of actions that a reviewer resolves.
  const isReviewed = (entry.decision?.approval?.reviewers ?? []).some(({ name }) => options.reviewers.includes(name));
  const firstAt = isReviewed ? now + Math.min(REVIEW_DEADLINE_MS, Math.floor((expiresAt - now) / 4)) : now;
  const notified = new Set(earlier.map(({ notifier, recipient, person }) => recipientKey(notifier, recipient, person)));
  const isSubmitter = ({ person }: Recipient): boolean =>
    submitter !== null && person !== null && isSamePerson(options, submitter, person);
  const requestsOf = (channel: Channel, from: number): NewDelivery[] =>
    recipientsOf(channel, from, expiresAt).flatMap(({ recipient, at }) => {
      const key = recipientKey(recipient.notifier, recipient.to, recipient.person);
      if (notified.has(key) || isSubmitter(recipient) || isEnded(options, recipient)) return [];
      notified.add(key);
      return requestAndReminder(options, entry.action_id, cause, {
        channel,
        recipient,
        firstAt,
        at,
        expiresAt,
        urgencies,
      });
    });
  const names = [...new Set(entry.decision?.approval?.notify ?? [])];
  const direct = names.flatMap((name) => channels.get(name) ?? []);
  const deliveries = direct.flatMap((channel) => requestsOf(channel, firstAt));
  for (const { opensAt, notify } of stages.filter((stage) => stage.opensAt < expiresAt))
    for (const name of notify) {
      const channel = channels.get(name);
      if (channel === undefined) names.push(name);
      else deliveries.push(...requestsOf(channel, Math.max(firstAt, opensAt)));
    }
  for (const name of new Set(names))
    if (!channels.has(name)) deliveries.push(undeliverable(options, name, entry.action_id, cause));
  for (const { escalate } of direct) {
    const escalation = escalate === null ? undefined : channels.get(escalate.to);
    if (escalate !== null && escalation !== undefined && now + escalate.after < expiresAt)
      deliveries.push(...requestsOf(escalation, now + escalate.after));
  }
  return deliveries;
}

/**
 * Returns the recipients of a channel, each with the time of its message. If the channel has a rota, these are the
 * person on call at `from` and the people on call later.
 */
function recipientsOf(
  { recipients, rota }: Channel,
  from: number,
  until: number,
): { recipient: ChannelRecipient; at: number }[] {
  if (rota === null) return recipients.map((recipient) => ({ recipient, at: from }));
  const places = recipients.filter(({ member }) => member === null).map((recipient) => ({ recipient, at: from }));
  const onCall = shiftsBetween(rota, from, until).flatMap((shift) =>
    recipients
      .filter(({ member }) => member === shift.member)
      .map((recipient) => ({ recipient, at: Math.max(from, shift.from) })),
  );
  return [...places, ...onCall];
}

function requestAndReminder(
  options: OutboxOptions,
  action_id: string,
  cause: Cause,
  {
    channel,
    recipient,
    firstAt,
    at: dueAt,
    expiresAt,
    urgencies,
  }: {
    channel: Channel;
    recipient: Recipient;
    /** Time of the messages to the first recipients. Messages at a later time are escalations. */
    firstAt: number;
    at: number;
    expiresAt: number;
    urgencies: readonly Urgency[];
  },
): NewDelivery[] {
  const { now } = cause;
  const kind = dueAt > firstAt ? "approval_escalated" : "approval_requested";
  const at = Math.min(...urgencies.map((urgency) => noticeTime(channel, { at: dueAt, ...urgency })));
  const request = { action_id, channel: channel.name };
  // Set an early deadline, because the courier sends the message that expires first ahead of the others.
  const giveUpAt = (from: number): number => Math.min(from + DELIVERY_RETRY_MS, expiresAt);
  const scheduled = (time: number): Partial<NewDelivery> => ({
    ...request,
    state: "scheduled",
    next_at: time,
    give_up_at: giveUpAt(time),
  });
  const deliveries = [
    at > now
      ? newDelivery(options, kind, cause, recipient, scheduled(at))
      : newDelivery(options, kind, cause, recipient, { ...request, give_up_at: giveUpAt(now) }),
  ];
  const remindAt = channel.remindBefore === null ? null : expiresAt - channel.remindBefore;
  if (remindAt !== null && remindAt > at)
    deliveries.push(
      newDelivery(
        options,
        "approval_reminder",
        cause,
        recipient,
        scheduled(
          Math.min(...urgencies.map(({ risk }) => delayNotice(channel.quiet, { at: remindAt, expiresAt, risk }))),
        ),
      ),
    );
  return deliveries;
}

/**
 * Returns the time at which a request is sent: after the quiet hours of the channel, and with the channel's next
 * digest. Delays it by at most half of the time to vote.
 */
function noticeTime(channel: Pick<Channel, "quiet" | "digest"> | null, notice: { at: number } & Urgency): number {
  if (channel === null) return notice.at;
  const { at, expiresAt } = notice;
  const afterQuiet = delayNotice(channel.quiet, notice);
  const inDigest = delayToDigest(channel.digest, { ...notice, at: afterQuiet });
  return inDigest - at > (expiresAt - at) / 2 ? afterQuiet : inDigest;
}

/**
 * Returns a failed delivery for a channel that is not configured, so that the mistake appears in the list of
 * deliveries.
 */
function undeliverable(options: OutboxOptions, name: string, action_id: string, cause: Cause): NewDelivery {
  return newDelivery(
    options,
    "approval_requested",
    cause,
    { notifier: NO_NOTIFIER, to: name, person: null },
    {
      action_id,
      channel: name,
      destination: `channel ${name}`,
      state: "dead",
      last_error: missingChannelMessage(name),
    },
  );
}

/** Notifies people immediately if a reviewer leaves the action to them, or if all reviewers have answered. */
async function notifyAfterReview(
  { channels }: OutboxOptions,
  tx: StorageTransaction,
  { action_id, answer, outstanding }: ReviewEntry,
  now: number,
): Promise<void> {
  if (answer === "approve" && outstanding > 0) return;
  const action = await tx.action(action_id);
  const [expiresAt, risk] = [action?.expires_at ?? now, action?.risk_level ?? null];
  for (const delivery of await tx.deliveriesOfAction(action_id))
    if (delivery.state === "scheduled" && delivery.kind === "approval_requested")
      await tx.updateDelivery(delivery.id, delivery, {
        ...scheduleAt(noticeTime(channels.get(delivery.channel ?? "") ?? null, { at: now, expiresAt, risk }), now),
        updated_at: now,
      });
}

function scheduleAt(at: number, now: number): Pick<NewDelivery, "state" | "next_at"> {
  return { state: at > now ? "scheduled" : "waiting", next_at: at };
}

/**
 * Notifies the recipients of requests of the outcome, and cancels scheduled reminders and escalations. In a plan, the
 * next pending action takes over the requests that were not delivered, because its own approvers were not notified
 * again.
 */
async function notifyOfEnd(
  options: OutboxOptions,
  tx: StorageTransaction,
  entry: EndingEntry,
  cause: Cause,
  batch: BatchEntries,
): Promise<void> {
  const notified = new Set<string>();
  const deliveries = await tx.deliveriesOfAction(entry.action_id);
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
      newDelivery(options, "approval_closed", cause, recipient, {
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
 * Returns the next pending action in the plan of an action that ended. `channelOf` returns the first channel that this
 * action's rules notify and that contains the recipient of a delivery; null if there is no such channel.
 */
async function findNextOfPlan(
  { channels }: OutboxOptions,
  tx: StorageTransaction,
  { action_id }: EndingEntry,
  cause: Cause,
  batch: BatchEntries,
): Promise<{ action: ActionRow; channelOf(delivery: DeliveryRow): string | null } | null> {
  const plan = (await tx.action(action_id))?.plan_id ?? null;
  if (plan === null) return null;
  const rows = await tx.actions({ visibility: { all: true }, plan_id: plan, limit: MAX_PLAN_ACTIONS });
  const action = rows
    .filter(({ id, status }) => id !== action_id && status === "pending_approval")
    .toSorted((a, b) => a.decision_seq - b.decision_seq)
    .find(({ expires_at }) => (expires_at ?? 0) > cause.now);
  if (action === undefined) return null;
  const entries = await readActionEntries(tx, { action_id: action.id }, cause, batch);
  const always = entries.flatMap((entry) => ("decision" in entry ? (entry.decision.approval?.notify ?? []) : []));
  const named = [...always, ...stageChannels(entries.flatMap(approversIn))];
  const escalations = named.flatMap((name) => channels.get(name)?.escalate?.to ?? []);
  const notified = [...named, ...escalations].flatMap((name) => channels.get(name) ?? []);
  return {
    action,
    channelOf({ notifier, recipient: to, person }) {
      const isRecipient = (other: Recipient): boolean =>
        recipientKey(other.notifier, other.to, other.person) === recipientKey(notifier, to, person);
      return notified.find(({ recipients }) => recipients.some(isRecipient))?.name ?? null;
    },
  };
}

/**
 * Returns a copy of the delivery for another action. The copy has the same time, unless the other action expires before
 * that time.
 */
function takeOver(
  options: OutboxOptions,
  delivery: DeliveryRow,
  { id, expires_at }: ActionRow,
  cause: Cause,
): NewDelivery {
  const { kind, notifier, recipient: to, person, channel, next_at } = delivery;
  const expiresAt = expires_at ?? cause.now;
  const at = next_at < expiresAt ? next_at : cause.now;
  return newDelivery(
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

/** Returns true if the entry ends a request for approval, including a later denial of an approved action. */
function isEnding(body: EntryBody): body is EndingEntry {
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

function feedIncludes({ types, agents }: Feed, body: EntryBody): boolean {
  if (types !== undefined && !types.includes(body.type)) return false;
  const agent = "agent_id" in body ? body.agent_id : null;
  return agents === undefined || agent === null || matchesAnyName(agents, agent);
}

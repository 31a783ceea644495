/**
 * Puts what is to be told into the store, in the transaction that records it: there is no decision whose people
 * could be forgotten, and no message about a decision that was not made.
 */
import { DELIVERY_RETRY_MS, type Feed, type Notifier } from "../contract/notifier.ts";
import type { DeliveryKind, DeliveryRow, StorageTransaction } from "../contract/storage.ts";
import type { ApprovalEntry, DecisionEntry, EntryBody, RedecisionEntry } from "../domain/entries.ts";
import { ownerIdentity } from "../domain/owner.ts";
import { matchesAnyName } from "../domain/policy/compile/name-patterns.ts";
import { parseRfc3339 } from "../domain/time.ts";
import type { Channel, Recipient } from "./channels.ts";
import type { AfterEntries } from "../ledger/commit/batch.ts";
import { missingChannelMessage, NO_NOTIFIER } from "./notifier-calls.ts";
import { isApprovalRequest } from "./message.ts";

export interface Outbox {
  /** Null when nobody is to be told anything: batches then skip this step. */
  write: AfterEntries | null;
}

export interface OutboxOptions {
  channels: ReadonlyMap<string, Channel>;
  notifiers: readonly Notifier[];
  allowSelfApproval: boolean;
  /** Channels that are told of stops. */
  stops: readonly string[];
  newId(): string;
}

type NewRow = Omit<DeliveryRow, "position">;

export function createOutbox({ channels, notifiers, allowSelfApproval, stops, newId }: OutboxOptions): Outbox {
  const feeds = notifiers.flatMap(({ name, feeds: own = [] }) => own.map((feed) => ({ notifier: name, feed })));
  if (channels.size === 0 && feeds.length === 0) return { write: null };

  function row(kind: DeliveryKind, seq: number, now: number, recipient: Recipient, more: Partial<NewRow> = {}): NewRow {
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
      ...more,
    };
  }

  /** One for each recipient, however many channels they are in. */
  function stopNotices(seq: number, now: number): NewRow[] {
    const notices = new Map<string, NewRow>();
    for (const channel of stops.flatMap((name) => channels.get(name) ?? []))
      for (const recipient of channel.recipients) {
        const who = JSON.stringify([recipient.notifier, recipient.to, recipient.person]);
        if (!notices.has(who)) notices.set(who, row("stop", seq, now, recipient, { channel: channel.name }));
      }
    return [...notices.values()];
  }

  /** Where a channel is not configured: nobody is told, and that is said where deliveries are looked at. */
  function nobody(name: string, action_id: string, seq: number, now: number): NewRow {
    const about = { action_id, channel: name, destination: `channel ${name}` };
    return row(
      "approval_requested",
      seq,
      now,
      { notifier: NO_NOTIFIER, to: name, person: null },
      { ...about, state: "dead", last_error: missingChannelMessage(name) },
    );
  }

  /** One request for each person, however many channels they are in. Nobody is asked about their own action. */
  function approvalRequests(
    entry: Request,
    seq: number,
    now: number,
    { owner: own, earlier }: { owner: string | null; earlier: readonly DeliveryRow[] },
  ): NewRow[] {
    const expiresAt = parseRfc3339(entry.expires_at ?? "") ?? now;
    const destinations = new Set(
      earlier.map(({ notifier, recipient, person }) => JSON.stringify([notifier, recipient, person])),
    );
    const tell = (channel: Channel, at: number): NewRow[] =>
      channel.recipients.flatMap((recipient) => {
        const who = JSON.stringify([recipient.notifier, recipient.to, recipient.person]);
        const self =
          own !== null && recipient.person !== null && ownerIdentity(own) === ownerIdentity(recipient.person);
        if (destinations.has(who) || (self && !allowSelfApproval)) return [];
        destinations.add(who);
        const about = { action_id: entry.action_id, channel: channel.name };
        // Which goes first to a destination that failed is told by when it is given up.
        const patience = (from: number): number => Math.min(from + DELIVERY_RETRY_MS, expiresAt);
        const rows = [
          at > now
            ? row("approval_escalated", seq, now, recipient, {
                ...about,
                state: "scheduled",
                next_at: at,
                give_up_at: patience(at),
              })
            : row("approval_requested", seq, now, recipient, { ...about, give_up_at: patience(now) }),
        ];
        const remindAt = channel.remindBefore === null ? null : expiresAt - channel.remindBefore;
        if (remindAt !== null && remindAt > at)
          rows.push(
            row("approval_reminder", seq, now, recipient, {
              ...about,
              state: "scheduled",
              next_at: remindAt,
              give_up_at: patience(remindAt),
            }),
          );
        return rows;
      });
    const names = [...new Set(entry.decision.approval?.notify ?? [])];
    const named = names.flatMap((name) => channels.get(name) ?? []);
    const rows = named.flatMap((channel) => tell(channel, now));
    for (const name of names) if (!channels.has(name)) rows.push(nobody(name, entry.action_id, seq, now));
    for (const { escalate } of named) {
      const further = escalate === null ? undefined : channels.get(escalate.to);
      if (escalate !== null && further !== undefined && now + escalate.after < expiresAt)
        rows.push(...tell(further, now + escalate.after));
    }
    return rows;
  }

  /** Whoever was asked already, and is still waited for, is not asked again. */
  async function requestsAgain(tx: StorageTransaction, entry: RedecisionEntry, seq: number, now: number) {
    const owner = (await tx.action(entry.action_id))?.submitted_owner ?? null;
    const earlier =
      entry.occasion === "vote" ? (await tx.deliveriesOfAction(entry.action_id)).filter(isApprovalRequest) : [];
    return approvalRequests(entry, seq, now, { owner, earlier });
  }

  /** Tells those who were asked how it ended, and drops what was still scheduled about it. */
  async function closed(tx: StorageTransaction, entry: Ending, seq: number, now: number): Promise<void> {
    const destinations = new Set<string>();
    for (const delivery of await tx.deliveriesOfAction(entry.action_id)) {
      if (delivery.state === "scheduled") {
        await tx.updateDelivery(delivery.id, delivery, { state: "obsolete", updated_at: now });
        continue;
      }
      const who = JSON.stringify([delivery.destination, delivery.person]);
      if (
        !isApprovalRequest(delivery) ||
        delivery.state === "dead" ||
        delivery.state === "obsolete" ||
        destinations.has(who)
      )
        continue;
      destinations.add(who);
      const recipient = { notifier: delivery.notifier, to: delivery.recipient, person: delivery.person };
      await tx.insertDelivery(
        row("approval_closed", seq, now, recipient, { action_id: entry.action_id, channel: delivery.channel }),
      );
    }
  }

  return {
    async write(tx, entries, now) {
      for (const { seq, body } of entries) {
        if (channels.size > 0 && body.type === "decision" && body.status === "pending_approval") {
          const owner = body.submitted_by.owner;
          for (const one of approvalRequests(body, seq, now, { owner, earlier: [] })) await tx.insertDelivery(one);
        }
        if (channels.size > 0 && body.type === "redecision" && body.status === "pending_approval") {
          for (const one of await requestsAgain(tx, body, seq, now)) await tx.insertDelivery(one);
        }
        if (body.type === "stop") for (const one of stopNotices(seq, now)) await tx.insertDelivery(one);
        if (isEnding(body)) await closed(tx, body, seq, now);
        for (const { notifier, feed } of feeds) {
          if (!wants(feed, body)) continue;
          await tx.insertDelivery(
            row(
              "event",
              seq,
              now,
              { notifier, to: feed.to, person: null },
              { action_id: "action_id" in body ? body.action_id : null },
            ),
          );
        }
      }
    },
  };
}

type Request = DecisionEntry | RedecisionEntry;
type Ending = ApprovalEntry | RedecisionEntry;

/** The entries that end a request, also one after which an approved action will not run after all. */
function isEnding(body: EntryBody): body is Ending {
  return body.type === "redecision"
    ? body.status === "denied"
    : body.type === "approval" &&
        body.verdict !== "rejection_lifted" &&
        body.status !== "pending_approval" &&
        !wasApproved(body);
}

/** Nobody started it: those who approved it were told of their verdict. */
function wasApproved({ verdict, approved_until = null }: ApprovalEntry): boolean {
  return verdict === "expired" && approved_until !== null;
}

function wants({ types, agents }: Feed, body: EntryBody): boolean {
  if (types !== undefined && !types.includes(body.type)) return false;
  const agent = "agent_id" in body ? body.agent_id : null;
  return agents === undefined || agent === null || matchesAnyName(agents, agent);
}

/** One line of messages: they are delivered one at a time. */
function destinationOf({ notifier, to }: Recipient): string {
  return `${notifier} ${to}`;
}

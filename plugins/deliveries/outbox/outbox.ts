/**
 * The transactional outbox: writes notifications to the store in the transaction that records their cause. Therefore a
 * crash loses no notification of a recorded decision, and no one is notified of a decision that was not recorded.
 */
import type { EntryBody, Feed } from "../../../src/plugin.ts";
import { matchesAnyName, type Messenger } from "../../../src/core.ts";
import { createApprovalRequests } from "./approval-requests.ts";
import { type NewDelivery, createDelivery, type OutboxOptions } from "./new-delivery.ts";
import { createEntryNotices } from "./notices.ts";
import { endsApprovalRequest, notifyAfterReview, notifyOfEnd } from "./request-end.ts";

/** Creates the outbox. `write` is null if no channel or feed is configured. */
export function createOutbox(options: OutboxOptions): Pick<Messenger, "write"> {
  const feeds = options.notifiers.flatMap((notifier) =>
    (notifier.feeds ?? []).map((feed) => ({ notifier: notifier.name, feed })),
  );
  if (options.channels.size === 0 && feeds.length === 0) return { write: null };
  return {
    async write(tx, entries, now) {
      const requestsOfPlans = new Map<string, NewDelivery[]>();
      for (const { seq, body } of entries) {
        const cause = { seq, now };
        if (options.channels.size > 0) {
          const plan = body.type === "decision" ? (body.plan?.id ?? null) : null;
          const earlier = (plan === null ? null : requestsOfPlans.get(plan)) ?? [];
          const requests = await createApprovalRequests(options, tx, body, cause, { entries, earlier });
          for (const request of requests) await tx.insertDelivery(request);
          if (plan !== null) requestsOfPlans.set(plan, [...earlier, ...requests]);
        }
        for (const notice of await createEntryNotices(options, tx, body, cause)) await tx.insertDelivery(notice);
        if (body.type === "review" && body.status === "pending_approval")
          await notifyAfterReview(options, tx, body, now);
        if (endsApprovalRequest(body)) await notifyOfEnd(options, tx, body, cause, entries);
        for (const { notifier, feed } of feeds) {
          if (!feedIncludes(feed, body)) continue;
          const action_id = "action_id" in body ? body.action_id : null;
          await tx.insertDelivery(
            createDelivery(options, "event", cause, { notifier, to: feed.to, person: null }, { action_id }),
          );
        }
      }
    },
  };
}

function feedIncludes({ types, agents }: Feed, body: EntryBody): boolean {
  if (types !== undefined && !types.includes(body.type)) return false;
  const agent = "agent_id" in body ? body.agent_id : null;
  return agents === undefined || agent === null || matchesAnyName(agents, agent);
}

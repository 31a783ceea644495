/** Messages to approvers and feeds, and their delivery. */

/**
 * Kind of a message. `approval_requested`, `approval_escalated` and `approval_reminder` request a vote;
 * `approval_closed` reports that a vote is no longer needed. `event` is a ledger entry for a feed.
 */
export const CORE_DELIVERY_KINDS = [
  "approval_requested",
  "approval_escalated",
  "approval_reminder",
  "approval_closed",
  "outcome_unknown",
  "break_glass",
  "event",
] as const;
export type CoreDeliveryKind = (typeof CORE_DELIVERY_KINDS)[number];

/** A kind of the core, or the name of a `NoticeKind`. */
// The intersection keeps the literals in editors.
export type DeliveryKind = CoreDeliveryKind | (string & {});

/**
 * `scheduled`: the message enters the destination's queue at `next_at`. `waiting`: it is in the queue. `delivered`: the
 * notifier accepted it. `dead`: delivery was given up and can be retried. `obsolete`: it is no longer needed.
 */
type DeliveryState = "scheduled" | "waiting" | "delivered" | "dead" | "obsolete";

/** One message to one destination. It contains no token, because links are created when it is sent. */
export interface DeliveryRow {
  /** Position among all deliveries, assigned by the store. Larger than all earlier positions. */
  position: number;
  /** Unique id, which stays the same for every attempt. */
  id: string;
  /** Address of the recipient. Each destination gets one delivery at a time. */
  destination: string;
  /** Name of the notifier, and the recipient in the notifier's format. */
  notifier: string;
  recipient: string;
  kind: DeliveryKind;
  /** Sequence number of the ledger entry that caused the delivery. */
  seq: number;
  action_id: string | null;
  /** Owner for whom a link token is created; null if the recipient is not a single person. */
  person: string | null;
  /** Channel of a policy; null for feeds. */
  channel: string | null;
  state: DeliveryState;
  attempts: number;
  /** Earliest time of the next attempt. */
  next_at: number;
  /** Deadline of the delivery, after which it is not attempted again. */
  give_up_at: number;
  last_error: string | null;
  /** Reference that the notifier returned, so that it can find the message later. */
  reference: string | null;
  delivered_at: number | null;
  created_at: number;
  updated_at: number;
  /** Seal of the members that determine the message and its recipient (`RowSeals`). The store does not interpret it. */
  seal: string;
}

export type DeliveryChange = Partial<
  Pick<DeliveryRow, "attempts" | "next_at" | "give_up_at" | "last_error" | "reference" | "delivered_at" | "seal">
> & { state: DeliveryState; updated_at: number };

export interface DeliveryFilter {
  state?: DeliveryState;
  destination?: string;
  action_id?: string;
  /** Restricts the list to deliveries with a smaller position: the cursor. */
  before_position?: number;
  offset?: number;
  limit: number;
}

/** Number of deliveries, and creation time of the oldest. */
export interface DeliveryBacklog {
  count: number;
  oldest: number | null;
}

export interface DeliveryReads {
  delivery(id: string): Promise<DeliveryRow | null>;
  /** Lists deliveries, newest first (descending `position`). */
  deliveries(filter: DeliveryFilter): Promise<DeliveryRow[]>;
  /** Lists deliveries in ascending order. */
  deliveriesOfAction(actionId: string): Promise<DeliveryRow[]>;
  /**
   * Returns one waiting delivery with `next_at <= now` for each destination. Prefers deliveries without an attempt,
   * then the earliest `give_up_at`, then the smallest position. Deliveries of kind `event` are sent in order, so only
   * the event with the earliest `give_up_at` is a candidate, and only if it is due. Sorted by position.
   */
  dueDeliveries(now: number, limit: number): Promise<DeliveryRow[]>;
  /** Counts unfinished deliveries, and dead deliveries. */
  deliveryBacklog(): Promise<Record<"scheduled" | "waiting" | "dead", DeliveryBacklog>>;
  /** Returns the smallest `next_at` of the scheduled deliveries. */
  nextScheduledDelivery(): Promise<number | null>;
}

export interface DeliveryWrites {
  /** Adds a delivery. The store assigns the position. */
  insertDelivery(row: Omit<DeliveryRow, "position">): Promise<void>;
  /**
   * Compare-and-set: resolves to false and changes nothing unless the delivery has this state and this number of
   * attempts.
   */
  updateDelivery(id: string, guard: Pick<DeliveryRow, "state" | "attempts">, change: DeliveryChange): Promise<boolean>;
  /**
   * Defers the waiting deliveries of a failed destination, except one: sets `next_at` of events to `events` and of
   * other messages to `others`, unless `next_at` is already later. Deliveries without an attempt get the error.
   * Resolves to the number of deferred deliveries.
   */
  deferDeliveries(
    destination: string,
    deferral: { except: string; events: number; others: number; last_error: string; updated_at: number },
  ): Promise<number>;
  /**
   * Called when a destination works again. Sets `next_at` to `now` for its waiting deliveries that are due later and
   * have at most `attempts` attempts. Resolves to the number of changed deliveries.
   */
  hastenDeliveries(destination: string, attempts: number, now: number): Promise<number>;
  /** Changes scheduled deliveries with `next_at <= now` to `waiting`. Resolves to the number of changed deliveries. */
  releaseDeliveries(now: number): Promise<number>;
  /**
   * Deletes up to `max` finished deliveries (neither scheduled nor waiting) that were last changed before the given
   * time. Retains deliveries about pending actions, because later reminders and the outcome refer to these deliveries.
   * Resolves to the number of deleted deliveries.
   */
  pruneDeliveries(before: number, max: number): Promise<number>;
}

/** Messages to approvers and feeds, and their delivery. */
/**
 * Kind of a message. `approval_requested`, `approval_escalated` and `approval_reminder` ask for a vote; `approval_closed`
 * reports that no vote is needed any more. `event` is a ledger entry for a feed.
 */
export type DeliveryKind =
  | "approval_requested"
  | "approval_escalated"
  | "approval_reminder"
  | "approval_closed"
  | "outcome_unknown"
  | "stop"
  | "event";

/**
 * `scheduled`: joins the destination's queue at `next_at`. `waiting`: is in the queue. `delivered`: the notifier accepted it.
 * `dead`: given up, can be retried. `obsolete`: no longer needed.
 */
type DeliveryState = "scheduled" | "waiting" | "delivered" | "dead" | "obsolete";

/** One message to one destination. It holds no token: links are made when it is sent. */
export interface DeliveryRow {
  /** Order of all deliveries, given by the store: larger than every one that is there. */
  position: number;
  /** Unique; the same for every attempt. */
  id: string;
  /** Deliveries of one destination are made one at a time. */
  destination: string;
  /** Name of the notifier, and whom or what it is to tell. */
  notifier: string;
  recipient: string;
  kind: DeliveryKind;
  /** The ledger entry that caused it. */
  seq: number;
  action_id: string | null;
  /** Owner that a link token is made for; null where it goes to no one person. */
  person: string | null;
  /** Channel of a policy; null for feeds. */
  channel: string | null;
  state: DeliveryState;
  attempts: number;
  /** No attempt before. */
  next_at: number;
  /** Given up after. */
  give_up_at: number;
  last_error: string | null;
  /** Reference that the notifier returned, with which it can find its message later. */
  reference: string | null;
  delivered_at: number | null;
  created_at: number;
  updated_at: number;
}

export type DeliveryChange = Partial<
  Pick<DeliveryRow, "attempts" | "next_at" | "give_up_at" | "last_error" | "reference" | "delivered_at">
> & { state: DeliveryState; updated_at: number };

export interface DeliveryFilter {
  state?: DeliveryState;
  destination?: string;
  action_id?: string;
  /** Only smaller positions: the cursor. */
  before_position?: number;
  offset?: number;
  limit: number;
}

/** How many there are, and when the oldest was created. */
export interface DeliveryBacklog {
  count: number;
  oldest: number | null;
}

export interface DeliveryReads {
  delivery(id: string): Promise<DeliveryRow | null>;
  /** Newest first (descending `position`). */
  deliveries(filter: DeliveryFilter): Promise<DeliveryRow[]>;
  /** Ascending. */
  deliveriesOfAction(actionId: string): Promise<DeliveryRow[]>;
  /**
   * One waiting delivery of each destination with `next_at <= now`: of those without an attempt, or else of the others,
   * that which is given up first, then that of the smallest position. Of events only that which is given up
   * first, due or not: none goes before another. Ascending.
   */
  dueDeliveries(now: number, limit: number): Promise<DeliveryRow[]>;
  /** Deliveries that are not finished, and dead ones. */
  deliveryBacklog(): Promise<Record<"scheduled" | "waiting" | "dead", DeliveryBacklog>>;
  /** The smallest `next_at` of scheduled deliveries. */
  nextScheduledDelivery(): Promise<number | null>;
}

export interface DeliveryWrites {
  /** The position is the store's to give. */
  insertDelivery(row: Omit<DeliveryRow, "position">): Promise<void>;
  /** Compare-and-set: false, and nothing changed, unless the delivery has this state and this many attempts. */
  updateDelivery(id: string, guard: Pick<DeliveryRow, "state" | "attempts">, change: DeliveryChange): Promise<boolean>;
  /**
   * Of a destination that failed: its waiting deliveries, that one left out, wait until `events` or, if they are none,
   * `others`, where they would be due sooner; those without an attempt show the error. Returns how many.
   */
  deferDeliveries(
    destination: string,
    deferral: { except: string; events: number; others: number; last_error: string; updated_at: number },
  ): Promise<number>;
  /** Of a destination that works again: its waiting deliveries of at most `attempts` are due at `now` where they would be later. Returns how many. */
  hastenDeliveries(destination: string, attempts: number, now: number): Promise<number>;
  /** Makes scheduled deliveries with `next_at <= now` wait. Returns how many. */
  releaseDeliveries(now: number): Promise<number>;
  /** Removes up to `max` that are over (neither scheduled nor waiting) and were last changed before, unless their action still is pending: reminders and the end refer to them. Returns how many. */
  pruneDeliveries(before: number, max: number): Promise<number>;
}

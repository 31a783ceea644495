/** Combines approval requests that are due for the same recipient into one message, on channels with `digest`. */
import type { ApprovalMessage, Message } from "../../../src/plugin.ts";
import type { DeliveryRow, Storage } from "../../../src/storage/index.ts";
import { isApprovalRequest, isObsolete, type ObsoleteMessage } from "./message.ts";

/**
 * Maximum number of requests in one message, because chat services limit its size. The next message contains the rest.
 */
const MAX_REQUESTS = 10;
/** Maximum number of waiting deliveries of a destination that are considered. */
const MAX_READ = 200;

interface DigestOptions {
  storage: Pick<Storage, "deliveries">;
  /** Names of the channels with `digest`. */
  channels: ReadonlySet<string>;
  /** Returns null for a row whose message cannot be built. */
  build(row: DeliveryRow): Promise<Message | ObsoleteMessage | null>;
  now: number;
}

/**
 * Adds the other due requests to the message. Returns the message and the rows of the added requests, which are settled
 * together with this delivery.
 */
export async function collectDigest(
  { storage, channels, build, now }: DigestOptions,
  row: DeliveryRow,
  message: Message,
): Promise<{ message: Message; others: DeliveryRow[] }> {
  if (!isRequest(message) || !channels.has(row.channel ?? "")) return { message, others: [] };
  const waiting = await storage.deliveries({ state: "waiting", destination: row.destination, limit: MAX_READ });
  const due = waiting
    .filter(
      (other) =>
        other.id !== row.id &&
        isApprovalRequest(other) &&
        other.channel === row.channel &&
        other.person === row.person &&
        other.next_at <= now,
    )
    .sort((a, b) => a.give_up_at - b.give_up_at || a.position - b.position)
    .slice(0, MAX_REQUESTS - 1);
  const rows: DeliveryRow[] = [];
  const others: ApprovalMessage["others"][number][] = [];
  for (const other of due) {
    const built = await build(other);
    if (built === null || isObsolete(built) || !isRequest(built)) continue;
    rows.push(other);
    others.push({ action: built.action, link: built.link });
  }
  return { message: { ...message, others }, others: rows };
}

function isRequest(message: Message): message is ApprovalMessage {
  return isApprovalRequest(message);
}

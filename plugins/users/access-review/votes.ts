/** Reads the votes and the activity of users from the ledger's entries of a period. */
import {
  type Actor,
  canSee,
  type CoreHost,
  decodeEntry,
  type JsonObject,
  parseRfc3339,
  type Visibility,
} from "../../../src/core.ts";

const PAGE_SIZE = 500;

/** Votes of one principal. */
export interface Votes {
  approvals: number;
  rejections: number;
  /** Number of emergency approvals, which are included in `approvals`. */
  break_glass: number;
  /** Milliseconds from the submission of the action to each vote. */
  waits: number[];
}

interface VotingActivity {
  /** Votes, keyed by principal. */
  votes: Map<string, Votes>;
  /** Maps a user id to the time of the newest entry that the user caused. Milliseconds. */
  users: Map<string, number>;
}

/**
 * Reads the entries from `since` on, in pages, so that decisions run in between. Counts votes on visible actions.
 * @param since milliseconds
 */
export async function readVotingActivity(
  host: CoreHost,
  since: number,
  visibility: Visibility,
): Promise<VotingActivity> {
  const activity: VotingActivity = { votes: new Map(), users: new Map() };
  const { size } = await host.ledger.head();
  for (let from = await findFirst(host, since, size); from < size; from += PAGE_SIZE) {
    await host.waitForReadSlot();
    for (const row of await host.storage.entries(from, Math.min(from + PAGE_SIZE, size))) {
      const entry = decodeEntry<JsonObject>(row.bytes);
      addActivity(activity, entry);
      const tool = (entry["tool"] as string | undefined) ?? null;
      if (entry["type"] === "approval" && canSee(visibility, { ...row, tool })) addVote(activity, entry);
    }
  }
  return activity;
}

/** Returns the sequence number of the first entry at or after `since`. Entries are ordered by time. */
async function findFirst(host: CoreHost, since: number, size: number): Promise<number> {
  let [low, high] = [0, size];
  while (low < high) {
    const middle = (low + high) >> 1;
    const [row] = await host.storage.entries(middle, middle + 1);
    if (row === undefined || timeOf(decodeEntry(row.bytes)) >= since) high = middle;
    else low = middle + 1;
  }
  return low;
}

function addActivity({ users }: VotingActivity, entry: JsonObject): void {
  const at = timeOf(entry);
  const by = entry["by"] as unknown as Actor | null | undefined;
  if (by?.principal.startsWith("user:") === true) users.set(by.principal.slice("user:".length), at);
  if (entry["type"] === "users:session") {
    const { change, user_id } = entry["data"] as { change: string; user_id: string };
    if (change === "started") users.set(user_id, at);
  }
}

function addVote({ votes }: VotingActivity, entry: JsonObject): void {
  const at = timeOf(entry);
  const by = entry["by"] as unknown as Actor | null | undefined;
  const verdict = entry["verdict"];
  if (by == null || (verdict !== "approve" && verdict !== "deny")) return;
  const counts = votes.get(by.principal) ?? { approvals: 0, rejections: 0, break_glass: 0, waits: [] };
  if (verdict === "approve") counts.approvals++;
  else counts.rejections++;
  if (entry["break_glass"] === true) counts.break_glass++;
  counts.waits.push(Math.max(at - submittedAt(entry["action_id"] as string), 0));
  votes.set(by.principal, counts);
}

/** Returns the time in an action's id, which is a UUIDv7. Milliseconds. */
function submittedAt(id: string): number {
  return Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);
}

function timeOf(entry: JsonObject): number {
  return parseRfc3339(entry["at"] as string) ?? 0;
}

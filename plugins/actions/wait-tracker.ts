/**
 * Whether anybody waits for an action, and when it was last asked for: so that people see which agents are still there.
 * It stands in the action's row, outside of the ledger, because nothing is decided by it. A wait is told by the time
 * until which it holds: of a process that died nothing else can be known.
 */
import type { Credential, Host, LedgerTransaction } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import type { JsonObject } from "../../src/core.ts";
import { isOverdue } from "./rows.ts";

/** Between the end of one wait and the next of an agent that goes on waiting. Milliseconds. */
const BETWEEN_WAITS = 3000;
/** Actions that one job looks at, so that nobody waits long for the lock. */
const MOST_IN_JOB = 50;

export interface WaitTracker {
  /**
   * Says that the action's agent waits for it until then. Costs the caller nothing: it is written in the background.
   * @returns to be called when the wait is over; `left`: before its time, while the action was still pending
   */
  begin(row: ActionRow, until: number): (left: boolean) => void;
  /** Takes back what this process said, and waits for that. */
  stop(): Promise<void>;
}

/** Whether the credential asks for the action, rather than to look at it: whoever decides may wait for it too. */
export function isAgentOfAction(row: ActionRow, { key }: Credential): boolean {
  return key.id === row.submitted_by || key.agent_id === row.agent_id;
}

export function hasWaitingAgent(row: ActionRow, now: number): boolean {
  if (row.status !== "pending_approval" || isOverdue(row, now)) return false;
  return Object.values(readWaits(row.waits)).some((until) => until > now);
}

/** For a job that found the action: it was asked for now. */
export async function recordResubmission(tx: LedgerTransaction, row: ActionRow): Promise<ActionRow> {
  const asked_at = Math.max(row.asked_at ?? 0, tx.now);
  await tx.noteAsked(row.id, asked_at, row.waits);
  return { ...row, asked_at };
}

export function createWaitTracker(host: Host): WaitTracker {
  const me = host.newId();
  /** Ends of the waits of this process, by action. */
  const held = new Map<string, Set<{ until: number }>>();
  /** When they were last asked for, of the actions whose rows are to be written. */
  let unwritten = new Map<string, number>();
  let writing: Promise<void> | null = null;
  let stopped = false;

  function note(id: string, askedAt: number): void {
    unwritten.set(id, Math.max(unwritten.get(id) ?? 0, askedAt));
    writing ??= write();
  }

  /** One job at a time: what comes meanwhile goes into the next, however much it is. */
  async function write(): Promise<void> {
    while (unwritten.size > 0) {
      const some = [...unwritten].slice(0, MOST_IN_JOB);
      for (const [id] of some) unwritten.delete(id);
      try {
        await host.ledger.transact(async (tx) => {
          for (const [id, askedAt] of some) await writeOne(tx, id, askedAt);
        });
      } catch (error) {
        host.log.warn("who waits for actions could not be written; people may see it wrong until the waits end", {
          actions: some.length,
          error: String(error),
        });
      }
    }
    writing = null;
  }

  async function writeOne(tx: LedgerTransaction, id: string, askedAt: number): Promise<void> {
    const row = await tx.action(id);
    if (row === null || row.status !== "pending_approval") return;
    const others = Object.entries(readWaits(row.waits)).filter(([holder, until]) => holder !== me && until > tx.now);
    const mine = Math.max(0, ...[...(held.get(id) ?? [])].map(({ until }) => until));
    const waits = Object.fromEntries(mine > tx.now ? [...others, [me, mine] as const] : others);
    const text = Object.keys(waits).length === 0 ? null : JSON.stringify(waits);
    await tx.noteAsked(id, Math.max(row.asked_at ?? 0, askedAt), text);
  }

  return {
    begin({ id }, until) {
      if (stopped) return () => {};
      const wait = { until: until + BETWEEN_WAITS };
      held.set(id, (held.get(id) ?? new Set()).add(wait));
      note(id, host.clock());
      return (left) => {
        const waits = held.get(id);
        waits?.delete(wait);
        if (waits?.size === 0) held.delete(id);
        if (left && !stopped) note(id, 0);
      };
    },
    async stop() {
      stopped = true;
      const ids = [...held.keys()];
      held.clear();
      for (const id of ids) note(id, 0);
      await writing;
    },
  };
}

/** Ends of waits by process. Empty for a text that the service did not write. */
function readWaits(text: string | null): Record<string, number> {
  try {
    const waits = JSON.parse(text ?? "{}") as JsonObject | null;
    const ends = Object.entries(waits ?? {}).filter((end): end is [string, number] => Number.isSafeInteger(end[1]));
    return Object.fromEntries(ends);
  } catch {
    return {};
  }
}

/**
 * Tracks whether an agent waits for an action, and when the action was last requested, so that approvers see which
 * agents are still connected. Both are stored in the action's row and not in the ledger, because no decision depends on
 * them. A wait is stored with its end time, so that it expires even if its process crashes.
 */
import type { CoreHost, JsonObject, LedgerTransaction } from "../../src/core.ts";
import type { Credential } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { isOverdue } from "./visible-action.ts";

/** Grace period between two consecutive waits of one agent, in milliseconds. */
const GRACE_MS = 3000;
/** Maximum number of actions per transaction, so that it holds the ledger's lock only briefly. */
const MAX_PER_JOB = 50;

export interface WaitTracker {
  /**
   * Records, in the background, that the action's agent waits for it until `until` (milliseconds since the epoch).
   * @returns a function to call after the wait, with true if it ended early while the action was pending
   */
  begin(row: ActionRow, until: number): (endedEarly: boolean) => void;
  /** Clears the waits of this process. Resolves after they are written. */
  stop(): Promise<void>;
}

/**
 * Returns true if the credential submitted the action, or is bound to its agent. Approvers can also wait for an action,
 * but only the agent's waits are tracked.
 */
export function isAgentOfAction(row: ActionRow, { key }: Credential): boolean {
  return key.id === row.submitted_by || key.agent_id === row.agent_id;
}

export function hasWaitingAgent(row: ActionRow, now: number): boolean {
  if (row.status !== "pending_approval" || isOverdue(row, now)) return false;
  return Object.values(readWaits(row.waits)).some((until) => until > now);
}

/** Records that the action was requested again, at the time of the transaction. */
export async function recordResubmission(tx: LedgerTransaction, row: ActionRow): Promise<ActionRow> {
  const asked_at = Math.max(row.asked_at ?? 0, tx.now);
  await tx.noteAsked(row.id, asked_at, row.waits);
  return { ...row, asked_at };
}

export function createWaitTracker(host: CoreHost): WaitTracker {
  const processId = host.newId();
  /** Open waits of this process, keyed by action id. */
  const waits = new Map<string, Set<{ until: number }>>();
  /** Time of the last request for each action whose row still has to be written. */
  const unwritten = new Map<string, number>();
  let writing: Promise<void> | null = null;
  let stopped = false;

  function note(id: string, askedAt: number): void {
    unwritten.set(id, Math.max(unwritten.get(id) ?? 0, askedAt));
    writing ??= write();
  }

  /** Writes one transaction at a time. Changes that arrive during a write go into the next write. */
  async function write(): Promise<void> {
    while (unwritten.size > 0) {
      const batch = [...unwritten].slice(0, MAX_PER_JOB);
      for (const [id] of batch) unwritten.delete(id);
      try {
        await host.ledger.transact(async (tx) => {
          for (const [id, askedAt] of batch) await writeOne(tx, id, askedAt);
        });
      } catch (error) {
        host.log.warn("could not record which agents wait; approvers may see outdated values until the waits end", {
          actions: batch.length,
          error: String(error),
        });
      }
    }
    writing = null;
  }

  async function writeOne(tx: LedgerTransaction, id: string, askedAt: number): Promise<void> {
    const row = await tx.action(id);
    if (row === null || row.status !== "pending_approval") return;
    const others = Object.entries(readWaits(row.waits)).filter(
      ([holder, until]) => holder !== processId && until > tx.now,
    );
    const ownEnd = Math.max(0, ...[...(waits.get(id) ?? [])].map(({ until }) => until));
    const stored = Object.fromEntries(ownEnd > tx.now ? [...others, [processId, ownEnd] as const] : others);
    const text = Object.keys(stored).length === 0 ? null : JSON.stringify(stored);
    await tx.noteAsked(id, Math.max(row.asked_at ?? 0, askedAt), text);
  }

  return {
    begin({ id }, until) {
      if (stopped) return () => {};
      const wait = { until: until + GRACE_MS };
      waits.set(id, (waits.get(id) ?? new Set()).add(wait));
      note(id, host.clock());
      return (endedEarly) => {
        const ofAction = waits.get(id);
        ofAction?.delete(wait);
        if (ofAction?.size === 0) waits.delete(id);
        if (endedEarly && !stopped) note(id, 0);
      };
    },
    async stop() {
      stopped = true;
      const ids = [...waits.keys()];
      waits.clear();
      for (const id of ids) note(id, 0);
      await writing;
    },
  };
}

/** Returns the end of each process's wait. Empty if the service did not write the stored text. */
function readWaits(text: string | null): Record<string, number> {
  try {
    const waits = JSON.parse(text ?? "{}") as JsonObject | null;
    const ends = Object.entries(waits ?? {}).filter((end): end is [string, number] => Number.isSafeInteger(end[1]));
    return Object.fromEntries(ends);
  } catch {
    return {};
  }
}

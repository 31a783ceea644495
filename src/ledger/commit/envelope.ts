/** Validates the members that every entry must have. */
import type { PluginEntry } from "../../domain/entries.ts";
import { toRfc3339 } from "../../domain/time.ts";

/**
 * Returns the fault for which a plugin's entry would fail the audit; null if the entry is valid. Call it before the
 * append, because entries are permanent and plugins can be untyped JavaScript.
 */
export function findEnvelopeFault(
  { v, at, action_id, agent_id, by }: PluginEntry,
  submittedBy: string | null,
  now: number,
): string | null {
  const named = (id: unknown): boolean => id === null || typeof id === "string";
  if (!Number.isInteger(v)) return "its v is not an integer";
  if (at !== toRfc3339(now)) return "its time is not that of the batch; write at: toRfc3339(tx.now)";
  if (!named(action_id) || !named(agent_id)) return "its action_id and agent_id must be texts, or null";
  if (by === undefined) return "it does not say by whom; write by: toActor(caller.key, caller.principal), or null";
  if ((action_id === null) !== (submittedBy === null))
    return "it must be recorded with the submitter of the action that it names, and without one when it names none";
  return null;
}

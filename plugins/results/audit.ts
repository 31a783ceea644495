/** Checks that each decision read the labels of its session, and that labels follow inspections of started actions. */
import { isCoreEntry, type PluginEntry } from "../../src/core.ts";
import type { AuditStates, EntryBody, FeatureAuditor } from "../../src/plugin.ts";
import { INSPECTION, type InspectionData, LABELS, type LabelsData } from "./entry.ts";
import { findLabels } from "./state.ts";

export function resultAuditor(): FeatureAuditor {
  /** Sessions of actions that have one, keyed by action. */
  const sessions = new Map<string, string>();
  /** The keys that started the actions whose result is missing, keyed by action. */
  const starters = new Map<string, string | undefined>();
  /** The action of the newest entry of the core, if that entry is a start, a result, or says that there is no result. */
  let executed: string | null = null;
  let newest: (InspectionData & { action: string | null }) | null = null;

  function checkInspection({ action_id: id, by, data }: PluginEntry): void {
    const { verdict, output } = data as unknown as InspectionData;
    if (verdict === "not_inspected") {
      if (executed !== id || output !== null)
        throw new RangeError(
          `the labels of the action ${id} without an inspection follow neither its start nor its end`,
        );
    } else if (!starters.has(id ?? "") || starters.get(id ?? "") !== by?.key_id || output === null)
      throw new RangeError(`an output of the action ${id} was inspected that its starter did not send`);
  }

  function checkLabels({ action_id: id, data }: PluginEntry): void {
    const { session, labels } = data as unknown as LabelsData;
    if (newest?.action !== id || labels.some((label) => newest?.labels.includes(label) !== true))
      throw new RangeError(`the labels of the action ${id} do not follow an inspection with these labels`);
    if (session !== (sessions.get(id ?? "") ?? null))
      throw new RangeError(`the labels of the action ${id} are those of another session`);
  }

  function checkCore(entry: EntryBody, states: AuditStates): void {
    if (!isCoreEntry(entry)) return;
    if (entry.type === "decision" || entry.type === "redecision") {
      const { session, labels = [] } = entry.facts;
      if (entry.type === "decision" && session !== undefined) sessions.set(entry.action_id, session.id);
      const expected = findLabels(states, entry.agent_id, session);
      if (labels.join() !== expected.join())
        throw new RangeError(
          `the decision on ${entry.action_id} read the labels ${labels.join(", ") || "none"}; its session had ${expected.join(", ") || "none"}`,
        );
    } else if (entry.type === "execution") {
      if (entry.phase === "start") starters.set(entry.action_id, entry.by?.key_id);
      if (entry.phase === "result") starters.delete(entry.action_id);
    }
  }

  return {
    check(entry, states) {
      checkCore(entry, states);
      if (entry.type === INSPECTION) checkInspection(entry as PluginEntry);
      if (entry.type === LABELS) checkLabels(entry as PluginEntry);
      newest =
        entry.type === INSPECTION
          ? { ...((entry as PluginEntry).data as unknown as InspectionData), action: (entry as PluginEntry).action_id }
          : null;
      if (isCoreEntry(entry)) executed = entry.type === "execution" ? entry.action_id : null;
    },
  };
}

/**
 * Checks authorities. Each decision must record the authority that its request names, as the ledger has it. The end of
 * an authority must end all its descendants. Also repeats the decisions on actions under authorities.
 */
import { canonicalText, decideForEntry, Evaluation, type JsonValue, parseEntryTime } from "../../src/core.ts";
import type {
  AuditedDecision,
  AuditStates,
  Creation,
  EntryBody,
  FeatureAuditor,
  ReportFault,
  StatesReader,
} from "../../src/plugin.ts";
import { authorityState, listBelow, resolveAuthority } from "./state.ts";

export function authorityAuditor(): FeatureAuditor {
  /** Authorities whose end has to follow. */
  const due = new Set<string>();
  /** Who created each authority, keyed by id. */
  const creations = new Map<string, Creation>();
  return {
    created: {
      "POST /v1/authorities": (_: StatesReader, id: string): Creation | null => creations.get(id) ?? null,
    },
    check(entry: EntryBody & { seq: number }, states: AuditStates): void {
      if (entry.type === "authority" && entry.change === "created")
        creations.set(entry.authority.id, { key_id: entry.by.key_id, created_at: parseEntryTime(entry.at) });
      else if (entry.type === "authority") {
        const authorities = states.state(authorityState);
        const authority = authorities.all.get(entry.authority.id);
        if (entry.cause === "parent" && !due.has(entry.authority.id))
          throw new RangeError(`the authority ${entry.authority.id} ended although none of its ancestors did`);
        due.delete(entry.authority.id);
        // The fold reports an authority that was never created.
        if (authority === undefined || entry.cause === "parent") return;
        for (const { id } of listBelow(authorities, authority, states.now)) due.add(id);
      } else if (entry.type === "decision" || entry.type === "redecision") {
        const { authority } = entry.facts;
        if (authority === undefined) return;
        const expected = resolveAuthority(states, authority.id, entry.agent_id);
        if (textOf(expected) !== textOf(authority))
          throw new RangeError(`the authority ${authority.id} in its facts differs from that in the ledger`);
      }
    },
    /** Decides again what an agent did under an authority. */
    async checkDecision({ entry, request, facts, policies }: AuditedDecision, reportFault: ReportFault): Promise<void> {
      const set = facts.authority === undefined ? null : await policies();
      if (set === null) return;
      const { decision } = decideForEntry(new Evaluation(set, request, facts, parseEntryTime(entry.at)), facts);
      if (textOf(decision) !== textOf(entry.decision))
        reportFault(`evaluating it again under the authority ${facts.authority?.id} gives a different decision`);
    },
    finish(reportFault: ReportFault): void {
      for (const id of due) reportFault(`the ledger lacks the end of the authority ${id}, an ancestor of which ended`);
    },
  };
}

const textOf = (value: unknown): string => canonicalText(value as JsonValue);

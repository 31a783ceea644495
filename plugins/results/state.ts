/** Labels of sessions and agents. They exist only as ledger entries, so no write to the database can remove one. */
import { foldName, parseEntryTime, type PluginEntry, type SessionFact } from "../../src/core.ts";
import { type Fold, PersistentMap, type StatesReader } from "../../src/plugin.ts";
import { LABELS, type LabelsData } from "./entry.ts";

/** The end of each label, in milliseconds. */
type Ends = Readonly<Record<string, number>>;

export interface LabelState {
  /** Keyed by the owner: a session, an agent without a session, or an agent with all its sessions. */
  readonly owners: PersistentMap<string, Ends>;
  /** Number of owners after which those without labels are dropped. */
  readonly nextSweep: number;
}

const FIRST_SWEEP = 1024;

export const NO_LABELS: LabelState = { owners: PersistentMap.of(), nextSweep: FIRST_SWEEP };

export const labelState: Fold<LabelState> = {
  name: "results",
  initial: NO_LABELS,
  on: { [LABELS]: (state, entry) => applyLabels(state, entry as PluginEntry) },
};

const ofSession = (id: string): string => `session:${id}`;
const ofAgent = (agentId: string): string => `agent:${foldName(agentId)}`;
const ofAllSessions = (agentId: string): string => `all:${foldName(agentId)}`;

export function applyLabels({ owners, nextSweep }: LabelState, entry: PluginEntry): LabelState {
  const { session, labels, until } = entry.data as unknown as LabelsData;
  if (entry.agent_id === null) throw new RangeError("labels without an agent");
  const end = parseEntryTime(until);
  const own = session === null ? ofAgent(entry.agent_id) : ofSession(session);
  const added = Object.fromEntries(labels.map((label) => [label, end]));
  let next = owners;
  for (const owner of [own, ofAllSessions(entry.agent_id)]) next = next.with(owner, { ...next.get(owner), ...added });
  return next.size < nextSweep ? { owners: next, nextSweep } : sweep(next, parseEntryTime(entry.at));
}

function sweep(owners: LabelState["owners"], now: number): LabelState {
  const kept = [...owners].filter(([, ends]) => Object.values(ends).some((end) => end > now));
  return { owners: PersistentMap.of(kept), nextSweep: Math.max(FIRST_SWEEP, 2 * kept.length) };
}

/**
 * Returns the labels that count for a decision, sorted: those of the session and those that the agent got outside of
 * sessions. Without a session, returns those of all sessions of the agent, so that omitting the session removes none.
 */
export function findLabels(
  reader: Pick<StatesReader, "state" | "now">,
  agentId: string,
  session: SessionFact | undefined,
): string[] {
  const { owners } = reader.state(labelState);
  if (owners.size === 0) return [];
  const read = session === undefined ? [ofAllSessions(agentId)] : [ofSession(session.id), ofAgent(agentId)];
  const labels = read.flatMap((owner) =>
    Object.entries(owners.get(owner) ?? {}).flatMap(([label, end]) => (end > reader.now ? [label] : [])),
  );
  return [...new Set(labels)].sort();
}

/** Returns the end of a label of the session, or of the agent without sessions; 0 if there is no such label. */
export function findLabelEnd(
  { state }: Pick<StatesReader, "state">,
  agentId: string,
  session: SessionFact | undefined,
  label: string,
): number {
  const owner = session === undefined ? ofAgent(agentId) : ofSession(session.id);
  // A label may be named as a member that every object inherits, such as constructor.
  const ends = state(labelState).owners.get(owner) ?? {};
  return Object.hasOwn(ends, label) ? (ends[label] ?? 0) : 0;
}

/** Renders the pinned facts of a pending action for its approvers, with their current values. */
import {
  type CoreHost,
  findFactReads,
  type JsonValue,
  type Pin,
  type PinnedValue,
  readPins,
  restoreFacts,
  toSourceFacts,
} from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { comparePins } from "./compare-pins.ts";
import { pinsOfEntry, readShownPins, type ShownPins } from "./pins.ts";
import { createEvaluation } from "./prefetch-redecision.ts";

/** A pinned fact as approvers see it. */
export interface RenderedPin {
  path: string;
  policy: string;
  value: JsonValue;
  previous?: JsonValue;
  current?: JsonValue;
  state: "same" | "changed" | "unreadable" | "not_read";
}

/**
 * Renders the pins of a pending action: the values that a vote is about, the earlier values if they changed since the
 * previous request for approval, and the current values.
 * @param readsCurrent whether to read the sources
 */
export async function renderPins(
  host: CoreHost,
  row: ActionRow,
  history: ShownPins,
  readsCurrent: boolean,
): Promise<RenderedPin[]> {
  const earlier = history.requests.at(-2);
  const before = earlier === undefined ? [] : pinsOfEntry(earlier, row);
  const shown = readNewestPins(history, row, before);
  if (shown.length === 0) return [];
  const changes = earlier === undefined ? [] : comparePins(before, shown);
  const sources = readsCurrent ? await readCurrentSources(host, row) : null;
  return shown.map(({ path, policy, value = null }) => {
    const isThis = (pin: Pin): boolean => pin.path === path && pin.policy === policy;
    const change = changes.find(isThis);
    const previous = change?.before === undefined ? {} : { previous: change.before };
    if (sources === null) return { path, policy, value, ...previous, state: "not_read" };
    const [now] = readPins([{ path, policy }], sources);
    if (now === undefined || now.value === undefined) return { path, policy, value, ...previous, state: "unreadable" };
    const isSame = comparePins([{ path, policy, value }], [now]).length === 0;
    return { path, policy, value, ...previous, current: now.value, state: isSame ? "same" : "changed" };
  });
}

/**
 * Returns the pinned values of the newest request for approval. If its decision requires no approval, the action is
 * pending only because pinned facts have changed. Then returns the values of the earlier pins that this decision read.
 */
function readNewestPins(history: ShownPins, row: ActionRow, before: readonly PinnedValue[]): PinnedValue[] {
  const newest = history.requests.at(-1);
  if (newest?.decision.approval !== null) return readShownPins(history, row);
  return readPins(
    before.map(({ path, policy }) => ({ path, policy })),
    restoreFacts(newest.facts, row.past).sources,
  );
}

/** Returns the current facts of the action. Facts that cannot be read have a fault or are absent. */
async function readCurrentSources(host: CoreHost, row: ActionRow) {
  try {
    let evaluation = await createEvaluation(host, row);
    if (evaluation === null) return [];
    for (;;) {
      const reads = findFactReads(evaluation);
      if (reads.length === 0) return evaluation.sources;
      const calls = reads.flatMap(({ call }) => call ?? []);
      evaluation = evaluation.withSources(
        toSourceFacts(reads, await host.factSources.read(calls, null, performance.now()), host.clock()),
      );
    }
  } catch (error) {
    if (error instanceof Refusal) return [];
    throw error;
  }
}

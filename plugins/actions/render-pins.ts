/** Renders the pinned facts of a pending action for its approvers, with their current values. */
import {
  comparePins,
  type CoreHost,
  findFactReads,
  type Pin,
  type PinChange,
  readPins,
  toSourceFacts,
} from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { pinsOfEntry, readShownPins, type ShownPins } from "./pins.ts";
import { createEvaluation } from "./prefetch-redecision.ts";

/** A pinned fact as approvers see it. */
export interface RenderedPin {
  path: string;
  policy: string;
  value: PinChange["now"];
  previous?: PinChange["before"];
  current?: PinChange["now"];
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
  const shown = readShownPins(history, row);
  if (shown.length === 0) return [];
  const before = history.requests.at(-2);
  const changes = before === undefined ? [] : comparePins(pinsOfEntry(before, row), shown);
  const sources = readsCurrent ? await readCurrentSources(host, row) : null;
  return shown.map(({ path, policy, value = null }) => {
    const isThis = (pin: Pin): boolean => pin.path === path && pin.policy === policy;
    const change = changes.find(isThis);
    const previous = change === undefined ? {} : { previous: change.before };
    if (sources === null) return { path, policy, value, ...previous, state: "not_read" };
    const [now] = readPins([{ path, policy }], sources);
    if (now === undefined || now.value === undefined) return { path, policy, value, ...previous, state: "unreadable" };
    const isSame = comparePins([{ path, policy, value }], [now]).length === 0;
    return { path, policy, value, ...previous, current: now.value, state: isSame ? "same" : "changed" };
  });
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

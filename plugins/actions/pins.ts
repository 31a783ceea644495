/** The pinned facts of an action: the values that approvers see, and the values at a later decision. */
import {
  commitPins,
  type Decision,
  type DecisionEntry,
  type Pin,
  type PinnedValue,
  readPins,
  type RecordedFacts,
  type RedecisionEntry,
  restoreFacts,
} from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { comparePins, type PinChange } from "./compare-pins.ts";
import { recordAlteredError, type VerifiedHistory } from "./verify-record.ts";

/** A new decision, with its committed facts. */
interface DecidedAgain {
  decision: Decision;
  facts: RecordedFacts;
  /** The salted facts that the row stores. */
  past: string | null;
}

export type ShownPins = Pick<VerifiedHistory, "pins" | "requests">;

/** Returns the values of the pins of a recorded decision. */
export function pinsOfEntry({ decision, facts }: DecisionEntry | RedecisionEntry, { past }: ActionRow): PinnedValue[] {
  return readPins(decision.approval?.pins ?? [], restoreFacts(facts, past).sources);
}

/**
 * Returns the values that approvers see: those of the newest request for approval. Throws RECORD_ALTERED if they do not
 * match its entry.
 */
export function readShownPins({ pins, requests }: ShownPins, row: ActionRow): PinnedValue[] {
  const newest = requests.at(-1);
  const values = newest === undefined ? [] : pinsOfEntry(newest, row);
  if (commitPins(row.salt, values) !== pins) throw recordAlteredError(row, ["past"]);
  return values;
}

/** Returns the commitment to the pins of a redecision, for its entry; an empty object without pins. */
export function pinsForEntry(
  { decision, facts, past }: DecidedAgain,
  { salt }: Pick<ActionRow, "salt">,
): { pins?: string } {
  const { pins = [] } = decision.approval ?? {};
  if (pins.length === 0) return {};
  const commitment = commitPins(salt, readPins(pins, restoreFacts(facts, past).sources));
  return commitment === null ? {} : { pins: commitment };
}

/**
 * Returns the pins that approvers saw differently: other values, or other pins. If approval is no longer required,
 * compares only the pins that they saw.
 */
export function findPinChanges(redecision: DecidedAgain, history: ShownPins, row: ActionRow): PinChange[] {
  const { decision, facts, past } = redecision;
  const shown = readShownPins(history, row);
  const names: readonly Pin[] = decision.approval === null ? shown : (decision.approval.pins ?? []);
  const now = readPins(names, restoreFacts(facts, past).sources);
  if (commitPins(row.salt, now) === history.pins) return [];
  const changes = comparePins(shown, now);
  // An additional rule with the same pins changes what approvers see, too.
  return changes.length > 0
    ? changes
    : now.map(({ path, policy, value }) => ({ path, policy, before: value, now: value }));
}

/** Returns the error of a vote on values that are no longer current, with both values. Only for approvers. */
export function factsChangedError(changes: readonly PinChange[]): Refusal {
  const described = changes.map(
    ({ path, before, now }) =>
      `${path} was ${renderValue(before, "not pinned")} and is ${renderValue(now, "no longer pinned")}`,
  );
  return new Refusal(
    "FACTS_CHANGED",
    `pinned facts have changed since you read the action: ${described.join("; ")}. Nothing was approved; read the action again, and vote on the current values`,
  );
}

function renderValue(value: PinChange["before"], absent: string): string {
  if (value === undefined) return absent;
  const text = JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/**
 * Throws FACTS_CHANGED with the difference if the voter's proof matches the values of an earlier request for approval.
 * @param matches whether the proof is about these pins
 */
export function assertNotEarlierPins(
  { pins, requests }: ShownPins,
  row: ActionRow,
  matches: (pins: string | null) => boolean,
): void {
  for (const request of requests.toReversed().slice(1)) {
    const earlier = request.pins ?? null;
    if (earlier !== pins && matches(earlier))
      throw factsChangedError(comparePins(pinsOfEntry(request, row), readShownPins({ pins, requests }, row)));
  }
}

/** Bars: denials above all policies, for example while a stop is in effect. */
import type { ActionRequest } from "../domain/actions.ts";
import type { Actor, EntryBody } from "../domain/entries.ts";
import type { Bar } from "../domain/policy/policy-types.ts";
import type { ErrorKind } from "./errors.ts";
import type { StatesReader } from "./states.ts";

export type BarTarget = Pick<ActionRequest, "agent_id" | "tool">;

/** Denies actions regardless of policies. A plugin contributes it. */
export interface BarSource {
  /** The error of requests for an action that a bar denies. Its code is the `reason_code` of decisions. */
  readonly error: ErrorKind;
  /**
   * Returns the bars (denials above all policies, such as a stop) that cover an action now. Called under the ledger's
   * lock for every decision, so it must be fast. The decision records the bar that decided, so a replay does not call
   * this function.
   */
  find(states: StatesReader, target: BarTarget): readonly Bar[];
  /**
   * Returns the first bar that was placed after the entry `seq` and covers the target, even if that bar has ended. Such
   * a bar ends permissions that were given before it. Null if there is none.
   */
  placedAfter(states: StatesReader, target: BarTarget, seq: number): PlacedBar | null;
  /**
   * Returns a function that tests whether the new bar of this entry covers a target; null if the entry places no bar.
   */
  coverageOf(entry: EntryBody): BarCoverage | null;
}

/** Returns true if the bar covers the target, or an answer of one of the policies about it. */
export type BarCoverage = (target: BarTarget, policies: readonly string[]) => boolean;

export interface PlacedBar {
  /** Milliseconds. */
  at: number;
  by: Actor;
  reason: string;
}

/** The bars of all plugins. */
export interface Bars {
  /** The errors of all sources. */
  readonly errors: readonly ErrorKind[];
  /** Returns the member of a decision's facts that lists the bars. */
  facts(states: StatesReader, target: BarTarget): { bars?: Bar[] };
  /** Returns the earliest result of all sources; see `BarSource.placedAfter`. */
  placedAfter(states: StatesReader, target: BarTarget, seq: number): PlacedBar | null;
  /** See `BarSource.coverageOf`. */
  coverageOf(entry: EntryBody): BarCoverage | null;
}

export function combineBars(sources: readonly BarSource[]): Bars {
  return {
    errors: sources.map(({ error }) => error),
    facts(states, target) {
      const bars = sources.flatMap((source) => source.find(states, target));
      // If a bar covers the action whatever the policies answer, the others do not matter.
      const whole = bars.find(({ policy }) => policy === null);
      return bars.length === 0 ? {} : { bars: whole === undefined ? bars : [whole] };
    },
    coverageOf(entry) {
      for (const source of sources) {
        const coverage = source.coverageOf(entry);
        if (coverage !== null) return coverage;
      }
      return null;
    },
    placedAfter(states, target, seq) {
      const placed = sources.map((source) => source.placedAfter(states, target, seq)).filter((bar) => bar !== null);
      return placed.reduce<PlacedBar | null>((first, bar) => (first === null || bar.at < first.at ? bar : first), null);
    },
  };
}

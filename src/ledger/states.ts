/** The values of all folds at one size of the ledger. */
import type { Bars } from "../contract/bar.ts";
import type { Snapshot } from "../contract/ledger.ts";
import type { StatesReader } from "../contract/states.ts";
import type { EntryBody } from "../domain/entries.ts";
import type { Fold } from "../domain/fold.ts";

/** Entry types that the ledger itself reads at startup (sign/log-key-book.ts). */
const FOLLOWED_BY_LEDGER: readonly string[] = ["log_key"];

/** Returns the states as jobs and plugins read them. */
export function createSnapshot(now: number, states: () => States, bars: Bars): Snapshot {
  const reader: StatesReader = { now, state: (fold) => states().state(fold) };
  return {
    ...reader,
    barFacts: (target) => bars.facts(reader, target),
    placedBar: (target, seq) => bars.placedAfter(reader, target, seq),
  };
}

/** Immutable, so that a batch can continue from the committed states and be discarded. */
export class States implements Pick<StatesReader, "state"> {
  /** The folds that read each type of entry. */
  private readonly readers: ReadonlyMap<string, readonly Fold<unknown>[]>;
  /**
   * The value of each fold. The keys are fold objects instead of names, so that no plugin can read another plugin's
   * state by declaring its name.
   */
  private readonly values: ReadonlyMap<Fold<unknown>, unknown>;

  private constructor(
    readers: ReadonlyMap<string, readonly Fold<unknown>[]>,
    values: ReadonlyMap<Fold<unknown>, unknown>,
  ) {
    this.readers = readers;
    this.values = values;
  }

  /** Returns the states before the first entry. Throws TypeError if two folds have the same name. */
  static initial(folds: readonly Fold<unknown>[]): States {
    const readers = new Map<string, readonly Fold<unknown>[]>(FOLLOWED_BY_LEDGER.map((type) => [type, []]));
    const values = new Map<Fold<unknown>, unknown>();
    for (const fold of folds) {
      if ([...values.keys()].some(({ name }) => name === fold.name))
        throw new TypeError(`two folds are named "${fold.name}"`);
      values.set(fold, fold.initial);
      for (const type of Object.keys(fold.on)) readers.set(type, [...(readers.get(type) ?? []), fold]);
    }
    return new States(readers, values);
  }

  state<State>(fold: Fold<State>): State {
    if (!this.values.has(fold)) throw new Error(`no loaded plugin declares the state "${fold.name}"`);
    return this.values.get(fold) as State;
  }

  /** Returns true if every process reads entries of this type when it starts. */
  follows(type: string): boolean {
    return this.readers.has(type);
  }

  /** Returns the states after an entry. Throws RangeError if the entry contradicts earlier entries. */
  after(entry: EntryBody & { seq: number }): States {
    const folds = this.readers.get(entry.type) ?? [];
    if (folds.length === 0) return this;
    const values = new Map(this.values);
    for (const fold of folds) values.set(fold, fold.on[entry.type]?.(values.get(fold), entry));
    return new States(this.readers, values);
  }
}

/** What a store puts off: bundles of entries, and what finds them by their hash. Short transactions beside the decisions. */
import { StorageError, type EntryRow } from "../../contract/storage.ts";
import { FOLLOWED_TYPES } from "../../domain/entries.ts";
import { equalBytes } from "../../domain/hash.ts";
import { TILE_WIDTH } from "../../domain/tiles.ts";
import { packBundle, sayAll } from "./bundles.ts";
import { countRuns, hashesOf, RUN, runOf, wrongRuns } from "./leaf-runs.ts";
import type { Reads } from "./queries.ts";
import { plain, type SqlExecutor } from "./statement.ts";
import type { Writes } from "./writes.ts";

/**
 * How long after a store was brought to the schema that knows this nothing is put away where several processes share it:
 * in a rolling update those of the version before still read the entries' own bytes. Milliseconds.
 */
const ROLLING = 86_400_000;
/** The schema that knows all of it. */
const SINCE = 23;
/** The schema of which a decision's row may be without what its bytes say. */
const SAID_SINCE = 26;
/** A new store has all its schema at once. Milliseconds. */
const AT_ONCE = 60_000;
/** How long a drop that failed waits to be tried again. Milliseconds. */
const DROP_AGAIN = 600_000;

export interface UpkeepOptions {
  statements: { reads: Reads; writes: Writes };
  reader: Pick<SqlExecutor, "all">;
  leafHashes(from: number, to: number): Promise<Uint8Array[]>;
  /** In a transaction that moves no head. */
  aside(work: (db: SqlExecutor) => Promise<void>): Promise<void>;
  exclusive: boolean;
  /** The schema of the store. */
  schema: number;
  /** How many of the newest entries keep their own bytes. */
  keep: number;
  /** What stands where an entry's bytes were. */
  noBytes: Uint8Array | null;
  /** When the store had these steps of its schema. */
  steps(): Promise<{ version: number; applied_at: number }[]>;
  /** What found entries by their hash. */
  leafIndex: Superseded;
  /** What lists were read by. */
  listIndexes: Superseded;
}

/** Indexes that nothing of this schema or a later one looks at: the statements that drop each. */
export interface Superseded {
  readonly schema: number;
  readonly drops: readonly (readonly string[])[];
}

export interface Packing {
  /** Makes the next bundle and the next run. True where there may be more to make. */
  next(): Promise<boolean>;
}

export function createPacking(options: UpkeepOptions): Packing {
  const { reader, leafHashes, aside, keep, noBytes, steps } = options;
  const { reads, writes } = options.statements;
  /** The newest schema that no process of the version before it still uses. */
  let alone = options.exclusive ? Infinity : 0;
  const dropAt = new Map<Superseded, number>();

  async function begun(schema: number): Promise<boolean> {
    if (alone >= schema) return true;
    const at = new Map((await steps()).map(({ version, applied_at }) => [version, applied_at]));
    const [first, since] = [at.get(1) ?? 0, at.get(schema) ?? Infinity];
    // A clock that was set back between the steps does not make an old store a new one.
    const is = (since >= first && since - first < AT_ONCE) || Date.now() - since >= ROLLING;
    if (is) alone = schema;
    return is;
  }

  /** Makes the piece behind `before`, which is what was done when there was enough for it, unless another is faster. */
  async function once(
    before: number,
    done: () => Promise<number>,
    make: (next: number) => Promise<void>,
  ): Promise<void> {
    try {
      await make(before);
    } catch (error) {
      if ((await done().catch(() => before)) === before) throw error;
    }
  }

  const bundled = async (): Promise<number> => {
    const [row] = await reader.all(reads.lastBundle, {});
    const last = row === undefined ? null : plain<{ start: number | null }>(row).start;
    return last === null ? 0 : last + TILE_WIDTH;
  };

  async function bundle(from: number): Promise<void> {
    const to = from + TILE_WIDTH;
    const rows = (await reader.all(reads.entries, { from, to })).map((row) => plain<EntryRow>(row));
    const bytes = await packBundle(from, rows);
    const own = rows.filter(({ type }) => (FOLLOWED_TYPES as readonly string[]).includes(type)).length;
    const empty =
      options.schema >= SAID_SINCE && sayAll(rows) && (await begun(SAID_SINCE))
        ? writes.emptySaid
        : writes.emptyEntries;
    await aside(async (db) => {
      // They were read before, outside of this transaction.
      const now = (await db.all(reads.leafHashes, { from, to })).map((row) => row["leaf_hash"] as Uint8Array);
      if (now.length !== TILE_WIDTH || !rows.every(({ leaf_hash }, i) => equalBytes(leaf_hash, now[i] as Uint8Array)))
        db.fail(changed(from, to));
      await db.run(writes.insertBundle, { start: from, bytes });
      const emptied = await db.run(empty, { none: noBytes, from, to });
      if (emptied !== TILE_WIDTH - own) db.fail(changed(from, to));
    });
  }

  async function index(run: number): Promise<void> {
    const rows = runOf(run, await hashesOf(leafHashes, run));
    await aside((db) => db.runMany(writes.insertRun, rows));
  }

  /** Holds up nothing else: everything is found whether or not the indexes are there. */
  async function drop(old: Superseded): Promise<void> {
    if (Date.now() < (dropAt.get(old) ?? 0) || !(await begun(old.schema))) return;
    dropAt.set(old, Infinity);
    try {
      for (const statements of old.drops)
        await aside(async (db) => {
          for (const sql of statements) await db.run({ sql, names: [] }, {});
        });
    } catch {
      dropAt.set(old, Date.now() + DROP_AGAIN);
    }
  }

  return {
    async next() {
      if (!(await begun(SINCE))) return false;
      const size = Number((await reader.all(reads.head, {}))[0]?.["size"] ?? 0);
      const runs = await countRuns(reads, reader);
      const start = await bundled();
      const [unfound, whole] = [size - runs * RUN, size - keep - start];
      if (unfound >= RUN) await once(runs, () => countRuns(reads, reader), index);
      else await drop(options.leafIndex);
      await drop(options.listIndexes);
      if (whole >= TILE_WIDTH) await once(start, bundled, bundle);
      return unfound >= 2 * RUN || whole >= 2 * TILE_WIDTH;
    },
  };
}

function changed(from: number, to: number): StorageError {
  return new StorageError(
    "corrupt",
    `the entries ${from} to ${to - 1} were changed while they were put into a bundle; run assent audit`,
  );
}

/** What is wrong with what is kept here, and nobody who reads entries would notice. */
export async function inspect({
  statements: { reads },
  reader,
  leafHashes,
}: Pick<UpkeepOptions, "statements" | "reader" | "leafHashes">): Promise<string[]> {
  return [...(await strayBundles(reads, reader)), ...(await wrongRuns(reads, reader, leafHashes))];
}

async function strayBundles(reads: Reads, db: Pick<SqlExecutor, "all">): Promise<string[]> {
  const faults: string[] = [];
  const limit = 16;
  for (let after = -1; ;) {
    const rows = (await db.all(reads.strayBundles, { after, limit })).map((row) =>
      plain<{ start: number; n: number }>(row),
    );
    for (const { start, n } of rows)
      if (start % TILE_WIDTH !== 0 || n !== TILE_WIDTH)
        faults.push(`a bundle stands at ${start}, and ${n} of its ${TILE_WIDTH} entries are as a bundle leaves them`);
    if (rows.length < limit) return faults;
    after = rows.at(-1)?.start ?? after;
  }
}

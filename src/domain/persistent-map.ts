/**
 * An immutable map whose copies share their contents. A fold of ledger entries can thus return a new map for each
 * entry without copying the whole map.
 */

/** Each layer is at least this many times as large as the next newer layer. */
const GROWTH = 8;

/**
 * Keeps the order of insertion, as `Map` does. `with` takes amortized logarithmic time.
 * @example
 * const first = PersistentMap.of<string, number>().with("a", 1);
 * const second = first.with("a", 2);
 * first.get("a"); // 1
 */
export class PersistentMap<K, V> implements ReadonlyMap<K, V> {
  readonly size: number;
  /** Layers, the oldest first. A value in a newer layer replaces the value of the same key in older layers. */
  private layers: readonly ReadonlyMap<K, V>[];

  private constructor(layers: readonly ReadonlyMap<K, V>[], size: number) {
    this.layers = layers;
    this.size = size;
  }

  static of<K, V>(entries: Iterable<readonly [K, V]> = []): PersistentMap<K, V> {
    const layer = new Map(entries);
    return new PersistentMap([layer], layer.size);
  }

  get(key: K): V | undefined {
    for (let i = this.layers.length - 1; i >= 0; i--) {
      const value = this.layers[i]?.get(key);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  has(key: K): boolean {
    return this.layers.some((layer) => layer.has(key));
  }

  /** Returns a map in which `key` has this value. */
  with(key: K, value: V): PersistentMap<K, V> {
    const layers = [...this.layers];
    let newest: ReadonlyMap<K, V> = new Map([[key, value]]);
    for (let older = layers.at(-1); older !== undefined && older.size < newest.size * GROWTH; older = layers.at(-1)) {
      newest = mergeLayers([older, newest]);
      layers.pop();
    }
    return new PersistentMap([...layers, newest], this.size + (this.has(key) ? 0 : 1));
  }

  entries(): MapIterator<[K, V]> {
    return this.flatten().entries();
  }

  keys(): MapIterator<K> {
    return this.flatten().keys();
  }

  values(): MapIterator<V> {
    return this.flatten().values();
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }

  forEach(callback: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    this.flatten().forEach((value, key) => callback(value, key, this));
  }

  /** Merges the layers once, so that repeated iterations of the same map do not merge them again. */
  private flatten(): ReadonlyMap<K, V> {
    const merged = mergeLayers(this.layers);
    this.layers = [merged];
    return merged;
  }
}

/** Number of ended values that `dropOldEnded` retains. */
export const RETAINED_ENDED = 2000;

/** The values of a fold that people or agents create and end. */
export interface EndableValues<V> {
  /** The open values and the newest ended ones, keyed by id, in the order of the ledger. */
  readonly all: PersistentMap<string, V>;
  /** Size of `all` at which the oldest ended values are dropped. */
  readonly nextSweep: number;
}

/**
 * Drops the oldest ended values, so that the memory follows the open ones. Each sweep copies the map, so the map grows
 * by `RETAINED_ENDED` between two sweeps.
 * @example
 * const next = dropOldEnded({ all: all.with(id, task), nextSweep }, ({ ended }) => ended !== null);
 */
export function dropOldEnded<V>(
  { all, nextSweep }: EndableValues<V>,
  isEnded: (value: V) => boolean,
): EndableValues<V> {
  if (all.size < nextSweep) return { all, nextSweep };
  let excess = [...all.values()].filter(isEnded).length - RETAINED_ENDED;
  const kept = PersistentMap.of([...all].filter(([, value]) => !isEnded(value) || excess-- <= 0));
  return { all: kept, nextSweep: kept.size + RETAINED_ENDED };
}

function mergeLayers<K, V>(layers: readonly ReadonlyMap<K, V>[]): ReadonlyMap<K, V> {
  const [oldest = new Map<K, V>(), ...newer] = layers;
  if (newer.length === 0) return oldest;
  const merged = new Map(oldest);
  for (const layer of newer) for (const [key, value] of layer) merged.set(key, value);
  return merged;
}

/** Creates a random generator (mulberry32). The same seed produces the same sequence. */
export function createRandom(seed: number): { random(n: number): number; pick<T>(from: readonly T[]): T } {
  let state = seed;
  /** Returns an integer from 0 to n - 1. */
  function random(n: number): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * n);
  }
  return { random, pick: (from) => from[random(from.length)] as (typeof from)[number] };
}

/** Creates a random generator (mulberry32) that returns numbers from 0 to 1. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * The definitions of RFC 6962 section 2.1, implemented literally and slowly, as a reference for the optimized code.
 * Hashes with node:crypto.
 */
import { createHash } from "node:crypto";
import type { NodeSource } from "../../src/domain/merkle.ts";

const hash = (...parts: Uint8Array[]): Uint8Array => {
  const h = createHash("sha256");
  for (const part of parts) h.update(part);
  return new Uint8Array(h.digest());
};

export const leafOf = (entry: Uint8Array): Uint8Array => hash(Uint8Array.of(0), entry);
export const nodeOf = (left: Uint8Array, right: Uint8Array): Uint8Array => hash(Uint8Array.of(1), left, right);

function largestPowerBelow(n: number): number {
  let k = 1;
  while (k * 2 < n) k *= 2;
  return k;
}

/** Returns MTH, the root, over leaf hashes. */
export function naiveRoot(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length === 0) return hash();
  if (leaves.length === 1) return leaves[0] as Uint8Array;
  const k = largestPowerBelow(leaves.length);
  return nodeOf(naiveRoot(leaves.slice(0, k)), naiveRoot(leaves.slice(k)));
}

/** Returns PATH(m, D[n]), an inclusion proof. Section 2.1.1. */
export function naivePath(m: number, leaves: readonly Uint8Array[]): Uint8Array[] {
  if (leaves.length === 1) return [];
  const k = largestPowerBelow(leaves.length);
  return m < k
    ? [...naivePath(m, leaves.slice(0, k)), naiveRoot(leaves.slice(k))]
    : [...naivePath(m - k, leaves.slice(k)), naiveRoot(leaves.slice(0, k))];
}

/** Returns PROOF(m, D[n]), a consistency proof. Section 2.1.2. */
export function naiveConsistency(m: number, leaves: readonly Uint8Array[]): Uint8Array[] {
  return subproof(m, leaves, true);
}

function subproof(m: number, leaves: readonly Uint8Array[], whole: boolean): Uint8Array[] {
  if (m === leaves.length) return whole ? [] : [naiveRoot(leaves)];
  const k = largestPowerBelow(leaves.length);
  return m <= k
    ? [...subproof(m, leaves.slice(0, k), whole), naiveRoot(leaves.slice(k))]
    : [...subproof(m - k, leaves.slice(k), false), naiveRoot(leaves.slice(0, k))];
}

/** Returns a node source over leaf hashes. It rejects requests for a subtree that is not complete. */
export function sourceOver(leaves: readonly Uint8Array[]): NodeSource {
  const known = new Map<string, Uint8Array>();
  return (level, index) => {
    const from = index * 2 ** level;
    const to = from + 2 ** level;
    if (to > leaves.length)
      return Promise.reject(new Error(`node ${level}/${index} is not complete in a tree of ${leaves.length}`));
    const name = `${level}/${index}`;
    const node = known.get(name) ?? naiveRoot(leaves.slice(from, to));
    known.set(name, node);
    return Promise.resolve(node);
  };
}

/**
 * Generates copies of a hash list that each have one error: a flipped bit, or a hash that is missing, duplicated, added
 * or swapped.
 */
export function* mutations(path: readonly Uint8Array[]): Generator<{ what: string; path: Uint8Array[] }> {
  for (let step = 0; step < path.length; step++) {
    for (let bit = 0; bit < 256; bit++) {
      const flipped = (path[step] as Uint8Array).slice();
      flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7));
      yield { what: `bit ${bit} of step ${step}`, path: path.with(step, flipped) };
    }
    const step32 = path[step] as Uint8Array;
    yield { what: `step ${step} left out`, path: path.toSpliced(step, 1) };
    yield { what: `step ${step} doubled`, path: path.toSpliced(step, 0, step32) };
    yield { what: `step ${step} one byte shorter`, path: path.with(step, step32.slice(0, 31)) };
    yield { what: `step ${step} one byte longer`, path: path.with(step, new Uint8Array([...step32, 0])) };
    if (step > 0)
      yield {
        what: `steps ${step - 1} and ${step} swapped`,
        path: path.with(step, path[step - 1] as Uint8Array).with(step - 1, step32),
      };
  }
  yield { what: "a step added", path: [...path, new Uint8Array(32)] };
}

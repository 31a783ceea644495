/**
 * The Merkle tree of RFC 6962 section 2.1; RFC 9162 uses the same hashes. Computes positions by division, because sizes
 * and indices are up to 2^53 - 1 and `>>` works on 32 bits.
 */
import { equalBytes, sha256 } from "./hash.ts";

/** The root of an empty tree: SHA-256 of zero bytes. */
export const EMPTY_ROOT: Uint8Array = sha256(new Uint8Array(0));

/** Returns the root of the perfect subtree with 2^level leaves at position `index` of its level. */
export type NodeSource = (level: number, index: number) => Promise<Uint8Array>;

/** Length of every hash in the tree, in bytes. */
const HASH_BYTES = 32;

interface NodePosition {
  level: number;
  index: number;
}

/**
 * Returns the hash of a leaf, as RFC 6962 defines it.
 * @example
 * hashLeaf(utf8(line));
 */
export function hashLeaf(entry: Uint8Array): Uint8Array {
  const input = new Uint8Array(entry.length + 1);
  input.set(entry, 1);
  return sha256(input);
}

/**
 * Hashes two nodes. Does not check that both have 32 bytes.
 * @example
 * hashNode(hashLeaf(first), hashLeaf(second));
 */
export function hashNode(left: Uint8Array, right: Uint8Array): Uint8Array {
  const input = new Uint8Array(1 + left.length + right.length);
  input[0] = 1;
  input.set(left, 1);
  input.set(right, 1 + left.length);
  return sha256(input);
}

/**
 * Returns the right edge of the tree after a leaf is appended: the roots of the maximal perfect subtrees, largest
 * first. Throws RangeError if `edge` is not the edge of a tree of `size`.
 * @param size the number of leaves before the new leaf
 */
export function appendToEdge(edge: readonly Uint8Array[], size: number, leafHash: Uint8Array): Uint8Array[] {
  assertSize(size);
  assertSize(size + 1);
  if (edge.length !== edgeLength(size))
    throw new RangeError(`the right edge of a tree of size ${size} has ${edgeLength(size)} hashes, not ${edge.length}`);
  if (leafHash.length !== HASH_BYTES)
    throw new RangeError(`a leaf hash has ${HASH_BYTES} bytes, not ${leafHash.length}`);
  const grown = edge.slice();
  let node = leafHash;
  for (let remaining = size; remaining % 2 === 1; remaining = (remaining - 1) / 2)
    node = hashNode(grown.pop() as Uint8Array, node);
  grown.push(node);
  return grown;
}

/** Returns the root of the tree with this right edge. */
export function rootFromEdge(edge: readonly Uint8Array[]): Uint8Array {
  if (edge.length === 0) return EMPTY_ROOT;
  let root = edge[edge.length - 1] as Uint8Array;
  for (let i = edge.length - 2; i >= 0; i--) root = hashNode(edge[i] as Uint8Array, root);
  return root;
}

/** Returns the number of perfect subtrees, which is the number of bits set in the size. */
function edgeLength(size: number): number {
  let bits = 0;
  for (let remaining = size; remaining > 0; remaining = Math.floor(remaining / 2)) bits += remaining % 2;
  return bits;
}

/** Returns the positions of the right edge's nodes in a tree of `size`, largest first. */
export function edgeNodes(size: number): NodePosition[] {
  assertSize(size);
  const nodes: NodePosition[] = [];
  appendCoveringNodes(0, size, nodes);
  return nodes;
}

/**
 * Appends to `nodes`, from left to right, the positions of the perfect subtrees that cover the leaves [from, to).
 * `from` must be a multiple of the largest subtree's size.
 */
function appendCoveringNodes(from: number, to: number, nodes: NodePosition[]): void {
  let at = from;
  while (at < to) {
    let level = 0;
    let width = 1;
    while (at % (width * 2) === 0 && at + width * 2 <= to) {
      width *= 2;
      level++;
    }
    nodes.push({ level, index: at / width });
    at += width;
  }
}

async function rangeRoot(from: number, to: number, node: NodeSource): Promise<Uint8Array> {
  const nodes: NodePosition[] = [];
  appendCoveringNodes(from, to, nodes);
  return rootFromEdge(await Promise.all(nodes.map(({ level, index }) => node(level, index))));
}

/** Returns the largest power of two less than n, for n > 1. */
function largestPowerBelow(n: number): number {
  let k = 1;
  while (k * 2 < n) k *= 2;
  return k;
}

/** Returns the root of the first `size` leaves, MTH(D[0:size]). */
export function computeRoot(size: number, node: NodeSource): Promise<Uint8Array> {
  assertSize(size);
  return rangeRoot(0, size, node);
}

/**
 * Returns the inclusion proof PATH(index, D[0:size]) of section 2.1.1, from leaf to root. Throws RangeError unless 0 <=
 * index < size.
 */
export async function inclusionProof(index: number, size: number, node: NodeSource): Promise<Uint8Array[]> {
  assertSize(size);
  if (!Number.isSafeInteger(index) || index < 0 || index >= size)
    throw new RangeError(`index ${index} is not in a tree of size ${size}`);
  const path: Promise<Uint8Array>[] = [];
  let from = 0;
  let to = size;
  while (to - from > 1) {
    const middle = from + largestPowerBelow(to - from);
    if (index < middle) {
      path.push(rangeRoot(middle, to, node));
      to = middle;
    } else {
      path.push(rangeRoot(from, middle, node));
      from = middle;
    }
  }
  return (await Promise.all(path)).reverse();
}

/**
 * Returns the consistency proof PROOF(first, D[0:second]) of section 2.1.2. Throws RangeError unless 0 < first <=
 * second.
 */
export async function consistencyProof(first: number, second: number, node: NodeSource): Promise<Uint8Array[]> {
  assertSize(second);
  if (!Number.isSafeInteger(first) || first <= 0 || first > second)
    throw new RangeError(`there is no consistency proof from size ${first} to ${second}`);
  const path: Promise<Uint8Array>[] = [];
  let from = 0;
  let to = second;
  let whole = true;
  while (first !== to) {
    const middle = from + largestPowerBelow(to - from);
    if (first <= middle) {
      path.push(rangeRoot(middle, to, node));
      to = middle;
    } else {
      path.push(rangeRoot(from, middle, node));
      from = middle;
      whole = false;
    }
  }
  if (!whole) path.push(rangeRoot(from, to, node));
  return (await Promise.all(path)).reverse();
}

/**
 * Returns the root that follows from the leaf and the path; null if the index, the size or a length is invalid. RFC
 * 9162 section 2.1.3.2.
 */
export function rootFromInclusion(
  index: number,
  size: number,
  leafHash: Uint8Array,
  path: readonly Uint8Array[],
): Uint8Array | null {
  if (!isSize(size) || !isSize(index) || index >= size || leafHash.length !== HASH_BYTES) return null;
  let f = index;
  let s = size - 1;
  let root = leafHash;
  for (const sibling of path) {
    if (s === 0 || sibling.length !== HASH_BYTES) return null;
    if (f % 2 === 1 || f === s) {
      root = hashNode(sibling, root);
      while (f % 2 === 0 && f !== 0) {
        f = f / 2;
        s = Math.floor(s / 2);
      }
    } else {
      root = hashNode(root, sibling);
    }
    f = Math.floor(f / 2);
    s = Math.floor(s / 2);
  }
  return s === 0 ? root : null;
}

interface InclusionClaim {
  index: number;
  size: number;
  leafHash: Uint8Array;
  path: readonly Uint8Array[];
  root: Uint8Array;
}

export function verifyInclusion(claim: InclusionClaim): boolean {
  const root = rootFromInclusion(claim.index, claim.size, claim.leafHash, claim.path);
  return root !== null && equalBytes(root, claim.root);
}

interface ConsistencyClaim {
  first: number;
  second: number;
  firstRoot: Uint8Array;
  secondRoot: Uint8Array;
  path: readonly Uint8Array[];
}

/**
 * Verifies a consistency proof (RFC 9162 section 2.1.4.2). Returns false if `first` is 0, because an empty tree is a
 * prefix of every tree.
 */
export function verifyConsistency({ first, second, firstRoot, secondRoot, path }: ConsistencyClaim): boolean {
  if (!isSize(first) || !isSize(second) || first === 0 || first > second) return false;
  if ([firstRoot, secondRoot, ...path].some((hash) => hash.length !== HASH_BYTES)) return false;
  if (first === second) return path.length === 0 && equalBytes(firstRoot, secondRoot);
  let f = first - 1;
  let s = second - 1;
  while (f % 2 === 1) {
    f = Math.floor(f / 2);
    s = Math.floor(s / 2);
  }
  // If `first` is a power of two, its root is a node of the tree. The path then starts with this root, and the proof
  // omits it.
  const steps = f === 0 ? [firstRoot, ...path] : [...path];
  const start = steps.shift();
  if (start === undefined) return false;
  let fr = start;
  let sr = start;
  for (const hash of steps) {
    if (s === 0) return false;
    if (f % 2 === 1 || f === s) {
      fr = hashNode(hash, fr);
      sr = hashNode(hash, sr);
      while (f % 2 === 0 && f !== 0) {
        f = f / 2;
        s = Math.floor(s / 2);
      }
    } else {
      sr = hashNode(sr, hash);
    }
    f = Math.floor(f / 2);
    s = Math.floor(s / 2);
  }
  return s === 0 && equalBytes(fr, firstRoot) && equalBytes(sr, secondRoot);
}

function isSize(n: number): boolean {
  return Number.isSafeInteger(n) && n >= 0;
}

function assertSize(size: number): void {
  if (!isSize(size)) throw new RangeError(`${size} is not the size of a tree`);
}

/** Verifies that the entries of a pack hash to the root of the checkpoint, and that the window has no gap. */
import type { EntryBody } from "../../../domain/entries.ts";
import { equalBytes, fromHex } from "../../../domain/hash.ts";
import { EMPTY_ROOT, hashLeaf, hashNode } from "../../../domain/merkle.ts";
import type { Manifest } from "../pack-format.ts";
import { parseLine, type PackFile, readLines } from "./read-lines.ts";

export type PackEntry = EntryBody & { seq: number };

interface Subtree {
  hash: Uint8Array;
  level: number;
}

/**
 * Calls `onEntry` for each entry in order. Returns the size and the root of the tree that the lines hash to. Throws
 * RangeError or SyntaxError if the lines cannot come from a log, or if the window has a gap.
 */
export async function verifyEntries(
  file: PackFile,
  { first, end, from, to }: Pick<Manifest, "first" | "end" | "from" | "to">,
  onEntry: (entry: PackEntry) => void,
): Promise<{ size: number; root: Uint8Array }> {
  let edge: Subtree[] = [];
  let next = 0;
  for await (const line of readLines(file)) {
    const body = parseLine(line);
    const isEntry = "type" in body;
    const start = isEntry ? body["seq"] : body["start"];
    if (start !== next) throw new RangeError(`the pack lacks what is at ${next} of the log`);
    const level = isEntry ? 0 : (body["level"] as number);
    if (!Number.isInteger(level) || level < 0 || level > 52 || next % 2 ** level !== 0)
      throw new RangeError(`there is no subtree of level ${level} at ${next}`);
    edge = append(edge, { hash: isEntry ? hashLeaf(line) : fromHex(String(body["hash"])), level });
    const after = next + 2 ** level;
    if (!isEntry && next < end && after > first)
      throw new RangeError(`entry ${Math.max(next, first)} of the window is missing`);
    if (isEntry) {
      const at = String(body["at"]);
      if ((at >= from && at < to) !== (next >= first && next < end))
        throw new RangeError(`entry ${next} of ${at} is on the wrong side of the window`);
      onEntry(body as unknown as PackEntry);
    }
    next = after;
  }
  if (next < end) throw new RangeError(`the pack ends at ${next} of the log, and the window at ${end}`);
  return { size: next, root: rootOf(edge) };
}

/** Appends a perfect subtree, and joins adjacent subtrees of the same level. */
function append(edge: Subtree[], subtree: Subtree): Subtree[] {
  if (subtree.hash.length !== 32) throw new RangeError("a hash does not have 32 bytes");
  let { hash, level } = subtree;
  for (let left = edge.at(-1); left?.level === level; left = edge.at(-1)) {
    edge.pop();
    hash = hashNode(left.hash, hash);
    level++;
  }
  if ((edge.at(-1)?.level ?? Infinity) < level) throw new RangeError("a subtree is larger than the one before it");
  edge.push({ hash, level });
  return edge;
}

function rootOf(edge: readonly Subtree[]): Uint8Array {
  if (edge.length === 0) return EMPTY_ROOT;
  return edge.map(({ hash }) => hash).reduceRight((right, left) => hashNode(left, right));
}

export function isSameRoot(a: Uint8Array, b: Uint8Array): boolean {
  return equalBytes(a, b);
}

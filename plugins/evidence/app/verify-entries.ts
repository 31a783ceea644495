/** Verifies that the entries of a pack hash to the root of the checkpoint, and that the window has no gap. */
import type { Manifest } from "../pack-format.ts";
import { EMPTY_ROOT, type EntryBody, fromHex, hashLeaf, hashNode, utf8 } from "../../../src/browser.ts";
import { parseLine, type PackFile, readLines } from "./read-lines.ts";

export type PackEntry = EntryBody & { seq: number };

/** Times of this form can be compared as text. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

interface Subtree {
  hash: Uint8Array;
  level: number;
}

/**
 * Calls `onEntry` for each entry in order. Returns the size and the root of the tree that the lines hash to. Throws
 * RangeError or SyntaxError in these cases:
 *
 * - the lines cannot come from a log
 * - an entry of the window is missing
 * - the entries next to the window do not prove where the window begins and ends
 */
export async function verifyEntries(
  file: PackFile,
  { first, end, from, to }: Pick<Manifest, "first" | "end" | "from" | "to">,
  onEntry: (entry: PackEntry, leafHash: Uint8Array) => void,
): Promise<{ size: number; root: Uint8Array }> {
  if (![first, end].every((seq) => Number.isSafeInteger(seq) && seq >= 0) || first > end)
    throw new RangeError("the manifest does not say which entries are in the window");
  if (![from, to].every((time) => TIME.test(time))) throw new RangeError("the manifest's window has no valid times");
  let edge: Subtree[] = [];
  let next = 0;
  /** Times of the entries directly before and after the window. */
  let before = "";
  let after = "";
  for await (const line of readLines(file)) {
    const body = parseLine(line);
    const isEntry = "type" in body;
    const boundary = !isEntry && typeof body["boundary"] === "string" ? utf8(body["boundary"]) : null;
    /** Bytes of the entry; null for a subtree. */
    const bytes = isEntry ? line : boundary;
    const start = isEntry ? body["seq"] : body["start"];
    if (start !== next) throw new RangeError(`the pack lacks what is at ${next} of the log`);
    const level = bytes === null ? (body["level"] as number) : 0;
    if (!Number.isInteger(level) || level < 0 || level > 52 || next % 2 ** level !== 0)
      throw new RangeError(`there is no subtree of level ${level} at ${next}`);
    const hash = bytes === null ? fromHex(String(body["hash"])) : hashLeaf(bytes);
    edge = append(edge, { hash, level });
    const following = next + 2 ** level;
    if (!isEntry && next < end && following > first)
      throw new RangeError(`entry ${Math.max(next, first)} of the window is missing`);
    // Only an entry has a proven time.
    const at = bytes === null ? "" : String((boundary === null ? body : parseLine(boundary))["at"]);
    if (next === first - 1) before = at;
    if (next === end) after = at;
    if (isEntry) {
      if ((at >= from && at < to) !== (next >= first && next < end))
        throw new RangeError(`entry ${next} of ${at} is on the wrong side of the window`);
      onEntry(body as unknown as PackEntry, hash);
    }
    next = following;
  }
  if (next < end) throw new RangeError(`the pack ends at ${next} of the log, and the window at ${end}`);
  if (first > 0 && !(TIME.test(before) && before < from))
    throw new RangeError(`entry ${first - 1} does not show that the window begins after it`);
  if (end < next && !(TIME.test(after) && after >= to))
    throw new RangeError(`entry ${end} does not show that the window ends before it`);
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

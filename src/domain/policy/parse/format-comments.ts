/** Attaches each comment to the item that follows it. */
import { isCollection, isMap, isNode, isPair, isSeq, visit, type Document, type Node } from "yaml";

/**
 * Moves comments to the item that follows them. The parser attaches all comments between two items to the first item if
 * one of them is indented like its content. The comments after the last indented comment belong to the second item.
 */
export function reattachComments(document: Document, text: string): void {
  visit(document, {
    Collection(_, collection) {
      if (collection.flow === true) return;
      for (const [i, item] of collection.items.entries()) {
        const before = collection.items[i - 1];
        if (i === 0 || before === undefined) continue;
        const inside = isPair(before) ? before.value : before;
        const next = isPair(item) ? item.key : item;
        if (isNode(inside) && isNode(next)) moveComment(inside, next, text, isSeq(collection));
      }
    },
  });
}

function moveComment(inside: Node, next: Node, text: string, dashed: boolean): void {
  if (next.commentBefore || !next.range) return;
  const holder = lastWithComment(inside);
  if (holder === null) return;
  const lines = text.slice(0, next.range[0]).split("\n");
  const ownLine = lines.pop() as string;
  const margin = dashed ? ownLine.indexOf("-") : ownLine.length;
  if (margin < 0) return;
  const columns: number[] = [];
  const above: string[] = [];
  for (let line = lines.pop(); line !== undefined && /^\s*(#|$)/.test(line); line = lines.pop()) {
    if (line.trim() === "") continue;
    columns.unshift(line.indexOf("#"));
    above.unshift(line.trim().slice(1) || " ");
  }
  // An empty line in a comment represents an empty line of the file.
  const commentLines = (holder.comment as string).split("\n");
  if (commentLines.filter((line) => line !== "").join("\n") !== above.join("\n")) return;
  const first = columns.findLastIndex((column) => column > margin) + 1;
  if (first === 0 || first === above.length) return;
  let cut = 0;
  for (let passed = 0; passed < first; cut++) if (commentLines[cut] !== "") passed++;
  const rest = commentLines.slice(cut);
  holder.comment = commentLines.slice(0, cut).join("\n");
  next.spaceBefore = rest[0] === "";
  next.commentBefore = rest.slice(rest.findIndex((line) => line !== "")).join("\n");
}

/** Returns the last node with a comment, at any depth. */
function lastWithComment(node: Node): Node | null {
  if (node.comment && isCollection(node)) return node;
  if (!isMap(node) && !isSeq(node)) return null;
  const last = node.items.at(-1);
  const value = isPair(last) ? last.value : last;
  return isNode(value) ? lastWithComment(value) : null;
}

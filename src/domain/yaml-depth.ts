/** Limits the nesting of YAML by its tokens, because deeper nesting would overflow the parser's stack. */
import { Lexer } from "yaml";

interface ExceededBound {
  /** Offset of the first token that exceeds the bound. */
  offset: number;
  what: "depth" | "documents";
}

/** Zero-width tokens of the lexer: document, scalar, flow error end. */
const MARKS = ["\u0002", "\u001f", "\u0018"];

/**
 * Returns the first bound that the YAML exceeds; null if it exceeds none. Counts block collections by column, so `- -
 * -` counts as three. Does not count a list that starts in the column of its key, so the real depth is at most twice
 * the counted depth.
 */
export function findExceededBound(text: string, maxDepth: number, maxDocuments: number): ExceededBound | null {
  const columns: number[] = [];
  let flow = 0;
  let documents = 0;
  let offset = 0;
  let column = 0;
  for (const token of new Lexer().lex(text)) {
    if (MARKS.includes(token)) continue;
    const first = token.charAt(0);
    if (token === "---") {
      columns.length = flow = 0;
      if (++documents > maxDocuments) return { offset, what: "documents" };
    } else if (first === "[" || first === "{") flow++;
    else if (first === "]" || first === "}") flow = Math.max(0, flow - 1);
    else if (flow === 0 && startsNode(token)) {
      while ((columns.at(-1) ?? -1) > column) columns.pop();
      if (columns.at(-1) !== column) columns.push(column);
    }
    // A bracket opens a collection. Any other token in the last column might be a leaf, which does not count.
    if (columns.length + flow > maxDepth + (first === "[" || first === "{" ? 0 : 1)) return { offset, what: "depth" };
    offset += token.length;
    const line = token.lastIndexOf("\n");
    column = line < 0 ? column + token.length : token.length - line - 1;
  }
  return null;
}

/** Returns true if a token starts a node. White space, comments, commas, colons, anchors and tags do not. */
function startsNode(token: string): boolean {
  return !/^(?:[\s#,&!]|:$|\ufeff)/.test(token);
}

/** How deep a YAML text nests, by its tokens alone: what goes deeper is not handed to the parser, whose stack it would overflow. */
import { Lexer } from "yaml";

export interface ExceededBound {
  /** Of the first token beyond the bound. */
  offset: number;
  what: "depth" | "documents";
}

/** Zero-width marks of the lexer: document, scalar, end of a flow collection by fault. */
const MARKS = ["\u0002", "\u001f", "\u0018"];

/**
 * Columns stand for block collections, so that `- - -` counts; a list as deep as the key above it does not, so that the
 * true depth is at most twice what is counted. Null for a text that stays within.
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
    // A bracket opens a collection; what else stands at the last column may be a leaf.
    if (columns.length + flow > maxDepth + (first === "[" || first === "{" ? 0 : 1)) return { offset, what: "depth" };
    offset += token.length;
    const line = token.lastIndexOf("\n");
    column = line < 0 ? column + token.length : token.length - line - 1;
  }
  return null;
}

/** White space, comments, commas, colons, anchors and tags begin no node of their own. */
function startsNode(token: string): boolean {
  return !/^(?:[\s#,&!]|:$|\ufeff)/.test(token);
}

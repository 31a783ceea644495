/** Patterns of `matches`: compiled once, and charged by what the worst text would take. */
import { RE2JS } from "@bufbuild/re2";
import { charge } from "./cel-meter.ts";
import { computePatternCost, type CharacterCost } from "./cel-pattern-cost.ts";

/** Instructions of a compiled pattern: `a{500}` has 500. */
export const MAX_PATTERN_INSTRUCTIONS = 500;
/** States that a pattern's automaton may keep between evaluations. */
const MAX_STATES = 1_000;
/** Characters beyond ASCII of one text after which it is not kept either: each of its states keeps where they lead. */
const MAX_NON_ASCII = 1_000;

export interface Pattern {
  regex: RE2JS;
  size: number;
  cost: CharacterCost;
}

const MAX_PATTERNS = 10_000;
const patterns = new Map<string, Pattern>();

/** Throws for what is no RE2 pattern. */
export function compilePattern(source: string): Pattern {
  let pattern = patterns.get(source);
  if (pattern === undefined) {
    const regex = RE2JS.compile(source);
    const size = regex.re2().prog.inst.length;
    pattern = { regex, size, cost: computePatternCost(regex) };
    if (patterns.size >= MAX_PATTERNS) patterns.clear();
    patterns.set(source, pattern);
  }
  return pattern;
}

function find(source: string, { regex }: Pattern, text: string, others: number): boolean {
  const matches = regex.test(text);
  // An automaton that a hostile text has blown up is dropped: it holds memory, or has given up and is slow.
  const { dfa } = regex.re2();
  if (dfa.failed || dfa.stateCount > MAX_STATES || others > MAX_NON_ASCII) patterns.delete(source);
  return matches;
}

export function matches(this: string, source: string): boolean {
  const pattern = compilePattern(source);
  charge(1 + (this.length >> 5));
  const others = countNonAscii(this);
  charge((this.length - others) * pattern.cost.ascii + others * pattern.cost.other);
  return find(source, pattern, this, others);
}

/** UTF-16 code units beyond ASCII. */
function countNonAscii(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) count++;
  return count;
}

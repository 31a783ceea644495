/** Compiles and caches the patterns of `matches`. Charges every string like the most expensive string of its length. */
import { RE2JS } from "@bufbuild/re2";
import { chargeSteps } from "./cel-meter.ts";
import { computePatternCost, type CharacterCost } from "./cel-pattern-cost.ts";

/** Maximum number of instructions of a compiled pattern; `a{498}` has 500. */
export const MAX_PATTERN_INSTRUCTIONS = 500;
/** Maximum number of automaton states that stay cached between evaluations. */
const MAX_STATES = 1_000;
/**
 * Maximum number of non-ASCII characters in a string. The automaton is discarded after a string with more, because each
 * state stores transitions for them.
 */
const MAX_NON_ASCII = 1_000;

interface Pattern {
  regex: RE2JS;
  size: number;
  cost: CharacterCost;
}

/** An entry of the cache. A holder of the slot keeps its compiled pattern, which is null until its first use. */
export interface PatternSlot {
  pattern: Pattern | null;
}

const slots = new Map<string, WeakRef<PatternSlot>>();
const unheld = new FinalizationRegistry<string>((source) => {
  if (slots.get(source)?.deref() === undefined) slots.delete(source);
});

/**
 * Returns the slot of a pattern. Conditions hold the slots of their patterns, so that a pattern is compiled once,
 * however many patterns a policy set has.
 */
export function patternSlot(source: string): PatternSlot {
  const cached = slots.get(source)?.deref();
  if (cached !== undefined) return cached;
  const slot: PatternSlot = { pattern: null };
  slots.set(source, new WeakRef(slot));
  unheld.register(slot, source);
  return slot;
}

/** Compiles a pattern. Throws if it is not valid RE2. */
export function compilePattern(source: string): Pattern {
  const slot = patternSlot(source);
  if (slot.pattern === null) {
    const regex = RE2JS.compile(source);
    slot.pattern = { regex, size: regex.re2().prog.inst.length, cost: computePatternCost(regex) };
  }
  return slot.pattern;
}

function find(source: string, { regex }: Pattern, text: string, others: number): boolean {
  const matches = regex.test(text);
  // Discard the automaton if a hostile string has made it large, or if it has fallen back to slow simulation.
  const { dfa } = regex.re2();
  if (dfa.failed || dfa.stateCount > MAX_STATES || others > MAX_NON_ASCII) patternSlot(source).pattern = null;
  return matches;
}

/** Implements the method `matches`: returns true if the pattern matches a part of the string. */
export function matchesPattern(this: string, source: string): boolean {
  const pattern = compilePattern(source);
  chargeSteps(1 + (this.length >> 5));
  const others = countNonAscii(this);
  chargeSteps((this.length - others) * pattern.cost.ascii + others * pattern.cost.other);
  return find(source, pattern, this, others);
}

/** Returns the number of non-ASCII UTF-16 code units. */
function countNonAscii(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) count++;
  return count;
}

/**
 * Finds where a pattern and its groups match. The regular expression library only reports whether the pattern matches.
 * So this module runs the library's program with a list of threads in the order of preference. Like RE2, it returns the
 * leftmost match and prefers earlier alternatives. The time is proportional to the length of the string times the size
 * of the program, and each thread is charged to the step budget.
 */
import type { RE2JS } from "@bufbuild/re2";
import { chargeSteps } from "./cel-meter.ts";

type Instruction = ReturnType<RE2JS["re2"]>["prog"]["inst"][number];

/** RE2 opcodes. FIRST_RUNE and greater opcodes read a character. */
const ALTERNATIVES = [1, 2];
const CAPTURE = 3;
const EMPTY_WIDTH = 4;
const MATCH = 6;
const NOP = 7;
const FIRST_RUNE = 8;

/** Start and end of the match, then of each group, in UTF-16 code units; -1 for a group that did not match. */
export type PatternMatch = readonly number[];

interface Thread {
  readonly at: number;
  readonly slots: PatternMatch;
}

/** Returns the first match at or after an offset, or null. */
export function findMatch(pattern: RE2JS, text: string, from: number): PatternMatch | null {
  const { prog } = pattern.re2();
  const { inst, start } = prog;
  const noSlots: PatternMatch = Array.from({ length: 2 * (pattern.groupCount() + 1) }, () => -1);
  chargeSteps(1 + (inst.length >> 4));
  const marks = new Int32Array(inst.length).fill(-1);
  let [found, ready]: [PatternMatch | null, Thread[]] = [null, []];
  let before = from === 0 ? -1 : codePointBefore(text, from);
  for (let offset = from; ;) {
    const rune = text.codePointAt(offset) ?? -1;
    const starts = found === null ? [{ at: start, slots: withSlot(noSlots, 0, offset) }] : [];
    const threads = expand(inst, [...ready, ...starts], { offset, context: contextOf(before, rune), marks });
    ready = [];
    for (const { at, slots } of threads) {
      const instruction = inst[at] as Instruction;
      if (instruction.op === MATCH) {
        found = withSlot(slots, 1, offset);
        // The other threads are less preferred.
        break;
      }
      if (rune >= 0 && instruction.matchRune(rune)) ready.push({ at: instruction.out, slots });
    }
    if (rune < 0 || (ready.length === 0 && found !== null)) return found;
    before = rune;
    offset += rune > 0xffff ? 2 : 1;
  }
}

/**
 * Follows instructions that do not read a character. Returns the threads that arrive at an instruction that reads a
 * character or reports a match.
 */
function expand(
  inst: readonly Instruction[],
  threads: readonly Thread[],
  { offset, context, marks }: { offset: number; context: number; marks: Int32Array },
): Thread[] {
  const reached: Thread[] = [];
  const left = [...threads].reverse();
  for (let thread = left.pop(); thread !== undefined; thread = left.pop()) {
    const { at, slots } = thread;
    chargeSteps(1);
    if (marks[at] === offset) continue;
    marks[at] = offset;
    const { op, out, arg } = inst[at] as Instruction;
    if (ALTERNATIVES.includes(op)) left.push({ at: arg, slots }, { at: out, slots });
    else if (op === CAPTURE) left.push({ at: out, slots: withSlot(slots, arg, offset) });
    else if (op === NOP || (op === EMPTY_WIDTH && (arg & ~context) === 0)) left.push({ at: out, slots });
    else if (op >= FIRST_RUNE || op === MATCH) reached.push(thread);
  }
  return reached;
}

function withSlot(slots: PatternMatch, index: number, offset: number): PatternMatch {
  chargeSteps(slots.length >> 3);
  const changed = [...slots];
  changed[index] = offset;
  return changed;
}

function codePointBefore(text: string, offset: number): number {
  const unit = text.charCodeAt(offset - 1);
  const isLow = unit >= 0xdc00 && unit <= 0xdfff && offset > 1;
  const point = isLow ? (text.codePointAt(offset - 2) ?? unit) : unit;
  return point > 0xffff ? point : unit;
}

const isWord = (point: number): boolean => point >= 0 && point < 0x80 && /\w/.test(String.fromCharCode(point));

/**
 * Returns the assertions that are true between two code points, as flags of RE2. The code point -1 represents the edge
 * of the string.
 */
function contextOf(before: number, after: number): number {
  const [begin, end] = [before < 0, after < 0];
  return (
    (begin || before === 0x0a ? 1 : 0) |
    (end || after === 0x0a ? 2 : 0) |
    (begin ? 4 : 0) |
    (end ? 8 : 0) |
    (isWord(before) === isWord(after) ? 32 : 16)
  );
}

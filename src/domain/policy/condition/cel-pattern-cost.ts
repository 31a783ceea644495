/**
 * Computes a pattern's cost per character for the most expensive string. An automaton with cached states reads a
 * character in at most a tenth of a microsecond. But `a[ab]{20}c` has two million states. A hostile string can require
 * a new state for every character, until the automaton falls back to a slow simulation. So the states are counted when
 * the pattern is compiled. An estimate from program size and string length is too coarse. To cover the worst pattern,
 * it has to be 9 steps plus a tenth of the size per character. With that estimate, the shell pack denies commands of
 * 500 characters, and the databases pack denies queries of 1,000 characters.
 */
import type { RE2JS } from "@bufbuild/re2";

/** Steps for each UTF-16 code unit. */
export interface CharacterCost {
  ascii: number;
  other: number;
}

type Program = ReturnType<RE2JS["re2"]>["prog"];
type Instruction = Program["inst"][number];

const MAX_STATES = 600;
/** Maximum number of instructions to visit. */
const MAX_WORK = 20_000;

/**
 * RE2 opcodes: alternatives, an empty-width assertion, match and fail. FIRST_RUNE and greater opcodes read a character.
 * FOLD_CASE is a flag of such an opcode.
 */
const ALTERNATIVES = [1, 2];
const EMPTY_WIDTH = 4;
const MATCH = 6;
const FAIL = 5;
const FIRST_RUNE = 8;
const FOLD_CASE = 1;
/**
 * Flags of a position: start of a line, start of the string (which is also the start of a line), end of a line, word
 * boundary, no word boundary.
 */
const BEGINS = [0, 1];
const BEGIN_OF_TEXT = 5;
const END_OF_LINE = 2;
const BOUNDARIES = [16, 32];

export function computePatternCost(pattern: RE2JS): CharacterCost {
  const { prog } = pattern.re2();
  const states = enumerateStates(prog);
  const size = prog.inst.length;
  if (states === null) return { ascii: 9 + size / 10, other: 9 + size / 10 };
  const hasAssertion = (pcs: readonly number[]): boolean => pcs.some((pc) => prog.inst[pc]?.op === EMPTY_WIDTH);
  const mostPositions = Math.max(...states.map(({ length }) => length));
  const withAssertions = states.filter(hasAssertion);
  const assertionCost =
    withAssertions.length === 0 ? 0 : 1 + Math.max(...withAssertions.map(({ length }) => length)) / 10;
  // Transitions on non-ASCII characters are not cached; each is computed again.
  return { ascii: 0.25 + assertionCost, other: 2 + assertionCost + mostPositions / 5 };
}

/** Returns every state that a search can reach, as positions in the program, or null if there are too many states. */
function enumerateStates({ inst, start }: Program): number[][] | null {
  const characters = representativeCharacters(inst);
  if (characters === null) return null;
  const reads = characters.map((character) => inst.map((item) => item.op >= FIRST_RUNE && item.matchRune(character)));
  const states = new Map<string, number[]>();
  const assertions = inst.reduce((flags, { op, arg }) => (op === EMPTY_WIDTH ? flags | arg : flags), 0);
  const contexts = { newline: contextsBefore(true, assertions), other: contextsBefore(false, assertions) };
  let work = 0;
  // Most characters lead to the same few positions.
  const lengths = new Map<string, number>();
  const reach = (pcs: readonly number[]): void => {
    const name = pcs.join();
    let length = lengths.get(name);
    if (length === undefined) {
      const state = expandStates(inst, pcs, null);
      length = state.length;
      lengths.set(name, length);
      const key = state.join();
      if (!states.has(key)) states.set(key, state);
    }
    work += length;
  };
  reach([start]);
  const [first] = states.values();
  for (const state of states.values()) {
    const hasAssertion = state.some((pc) => inst[pc]?.op === EMPTY_WIDTH);
    const closures = new Map<number | null, number[]>([[null, state]]);
    for (const [kind, character] of characters.entries()) {
      const { all, rest } = character === 0x0a ? contexts.newline : contexts.other;
      for (const context of hasAssertion ? (state === first ? all : rest) : [null]) {
        const from = closures.get(context) ?? expandStates(inst, state, context);
        closures.set(context, from);
        const read = from.filter((pc) => reads[kind]?.[pc]).map((pc) => (inst[pc] as Instruction).out);
        // A search can start at every character.
        reach([...read, start]);
        work += from.length;
        if (work > MAX_WORK || states.size > MAX_STATES) return null;
      }
    }
  }
  return [...states.values()];
}

/**
 * Returns the positions that are reachable without reading a character. Passes assertions that `context` satisfies;
 * without a context, stops at assertions.
 */
function expandStates(inst: readonly Instruction[], from: readonly number[], context: number | null): number[] {
  const reached = new Set<number>();
  const left = [...from];
  for (let pc = left.pop(); pc !== undefined; pc = left.pop()) {
    if (reached.has(pc)) continue;
    reached.add(pc);
    const { op, out, arg } = inst[pc] as Instruction;
    if (ALTERNATIVES.includes(op)) left.push(out, arg);
    else if (op === EMPTY_WIDTH) {
      if (context !== null && (arg & ~context) === 0) left.push(out);
    } else if (op < FIRST_RUNE && op !== MATCH && op !== FAIL) left.push(out);
  }
  return [...reached].sort((a, b) => a - b);
}

/**
 * Returns the possible contexts before a character: `all` before the first character of the string, `rest` before a later
 * one.
 * @param assertions the flags that the program uses. Other flags are ignored
 */
function contextsBefore(isNewline: boolean, assertions: number): { all: number[]; rest: number[] } {
  const end = isNewline ? END_OF_LINE : 0;
  const after = (begins: readonly number[]): number[] => [
    ...new Set(begins.flatMap((begin) => BOUNDARIES.map((boundary) => (begin | end | boundary) & assertions))),
  ];
  return { all: after([...BEGINS, BEGIN_OF_TEXT]), rest: after(BEGINS) };
}

/** Returns one character for each class that the instructions distinguish, or null if there are too many. */
function representativeCharacters(instructions: readonly Instruction[]): number[] | null {
  const readers = instructions.filter(({ op }) => op >= FIRST_RUNE);
  const edges = new Set([0, 0x0a, 0x0b]);
  if (instructions.some(({ op }) => op === EMPTY_WIDTH))
    for (const edge of ["0", ":", "A", "[", "_", "`", "a", "{"]) edges.add(edge.charCodeAt(0));
  for (const { runes, arg } of readers) {
    const ranges = runes.length === 1 ? [runes[0], runes[0]] : runes;
    for (const [i, rune] of ranges.entries()) edges.add((rune as number) + (i % 2));
    if (runes.length !== 1 || (arg & FOLD_CASE) === 0) continue;
    const character = String.fromCodePoint(runes[0] as number);
    // The letters k and s each have a third form: the Kelvin sign and the long s.
    for (const other of [character.toLowerCase(), character.toUpperCase(), "\u212a", "\u017f"]) {
      const rune = other.codePointAt(0) as number;
      edges.add(rune).add(rune + 1);
    }
  }
  const kinds = new Map<string, number>();
  for (const edge of edges) {
    if (edge > 0x10ffff) continue;
    const kind = readers.map((reader) => (reader.matchRune(edge) ? 1 : 0)).join("");
    const isWord = edge < 0x80 && /\w/.test(String.fromCharCode(edge));
    kinds.set(`${kind} ${isWord} ${edge === 0x0a}`, edge);
    if (edges.size > 2_000) return null;
  }
  return [...kinds.values()];
}

/** Verifies the contents of actions in a pack against the commitments in the entries. */
import {
  type ActionEntry,
  commitDigest,
  commitQuestionText,
  commitResult,
  commitSalted,
  commitSaltedFacts,
  encodeRequest,
  type ErasablePart,
  type PinningEntry,
  pinsMatchEntry,
  type SaltedMembers,
} from "../../../src/browser.ts";
import type { OpenedAction } from "../pack-format.ts";

/** Commitments in the entries of one action. */
export interface Commitments {
  /** Names in the decision. */
  names: Pick<OpenedAction, "agent_id" | "tool" | "operation">;
  /** Commitments to the request, and to the request after changes by an approver or the policies. */
  request: string;
  effective: string | null;
  /** Whether an entry of the window is about the action. */
  isInWindow: boolean;
  result: string | null;
  meta: string | null;
  past: string[];
  /** The entries whose decisions may pin facts, with the commitment to their facts. */
  pinning: (PinningEntry & { past: string | null })[];
  questions: { question: string; answer: string | null }[];
  /** Time of the erasure; null if the action was not erased. */
  erasedAt: string | null;
  /** Erased parts of an action whose request was not erased. */
  erasedParts: readonly ErasablePart[];
}

const pinningEntry = ({ decision, facts, pins }: Extract<ActionEntry, PinningEntry>) => ({
  decision,
  past: facts.past ?? null,
  ...(pins === undefined ? {} : { pins }),
});

const ERASURES: readonly string[] = ["erasure", "part_erasure"];

/**
 * Adds the commitments of an entry. Uses entries after the window only if they erased contents.
 * @param before commitments so far; null for the decision entry
 */
export function addCommitments(
  before: Commitments | null,
  entry: ActionEntry,
  { first, end }: { first: number; end: number },
): Commitments | null {
  const isInWindow = entry.seq >= first && entry.seq < end;
  if (entry.type === "decision")
    return {
      names: { agent_id: entry.agent_id, tool: entry.tool, operation: entry.operation },
      request: entry.commitment,
      effective: entry.effective ?? null,
      isInWindow,
      result: null,
      meta: entry.meta,
      past: entry.facts.past === undefined ? [] : [entry.facts.past],
      pinning: [pinningEntry(entry)],
      questions: [],
      erasedAt: null,
      erasedParts: [],
    };
  if (before === null) return null;
  before.isInWindow ||= isInWindow;
  if (!ERASURES.includes(entry.type)) {
    if (entry.seq >= end) return before;
    // Each entry commits to the request that was valid then, so the pack cannot hide a change of the request.
    if (entry.commitment !== before.request) before.effective = entry.commitment;
  }
  if (entry.type === "redecision") {
    before.pinning.push(pinningEntry(entry));
    if (entry.facts.past !== undefined && !before.past.includes(entry.facts.past)) before.past.push(entry.facts.past);
  } else if (entry.type === "execution" && entry.result !== null) before.result = entry.result;
  else if (entry.type === "erasure") before.erasedAt = entry.at;
  else if (entry.type === "part_erasure") before.erasedParts = [...before.erasedParts, entry.part];
  else if (entry.type === "question") {
    if (entry.phase === "ask") before.questions.push({ question: entry.text, answer: null });
    else {
      const asked = before.questions[entry.number - 1];
      if (asked !== undefined) asked.answer = entry.text;
    }
  }
  return before;
}

/** Returns which content does not match its commitment; null if everything matches. */
export function findActionFault(action: OpenedAction, committed: Commitments): string | null {
  const { agent_id, tool, operation } = committed.names;
  if (!committed.isInWindow) return "no entry of the window is about it";
  if (agent_id !== action.agent_id || tool !== action.tool || operation !== action.operation)
    return "its name was changed";
  if (action.erased_at !== null || committed.erasedAt !== null) return findErasureFault(action, committed);
  const { request, salt, effective, past } = action;
  const isErased = (part: ErasablePart): boolean => committed.erasedParts.includes(part);
  if (request === null || salt === null) return "its request is missing";
  if (commitDigest(salt, encodeRequest(request).hash) !== committed.request) return "its request was changed";
  if (effective === null) {
    if (committed.effective !== null) return "its changed request is missing";
  } else if (commitDigest(effective.salt, encodeRequest(effective.request).hash) !== committed.effective)
    return "the change of its request was changed";
  const { result, meta, questions } = action;
  const contents = { result, meta, questions: questions[0] ?? null };
  for (const [part, content] of Object.entries(contents) as [ErasablePart, unknown][])
    if (isErased(part) && content !== null) return `its ${part} was erased, and the pack has it`;
  if (!isErased("result") && (result === null ? null : commitResult(salt, result as never)) !== committed.result)
    return "its result was changed";
  if (!isErased("meta") && (meta === null ? null : commitSalted(meta as SaltedMembers)) !== committed.meta)
    return "its metadata was changed";
  if (
    past
      .map((each) => commitSaltedFacts(each))
      .sort()
      .join() !== [...committed.past].sort().join()
  )
    return "the usage of its limits was changed";
  for (const entry of committed.pinning) {
    const opened = past.find((each) => commitSaltedFacts(each) === entry.past);
    if (!pinsMatchEntry(entry, salt, opened?.sources)) return "its pinned facts are not those of its entries";
  }
  if (isErased("questions")) return null;
  const texts = questions.map(({ question, answer }) => [
    commitQuestionText(question),
    answer === null ? null : commitQuestionText(answer),
  ]);
  const expected = committed.questions.map(({ question, answer }) => [question, answer]);
  return JSON.stringify(texts) === JSON.stringify(expected) ? null : "a question or an answer was changed";
}

/**
 * Returns the fault of an action that was erased, or is marked as erased; null if it has none. The action must have no
 * content, because someone could have put other content in its place.
 */
function findErasureFault(action: OpenedAction, { erasedAt }: Commitments): string | null {
  if (erasedAt === null) return "it is marked as erased, and no entry says so";
  if (action.erased_at === null) return "it was erased, and the pack does not say so";
  if (erasedAt !== action.erased_at) return "the time of its erasure was changed";
  const { request, salt, effective, result, meta, shown, past, questions } = action;
  const isEmpty = [request, salt, effective, result, meta, shown].every((content) => content === null);
  return isEmpty && past.length === 0 && questions.length === 0 ? null : "it was erased, and has contents";
}

/**
 * Searches actions for words, a decision, a policy, a rule or an answer, newest first. The store has no index of these,
 * so a search reads actions in slices. The store omits actions of a slice that cannot match.
 */
import type { CompiledPolicySet, CoreHost } from "../../src/core.ts";
import type { ActionFilter, ActionRow, ContainedText } from "../../src/storage/index.ts";
import { findContainedText, selectByWords, splitWords } from "./match-words.ts";
import type { ListQuery } from "./schemas.ts";

/** Maximum number of actions that one request searches. */
const MAX_SEARCHED = 20_000;
/** Maximum number of actions that the store returns at once. */
const SLICE_SIZE = 200;
/** Number of actions that the store tests at once. */
const PREFILTERED_SLICE = 2000;

type Filter = Omit<Parameters<CoreHost["storage"]["actions"]>[0], "limit" | "offset">;

/** Conditions that the store tests without an index, so each read is limited to `PREFILTERED_SLICE` actions. */
type Prefilter = Pick<ActionFilter, "decision" | "policy" | "rule" | "contains">;

interface Slice {
  rows: ActionRow[];
  /** Number of searched actions. */
  count: number;
  end: number | null;
}

/** Filters for which the store has no index, so they require a search. */
type SearchFilter = Pick<ListQuery, "q" | "decision" | "policy" | "rule" | "has_rule" | "answer">;

/** Returns true if the query has a filter that requires a search. */
export function isSearch({ q, decision, policy, rule, has_rule, answer }: SearchFilter): boolean {
  return [q, decision, policy, rule, has_rule, answer].some((value) => value !== undefined);
}

interface ActionSearch {
  /**
   * Reads up to `limit` matching actions older than `after`. Returns fewer if there are no more, or at the search
   * limit.
   */
  read(after: ActionRow | null, limit: number): Promise<ActionRow[]>;
  /** Sequence number of the last searched action, if the search reached its limit; else null. */
  cutAt(): number | null;
}

export function createActionSearch(
  host: CoreHost,
  keyId: string,
  filter: Filter,
  searched: SearchFilter,
): ActionSearch {
  const words = splitWords(searched.q);
  let read = 0;
  let cut: number | null = null;
  /** The slice that the store tests now; null between two slices. One slice can need several reads. */
  let range: { from_seq: number; end: number | null } | null = null;

  /** Reads the next actions that can match. `end` is the last searched action, or null at the end of the list. */
  async function readSlice(before: number | undefined, set: CompiledPolicySet): Promise<Slice> {
    const older = before === undefined ? filter : { ...filter, before_seq: before };
    const prefilter = createPrefilter(filter, searched, await findContainedText(host, words, set));
    if (prefilter === null) {
      range = null;
      const rows = await host.storage.actions({ ...older, limit: SLICE_SIZE });
      return { rows, count: rows.length, end: rows.length < SLICE_SIZE ? null : seqOf(rows.at(-1)) };
    }
    const count = range === null ? PREFILTERED_SLICE : 0;
    if (range === null) {
      const [last] = await host.storage.actions({ ...older, offset: PREFILTERED_SLICE - 1, limit: 1 });
      range = { from_seq: last?.decision_seq ?? 0, end: seqOf(last) };
    }
    const { from_seq, end } = range;
    const rows = await host.storage.actions({ ...older, ...prefilter, from_seq, limit: SLICE_SIZE });
    if (rows.length === SLICE_SIZE) return { rows, count, end: seqOf(rows.at(-1)) };
    range = null;
    return { rows, count, end };
  }

  return {
    cutAt: () => cut,
    async read(after, limit) {
      const found: ActionRow[] = [];
      let before = after?.decision_seq ?? filter.before_seq;
      for (;;) {
        if (read >= MAX_SEARCHED) {
          cut = before ?? null;
          return found;
        }
        await host.waitForReadSlot(keyId);
        const { compiled } = await host.policies.current();
        const { rows, count, end } = await readSlice(before, compiled);
        const candidates = rows.filter((row) => matches(searched, row));
        const selected = new Set(await selectByWords(host, keyId, words, candidates, compiled));
        for (const [i, row] of rows.entries()) {
          if (selected.has(row)) found.push(row);
          if (found.length < limit) continue;
          read += i + 1;
          range = null;
          return found;
        }
        if (end === null) return found;
        read += count;
        before = end;
      }
    },
  };
}

const seqOf = (row: ActionRow | undefined): number | null => row?.decision_seq ?? null;

/**
 * Returns conditions that all matching actions meet, so that the store can omit other actions; null if there are none.
 * Returns null for a group member: the store selects a member's actions from pages of all actions, so finding 2,000 of
 * them could read the whole store.
 */
function createPrefilter(
  { visibility }: Filter,
  { decision, policy, rule }: SearchFilter,
  contains: ContainedText | undefined,
): Prefilter | null {
  if ("within" in visibility) return null;
  const all = Object.entries({ decision, policy, rule, contains }).filter(([, value]) => value !== undefined);
  return all.length === 0 ? null : (Object.fromEntries(all) as Prefilter);
}

function matches({ decision, policy, rule, has_rule, answer }: SearchFilter, row: ActionRow): boolean {
  if (decision !== undefined && row.decision !== decision) return false;
  if (policy !== undefined && row.policy !== policy) return false;
  if (rule !== undefined && row.rule !== rule) return false;
  if (has_rule !== undefined && has_rule !== (row.rule !== null)) return false;
  return answer === undefined || isAnswer(answer, row);
}

/** Returns true if approvers gave this answer to the action. Agrees with the counts of `waits` in analytics. */
function isAnswer(answer: NonNullable<ListQuery["answer"]>, { waited_ms, approved_until }: ActionRow): boolean {
  if (waited_ms === null) return false;
  return answer === "any" || (answer === "approved") === (approved_until !== null);
}

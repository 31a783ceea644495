/**
 * Searches actions for words, a decision, a policy, a rule or an answer, newest first. The store has no index of these,
 * so a search reads actions in slices.
 */
import type { CoreHost } from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { matchesWords, splitWords } from "./pending-filter.ts";
import type { ListQuery } from "./schemas.ts";

/** Actions that one request searches. */
const MAX_SEARCHED = 20_000;
const SLICE = 200;

type Filter = Omit<Parameters<CoreHost["storage"]["actions"]>[0], "limit" | "offset">;

/** What the store cannot filter by. */
type SearchFilter = Pick<ListQuery, "q" | "decision" | "policy" | "rule" | "has_rule" | "answer">;

/** Returns whether the query has a filter that the store cannot apply. */
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

export function createActionSearch(host: CoreHost, filter: Filter, searched: SearchFilter): ActionSearch {
  const words = splitWords(searched.q);
  let read = 0;
  let cut: number | null = null;
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
        await host.waitForReadSlot();
        const position = before === undefined ? {} : { before_seq: before };
        const rows = await host.storage.actions({ ...filter, ...position, limit: SLICE });
        const { compiled } = await host.policies.current();
        for (const row of rows) {
          read += 1;
          before = row.decision_seq;
          if (matches(searched, row) && matchesWords(words, row, compiled)) found.push(row);
          if (found.length === limit) return found;
        }
        if (rows.length < SLICE) return found;
      }
    },
  };
}

function matches({ decision, policy, rule, has_rule, answer }: SearchFilter, row: ActionRow): boolean {
  if (decision !== undefined && row.decision !== decision) return false;
  if (policy !== undefined && row.policy !== policy) return false;
  if (rule !== undefined && row.rule !== rule) return false;
  if (has_rule !== undefined && has_rule !== (row.rule !== null)) return false;
  return answer === undefined || isAnswer(answer, row);
}

/** Returns whether approvers gave this answer to the action. Agrees with the counts of `waits` in analytics. */
function isAnswer(answer: NonNullable<ListQuery["answer"]>, { waited_ms, approved_until }: ActionRow): boolean {
  if (waited_ms === null) return false;
  return answer === "any" || (answer === "approved") === (approved_until !== null);
}

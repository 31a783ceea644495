/** Searches actions for words, newest first. The store has no index of words, so a search reads actions in slices. */
import type { CoreHost } from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { matchesWords } from "./pending-filter.ts";

/** Actions that one request searches. */
const MAX_SEARCHED = 20_000;
const SLICE = 200;

type Filter = Omit<Parameters<CoreHost["storage"]["actions"]>[0], "limit" | "offset">;

export interface ActionSearch {
  /** Reads up to `limit` actions with the words, older than `after`; fewer if there are no more, or the search was cut. */
  read(after: ActionRow | null, limit: number): Promise<ActionRow[]>;
  /** Sequence number of the last action that was searched, if the search was cut there; else null. */
  cutAt(): number | null;
}

export function createActionSearch(host: CoreHost, filter: Filter, words: string): ActionSearch {
  let searched = 0;
  let cut: number | null = null;
  return {
    cutAt: () => cut,
    async read(after, limit) {
      const found: ActionRow[] = [];
      let before = after?.decision_seq ?? filter.before_seq;
      for (;;) {
        if (searched >= MAX_SEARCHED) {
          cut = before ?? null;
          return found;
        }
        await host.waitForReadSlot();
        const position = before === undefined ? {} : { before_seq: before };
        const rows = await host.storage.actions({ ...filter, ...position, limit: SLICE });
        for (const row of rows) {
          searched += 1;
          before = row.decision_seq;
          if (matchesWords(words, row)) found.push(row);
          if (found.length === limit) return found;
        }
        if (rows.length < SLICE) return found;
      }
    },
  };
}

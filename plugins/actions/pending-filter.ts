/**
 * Filters, searches and sorts the pending actions for the approvers' inbox. The store can sort pending actions only by
 * deadline, so this module reads all of them, in slices. Decisions run between two slices.
 */
import { type Static, Type } from "@sinclair/typebox";
import { type CoreHost, invalidCursor } from "../../src/core.ts";
import { type Credential, decodeCursor } from "../../src/plugin.ts";
import type { ActionRow, PendingCursor } from "../../src/storage/index.ts";
import { findContainedText, selectByWords, splitWords } from "./match-words.ts";
import type { VoteMoment } from "./approver-plans.ts";
import { readVerifiedHistory } from "./verify-record.ts";
import { findVotingBlock, type PendingApprover } from "./voting-capacity.ts";

/** Maximum number of pending actions that one request reads, starting with the earliest deadline. */
const MAX_READ = 20_000;
/**
 * Maximum number of pending actions whose approvers one request evaluates, because each evaluation reads ledger
 * entries.
 */
const MAX_EVALUATED = 1000;
const SLICE = 200;

const RISKS = ["low", "medium", "high", "critical"] as const;

export const PendingFilter = Type.Object({
  view: Type.Optional(
    Type.Union([Type.Literal("mine"), Type.Literal("second_vote")], {
      description:
        "`mine`: actions that this credential can approve now. `second_vote`: actions that have an approval and need more.",
    }),
  ),
  agent_id: Type.Optional(Type.String({ maxLength: 256 })),
  tool: Type.Optional(Type.String({ maxLength: 256 })),
  operation: Type.Optional(Type.String({ maxLength: 256 })),
  risk_level: Type.Optional(Type.Union(RISKS.map((risk) => Type.Literal(risk)))),
  q: Type.Optional(
    Type.String({
      maxLength: 200,
      description:
        "Words that each occur in the agent, the tool, the operation, the parameters, the context, the policy, the rule, the reason, a question or answer, the comment of a vote or of a lifted rejection, or the name of who gave it, in any case; or the first 8 or more characters of an id.",
    }),
  ),
  sort: Type.Optional(
    Type.Union([Type.Literal("deadline"), Type.Literal("newest"), Type.Literal("oldest"), Type.Literal("risk")], {
      description:
        "Default `deadline`, with the earliest first. `risk` lists the highest risk first, then the earliest deadline.",
    }),
  ),
});
export type PendingFilter = Static<typeof PendingFilter>;

/** Whether the query has a filter or an order that the store's own list does not support. */
export function needsFullScan({ view, agent_id, tool, operation, risk_level, q, sort }: PendingFilter): boolean {
  const isSorted = sort === "oldest" || sort === "risk";
  return isSorted || [view, agent_id, tool, operation, risk_level, q].some((value) => value !== undefined);
}

/** Position of an action in the chosen order, which is ascending. */
type SortKey = readonly [number, number, number];

interface Match extends Pick<ActionRow, "id" | "tool" | "operation" | "risk_level" | "expires_at"> {
  key: SortKey;
}

interface Matches {
  /** Sorted in the chosen order. */
  matches: readonly Match[];
  /** False if there are more pending actions than one request reads. */
  isComplete: boolean;
}

function sortKey({ sort = "deadline" }: PendingFilter, row: ActionRow): SortKey {
  const { decision_seq: seq, expires_at } = row;
  if (sort === "newest") return [-seq, 0, 0];
  if (sort === "oldest") return [seq, 0, 0];
  const risk = sort === "risk" ? -RISKS.indexOf(row.risk_level as (typeof RISKS)[number]) : 0;
  return [risk, expires_at ?? 0, seq];
}

export function compareSortKeys(a: SortKey, b: SortKey): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}

/** Returns the cursor of an action. The cursor contains its order, because a position is valid only in that order. */
export function formatSortKey(filter: PendingFilter, row: ActionRow): string {
  return [filter.sort ?? "deadline", ...sortKey(filter, row)].join("_");
}

/** Returns the position in a cursor. Throws INVALID_CURSOR for a cursor of a different order. */
export function parseSortKey(list: string, { sort = "deadline" }: PendingFilter, cursor: string): SortKey {
  const [name, ...parts] = decodeCursor(list, cursor).split("_");
  const [a = NaN, b = NaN, c = NaN] = parts.map((part) => (/^-?\d{1,16}$/.test(part) ? Number(part) : NaN));
  if (name !== sort || parts.length !== 3 || ![a, b, c].every(Number.isSafeInteger)) throw invalidCursor(cursor);
  return [a, b, c];
}

/**
 * Returns the pending actions that the credential can see and that match the filter, in the filter's order.
 * @param approver the approver for whom `view=mine` lists actions
 */
export async function findMatchingActions(
  host: CoreHost,
  credential: Credential,
  filter: PendingFilter,
  now: number,
  approver: PendingApprover = credential,
): Promise<Matches> {
  const matches: Match[] = [];
  const moment = { ...(await host.snapshot()), now };
  let after: PendingCursor = { expires_at: now, decision_seq: Number.MAX_SAFE_INTEGER };
  let evaluated = 0;
  const words = splitWords(filter.q);
  const { compiled: set } = await host.policies.current();
  // A group member's search must not take longer because of actions that the member cannot see.
  const text = "within" in credential.visibility ? undefined : await findContainedText(host, words, set);
  // The store searches all pending actions for the text at once. Use that only if this request may read all of them.
  const isBounded = text !== undefined && (await host.storage.pendingCount({ all: true }, now)) <= MAX_READ;
  const contained = isBounded ? text : undefined;
  for (let read = 0; read < MAX_READ; read += SLICE) {
    await host.waitForReadSlot(credential.key.id);
    const rows = await host.storage.pendingActions(credential.visibility, after, SLICE, contained);
    const candidates = rows.filter((row) => matchesFields(filter, row));
    for (const row of await selectByWords(host, credential.key.id, words, candidates, set)) {
      if (filter.view === "second_vote" && !(await needsSecondVote(host, row))) continue;
      if (filter.view === "mine") {
        if (evaluated++ === MAX_EVALUATED) return { matches: matches.sort(byKey), isComplete: false };
        if (!(await canApprove(host, approver, row, moment))) continue;
      }
      const { id, tool, operation, risk_level, expires_at } = row;
      matches.push({ id, tool, operation, risk_level, expires_at, key: sortKey(filter, row) });
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < SLICE) return { matches: matches.sort(byKey), isComplete: true };
    after = { expires_at: last.expires_at ?? 0, decision_seq: last.decision_seq };
  }
  return { matches: matches.sort(byKey), isComplete: false };
}

const byKey = (a: Match, b: Match): number => compareSortKeys(a.key, b.key);

function matchesFields({ agent_id, tool, operation, risk_level }: PendingFilter, row: ActionRow): boolean {
  if (agent_id !== undefined && row.agent_id !== agent_id) return false;
  if (tool !== undefined && row.tool !== tool) return false;
  if (operation !== undefined && row.operation !== operation) return false;
  return risk_level === undefined || row.risk_level === risk_level;
}

async function needsSecondVote(host: CoreHost, { id, quorum }: ActionRow): Promise<boolean> {
  return (quorum ?? 1) > 1 && (await host.storage.approvals(id)).some(({ approve }) => approve);
}

async function canApprove(
  host: CoreHost,
  approver: PendingApprover,
  row: ActionRow,
  moment: VoteMoment,
): Promise<boolean> {
  if (!approver.hasScope("approvals:decide")) return false;
  const history = await readVerifiedHistory(host.storage, row);
  return history !== null && findVotingBlock(host, row, approver, history, moment) === null;
}

/** The pending actions of one tool and operation. */
interface PendingKind extends Pick<ActionRow, "tool" | "operation"> {
  count: number;
  /** The highest risk; null if none is rated. */
  risk_level: string | null;
  /** The earliest deadline. Milliseconds. */
  expires_at: number;
}

/** Counts matching actions by tool and operation: the highest risk first, then the earliest deadline. */
export function countKinds(matches: readonly Match[]): PendingKind[] {
  const kinds = new Map<string, PendingKind>();
  for (const { tool, operation, risk_level, expires_at } of matches) {
    const key = JSON.stringify([tool, operation]);
    const kind = kinds.get(key) ?? { tool, operation, count: 0, risk_level: null, expires_at: Infinity };
    kind.count += 1;
    if (rankOf(risk_level) > rankOf(kind.risk_level)) kind.risk_level = risk_level;
    kind.expires_at = Math.min(kind.expires_at, expires_at ?? Infinity);
    kinds.set(key, kind);
  }
  return [...kinds.values()].sort((a, b) => rankOf(b.risk_level) - rankOf(a.risk_level) || a.expires_at - b.expires_at);
}

const rankOf = (risk: string | null): number => RISKS.indexOf(risk as (typeof RISKS)[number]);

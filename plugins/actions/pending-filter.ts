/**
 * Filters, searches and sorts the pending actions for the approvers' inbox. The store can sort pending actions only by
 * deadline, so this module reads all of them, in slices. Decisions run between two slices.
 */
import { type Static, Type } from "@sinclair/typebox";
import { type CoreHost, invalidCursor, sha256Hex, utf8 } from "../../src/core.ts";
import { type Credential, decodeCursor } from "../../src/plugin.ts";
import type { ActionRow, PendingCursor } from "../../src/storage/index.ts";
import { findContainedText, selectByWords, splitWords } from "./match-words.ts";
import type { VoteMoment } from "./approver-plans.ts";
import { readVerifiedHistory, type VerifiedHistory } from "./verify-record.ts";
import { findVotingBlock, type PendingApprover } from "./voting-capacity.ts";

/** Maximum number of pending actions that one request reads, starting with the earliest deadline. */
const MAX_READ = 20_000;
const SLICE_SIZE = 200;
/** Number of characters of requests that a visitor may parse before it yields to decisions. */
const MAX_VISITED = 1_000_000;

export const RISKS = ["low", "medium", "high", "critical"] as const;

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
  group: Type.Optional(Type.String({ maxLength: 64, description: "Id of a group of `GET /v1/approvals/groups`." })),
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

/** Returns true if the query has a filter or an order that the store's own list does not support. */
export function needsFullScan({ sort, ...filters }: PendingFilter): boolean {
  return sort === "oldest" || sort === "risk" || Object.values(filters).some((value) => value !== undefined);
}

/** Position of an action in the chosen order, which is ascending. */
export type SortKey = readonly [number, number, number];

interface Match extends Pick<ActionRow, "id"> {
  key: SortKey;
}

interface Matches {
  /** Sorted in the chosen order. */
  matches: readonly Match[];
  /** False if there are more pending actions than one request reads. */
  isComplete: boolean;
}

/**
 * Returns the group of an action as an id. A group contains the actions that the same rule decided for the same tool
 * and operation.
 */
type GroupIds = (row: Pick<ActionRow, "tool" | "operation" | "policy" | "rule">) => string;

/** Returns a function that returns the ids of groups, and computes each once. */
export function createGroupIds(): GroupIds {
  const groupIds = new Map<string, string>();
  return ({ tool, operation, policy, rule }) => {
    const key = JSON.stringify([tool, operation, policy, rule]);
    // An agent may choose the operation, so the id is long enough that no two names with the same id can be found.
    const id = groupIds.get(key) ?? sha256Hex(utf8(key)).slice(0, 32);
    groupIds.set(key, id);
    return id;
  };
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
 * @param visit called with each matching action, the earliest deadline first
 */
export async function findMatchingActions(
  host: CoreHost,
  credential: Credential,
  filter: PendingFilter,
  now: number,
  approver: PendingApprover = credential,
  visit?: (row: ActionRow, key: SortKey) => void,
): Promise<Matches> {
  const matches: Match[] = [];
  const moment = { ...(await host.snapshot()), now };
  let after: PendingCursor = { expires_at: now, decision_seq: Number.MAX_SAFE_INTEGER };
  const groupOf = createGroupIds();
  let visited = 0;
  const words = splitWords(filter.q);
  const { compiled: set } = await host.policies.current();
  // A group member's search must not take longer because of actions that the member cannot see.
  const text = "within" in credential.visibility ? undefined : await findContainedText(host, words, set);
  // The store searches all pending actions for the text at once. Use that only if this request may read all of them.
  const isBounded = text !== undefined && (await host.storage.pendingCount({ all: true }, now)) <= MAX_READ;
  const contained = isBounded ? text : undefined;
  for (let read = 0; read < MAX_READ; read += SLICE_SIZE) {
    await host.waitForReadSlot(credential.key.id);
    const rows = await host.storage.pendingActions(credential.visibility, after, SLICE_SIZE, contained);
    const candidates = rows.filter(
      (row) => matchesFields(filter, row) && (filter.group === undefined || groupOf(row) === filter.group),
    );
    for (const row of await selectByWords(host, credential.key.id, words, candidates, set)) {
      if (filter.view === "second_vote" && !(await needsSecondVote(host, row))) continue;
      if (filter.view === "mine" && !(await canApprove(host, approver, row, moment))) continue;
      const key = sortKey(filter, row);
      matches.push({ id: row.id, key });
      if (visit === undefined) continue;
      visit(row, key);
      visited += row.request.length + (row.effective?.length ?? 0);
      if (visited < MAX_VISITED) continue;
      visited = 0;
      await host.waitForReadSlot(credential.key.id);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < SLICE_SIZE) return { matches: matches.sort(byKey), isComplete: true };
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
  const history = await readHistory(host, row);
  return history !== null && findVotingBlock(host, row, approver, history, moment) === null;
}

type ApprovalHistory = Pick<VerifiedHistory, "requirement" | "approvals" | "edit"> | null;

/** Ledger facts about the approval of pending actions, keyed by action, with the version of the row. */
const histories = new WeakMap<CoreHost, Map<string, { version: string; history: ApprovalHistory }>>();

/**
 * Reads the ledger facts about the approval of an action. Reads them again only if the row has changed, because a list
 * of 10,000 actions would otherwise read all their entries each time. A vote verifies the action without this cache.
 */
async function readHistory(host: CoreHost, row: ActionRow): Promise<ApprovalHistory> {
  const cached = histories.get(host) ?? new Map();
  histories.set(host, cached);
  const version = `${row.updated_at} ${row.decision_seq}`;
  const entry = cached.get(row.id);
  if (entry?.version === version) return entry.history;
  const verified = await readVerifiedHistory(host.storage, row);
  const history =
    verified === null
      ? null
      : { requirement: verified.requirement, approvals: verified.approvals, edit: verified.edit };
  const [oldest] = cached.size < MAX_READ ? [] : cached.keys();
  if (oldest !== undefined) cached.delete(oldest);
  cached.delete(row.id);
  cached.set(row.id, { version, history });
  return history;
}

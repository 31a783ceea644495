/** Filters, searches and sorts the pending actions for the approvers' inbox. */
import { type Static, Type } from "@sinclair/typebox";
import { type CoreHost, invalidCursor } from "../../src/core.ts";
import { type Credential, decodeCursor } from "../../src/plugin.ts";
import type { ActionRow, ContainedText, PendingCursor } from "../../src/storage/index.ts";
import type { VoteMoment } from "./approver-plans.ts";
import { findContainedText, selectByWords, splitWords } from "./match-words.ts";
import type { PendingAction, PendingIndex, VotingInputs } from "./pending-index.ts";
import { findVotingBlock, type PendingApprover } from "./voting-capacity.ts";

/** Number of actions whose text is searched before decisions run. */
const SLICE = 200;
/** Number of actions in memory that are read before decisions run. */
const IN_MEMORY = 1000;

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

/** Whether the query has a filter or an order that the store's own list does not support. */
export function needsFullScan({ sort, ...filters }: PendingFilter): boolean {
  return sort === "oldest" || sort === "risk" || Object.values(filters).some((value) => value !== undefined);
}

/** Position of an action in the chosen order, which is ascending. */
export type SortKey = readonly [number, number, number];

interface Matches {
  /** Sorted in the chosen order. */
  matches: readonly PendingAction[];
  /** False if there are more pending actions than one request reads. */
  isComplete: boolean;
}

type Sortable = Pick<ActionRow, "decision_seq" | "expires_at" | "risk_level">;

export function sortKey(
  { sort = "deadline" }: PendingFilter,
  { decision_seq: seq, expires_at, risk_level }: Sortable,
): SortKey {
  if (sort === "newest") return [-seq, 0, 0];
  if (sort === "oldest") return [seq, 0, 0];
  const risk = sort === "risk" ? -RISKS.indexOf(risk_level as (typeof RISKS)[number]) : 0;
  return [risk, expires_at ?? 0, seq];
}

export function compareSortKeys(a: SortKey, b: SortKey): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}

/** Returns the cursor of an action. The cursor contains its order, because a position is valid only in that order. */
export function formatSortKey(filter: PendingFilter, row: Sortable): string {
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
  readPending: PendingIndex,
  credential: Credential,
  filter: PendingFilter,
  approver: PendingApprover = credential,
): Promise<Matches> {
  const { actions, isComplete, isBounded } = await readPending(credential);
  const moment = { ...(await host.snapshot()), now: host.clock() };
  const selected = actions.filter(createFieldTest(filter, moment.now));
  const found = await searchActions(host, credential, filter, selected, isBounded);
  const canApprove = filter.view === "mine" ? createApproverTest(host, approver, moment) : () => true;
  const matches: PendingAction[] = [];
  for await (const slice of inSlices(host, credential, found)) matches.push(...slice.filter(canApprove));
  if ((filter.sort ?? "deadline") !== "deadline")
    matches.sort((a, b) => compareSortKeys(sortKey(filter, a), sortKey(filter, b)));
  return { matches, isComplete };
}

/** Yields the actions in slices. Decisions run between two slices. */
export async function* inSlices(
  host: CoreHost,
  { key }: Credential,
  actions: readonly PendingAction[],
): AsyncIterable<readonly PendingAction[]> {
  for (let from = 0; from < actions.length; from += IN_MEMORY) {
    await host.waitForReadSlot(key.id);
    yield actions.slice(from, from + IN_MEMORY);
  }
}

type ActionTest = (action: PendingAction) => boolean;

function createFieldTest(filter: PendingFilter, now: number): ActionTest {
  const { view, group, agent_id, tool, operation, risk_level } = filter;
  return (action) =>
    (action.expires_at ?? 0) > now &&
    (group === undefined || action.group === group) &&
    (agent_id === undefined || action.agent_id === agent_id) &&
    (tool === undefined || action.tool === tool) &&
    (operation === undefined || action.operation === operation) &&
    (risk_level === undefined || action.risk_level === risk_level) &&
    (view !== "second_vote" || (action.hasApproval && (action.quorum ?? 1) > 1));
}

/** Returns a function that tests whether the approver can approve an action. Computes equal cases once. */
function createApproverTest(host: CoreHost, approver: PendingApprover, moment: VoteMoment): ActionTest {
  const known = new Map<string, boolean>();
  return ({ voting }) => {
    if (voting === null) return false;
    let answer = known.get(voting);
    if (answer === undefined) {
      const { action, ...history } = JSON.parse(voting) as VotingInputs;
      answer = findVotingBlock(host, action, approver, history, moment, null) === null;
      known.set(voting, answer);
    }
    return answer;
  };
}

/**
 * Returns those of the actions that contain the words of the filter.
 * @param isBounded whether this request may read all pending actions
 */
async function searchActions(
  host: CoreHost,
  credential: Credential,
  filter: PendingFilter,
  actions: readonly PendingAction[],
  isBounded: boolean,
): Promise<readonly PendingAction[]> {
  const words = splitWords(filter.q);
  if (words.length === 0) return actions;
  const { compiled: set } = await host.policies.current();
  // A group member's search must not take longer because of actions that the member cannot see.
  const mayNarrow = isBounded && !("within" in credential.visibility);
  const text = mayNarrow ? await findContainedText(host, words, set) : undefined;
  const found = new Set<string>();
  for await (const rows of text === undefined
    ? readById(host, credential, actions)
    : readContaining(host, credential, text))
    for (const { id } of await selectByWords(host, credential.key.id, words, rows, set)) found.add(id);
  return actions.filter(({ id }) => found.has(id));
}

async function* readById(
  host: CoreHost,
  { key }: Credential,
  actions: readonly PendingAction[],
): AsyncIterable<ActionRow[]> {
  for (let from = 0; from < actions.length; from += SLICE) {
    await host.waitForReadSlot(key.id);
    yield await host.storage.actionsById(actions.slice(from, from + SLICE).map(({ id }) => id));
  }
}

/** Reads the pending actions that contain the text. The store searches all of them. */
async function* readContaining(
  host: CoreHost,
  { key, visibility }: Credential,
  text: ContainedText,
): AsyncIterable<ActionRow[]> {
  let after: PendingCursor = { expires_at: host.clock(), decision_seq: Number.MAX_SAFE_INTEGER };
  for (;;) {
    await host.waitForReadSlot(key.id);
    const rows = await host.storage.pendingActions(visibility, after, SLICE, text);
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < SLICE) return;
    after = { expires_at: last.expires_at ?? 0, decision_seq: last.decision_seq };
  }
}

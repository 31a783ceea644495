/**
 * Measures how people approve: the number of requests, the votes, and the time until a vote, for each approver and
 * rule.
 */
import { Type, type Static } from "@sinclair/typebox";
import {
  type ApprovalEntry,
  canSee,
  type CoreHost,
  type DecisionEntry,
  decodeEntry,
  findFirstEntry,
  parseRfc3339,
} from "../../src/core.ts";
import { type Credential, defineRoute, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { readInstant } from "./calendar.ts";

const DAY = 24 * 3_600_000;
const DEFAULT_DAYS = 30;
/** Maximum ledger entries that one request reads. */
const MAX_ENTRIES = 200_000;
const PAGE_SIZE = 500;
/** A vote that is cast within this time after the submission counts as fast. Milliseconds. */
const FAST_MS = 3000;

const Instant = (description: string) => Type.Optional(Type.String({ format: "date-time", description }));
const Query = Type.Object(
  {
    since: Instant(`Entries recorded at or after this time. Default: ${DEFAULT_DAYS} days before \`until\`.`),
    until: Instant("Entries recorded before this time. Default: now."),
  },
  { additionalProperties: false },
);

const Count = Type.Integer({ minimum: 0 });
const Name = (description: string) => Type.Union([Type.String(), Type.Null()], { description });
const Rate = (description: string) => Type.Number({ minimum: 0, description });
const RULE = { policy: Name("Null if no policy decided."), rule: Name("Null if no rule decided.") };

const Answer = Type.Object(
  {
    since: Type.String({ format: "date-time" }),
    until: Type.String({ format: "date-time" }),
    rules: Type.Array(
      Type.Object(
        { ...RULE, requests: Count, requests_per_day: Rate("Requests that required approval, on average per day.") },
        { additionalProperties: false },
      ),
      { description: "Requests that required approval, by the rule that decided. Most requests first." },
    ),
    approvers: Type.Array(
      Type.Object(
        {
          approver: Type.String({ description: "Principal: `user:<id>` or `key:<id>`." }),
          ...RULE,
          votes: Count,
          approvals: Count,
          votes_per_day: Rate("Average of the range."),
          approval_rate: Rate("Share of approvals among the votes."),
          median_ms: Type.Integer({ minimum: 0, description: "Median time from submission to vote." }),
          fast_rate: Rate("Share of votes within three seconds of the submission."),
        },
        { additionalProperties: false },
      ),
      { description: "Votes in the range, by approver and by the rule that decided. Most votes first." },
    ),
  },
  { title: "Oversight", additionalProperties: false },
);
type Answer = Static<typeof Answer>;

export function oversightRoute(host: CoreHost) {
  return defineRoute({
    method: "GET",
    path: "/v1/analytics/oversight",
    tag: "analytics",
    summary: "Measure approvals by approver and rule",
    description: `Counts requests that required approval, and votes, from the ledger. Counts only actions that this key may see. Reads at most ${MAX_ENTRIES / 1000},000 entries; rejects a longer range.`,
    scope: "analytics:read",
    query: Query,
    responses: { 200: { description: "The figures.", schema: Answer } },
    errors: ["INVALID_RANGE"],
    handle: async ({ query, credential }) => ({ status: 200, json: await measure(host, query, credential) }),
  });
}

/** A vote, with the rule that required it. */
interface MeasuredVote {
  approver: string;
  policy: string | null;
  rule: string | null;
  approve: boolean;
  /** Time from the submission to the vote. Milliseconds. */
  waitMs: number;
}

async function measure(host: CoreHost, query: Static<typeof Query>, { visibility }: Credential): Promise<Answer> {
  // Include entries of the current millisecond.
  const until = readInstant(query.until) ?? host.clock() + 1;
  const since = readInstant(query.since) ?? until - DEFAULT_DAYS * DAY;
  if (since >= until)
    throw invalidRangeRefusal(`since (${toRfc3339(since)}) must be earlier than until (${toRfc3339(until)})`);
  const { requests, votes } = await readEntries(host, since, until);
  const days = (until - since) / DAY;
  const measured = await findRules(host, votes, visibility);
  return {
    since: toRfc3339(since),
    until: toRfc3339(until),
    rules: groupByKey(
      requests.filter((entry) =>
        canSee(visibility, {
          agent_id: entry.agent_id,
          submitted_by: entry.submitted_by.key_id,
          tool: entry.tool,
        }),
      ),
      ({ decision: { policy, rule } }) => [policy, rule],
    ).map((group) => ({
      policy: group[0]?.decision.policy ?? null,
      rule: group[0]?.decision.rule ?? null,
      requests: group.length,
      requests_per_day: round(group.length / days),
    })),
    approvers: groupByKey(measured, ({ approver, policy, rule }) => [approver, policy, rule]).map((group) =>
      describeVotes(group, days),
    ),
  };
}

function describeVotes(group: readonly MeasuredVote[], days: number): Answer["approvers"][number] {
  const [{ approver, policy, rule }] = group as [MeasuredVote];
  const approvals = group.filter(({ approve }) => approve).length;
  return {
    approver,
    policy,
    rule,
    votes: group.length,
    approvals,
    votes_per_day: round(group.length / days),
    approval_rate: round(approvals / group.length),
    median_ms: Math.round(median(group.map(({ waitMs }) => waitMs))),
    fast_rate: round(group.filter(({ waitMs }) => waitMs < FAST_MS).length / group.length),
  };
}

/** Reads the range in pages, so that decisions run in between. Throws INVALID_RANGE if it has too many entries. */
async function readEntries(
  host: CoreHost,
  since: number,
  until: number,
): Promise<{ requests: DecisionEntry[]; votes: ApprovalEntry[] }> {
  const { size } = await host.ledger.head();
  const [first, end] = [
    await findFirstEntry(host.storage, since, size),
    await findFirstEntry(host.storage, until, size),
  ];
  if (end - first > MAX_ENTRIES)
    throw invalidRangeRefusal(
      `the range has ${end - first} entries, and at most ${MAX_ENTRIES} are read; choose a shorter one`,
    );
  const requests: DecisionEntry[] = [];
  const votes: ApprovalEntry[] = [];
  for (let from = first; from < end; from += PAGE_SIZE) {
    await host.waitForReadSlot();
    for (const { type, bytes } of await host.storage.entries(from, Math.min(from + PAGE_SIZE, end))) {
      if (type === "decision") {
        const entry = decodeEntry<DecisionEntry>(bytes);
        if (entry.status === "pending_approval") requests.push(entry);
      } else if (type === "approval") {
        const entry = decodeEntry<ApprovalEntry>(bytes);
        if (entry.verdict === "approve" || entry.verdict === "deny") votes.push(entry);
      }
    }
  }
  return { requests, votes };
}

/** Adds the rule and the submission time of each vote's action, and removes votes that the credential cannot see. */
async function findRules(
  host: CoreHost,
  votes: readonly ApprovalEntry[],
  visibility: Credential["visibility"],
): Promise<MeasuredVote[]> {
  const actions = new Map<string, Pick<ActionRow, "policy" | "rule" | "created_at">>();
  const ids = [...new Set(votes.map(({ action_id }) => action_id))];
  for (let from = 0; from < ids.length; from += PAGE_SIZE) {
    await host.waitForReadSlot();
    for (const row of await host.storage.actionsById(ids.slice(from, from + PAGE_SIZE)))
      if (canSee(visibility, row))
        actions.set(row.id, { policy: row.policy, rule: row.rule, created_at: row.created_at });
  }
  return votes.flatMap(({ action_id, at, by, verdict }) => {
    const action = actions.get(action_id);
    if (action === undefined || by === null) return [];
    const waitMs = Math.max(0, (parseRfc3339(at) ?? 0) - action.created_at);
    return { approver: by.principal, policy: action.policy, rule: action.rule, approve: verdict === "approve", waitMs };
  });
}

/** Groups items by the names that `key` returns. Sorts the groups by size, then by name. */
function groupByKey<Item>(items: readonly Item[], key: (item: Item) => readonly (string | null)[]): Item[][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const name = JSON.stringify(key(item));
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [item]);
    else group.push(item);
  }
  return [...groups].sort(([a, x], [b, y]) => y.length - x.length || (a < b ? -1 : 1)).map(([, group]) => group);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1] ?? 0, sorted[sorted.length >> 1] ?? 0];
  return (low + high) / 2;
}

const round = (value: number): number => Math.round(value * 1000) / 1000;

function invalidRangeRefusal(detail: string): Refusal {
  return new Refusal("INVALID_RANGE", detail, { errors: [{ parameter: "since", detail: "choose a later time" }] });
}

/**
 * Counts the actions of a time range by status, decision, agent, tool and rule, and measures the time until answers.
 */
import { Type, type Static, type TInteger, type TString } from "@sinclair/typebox";
import { ACTION_STATUSES, type CoreHost, defineCorePlugin, intersectLimits, type Visibility } from "../../src/core.ts";
import { type Credential, defineRoute, Refusal, type Reply, toRfc3339 } from "../../src/plugin.ts";
import type { ActionCounts } from "../../src/storage/index.ts";
import { findTimeZone, intervalBoundaries, type Interval, readInstant } from "./calendar.ts";
import { oversightRoute } from "./oversight.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MOST_INTERVALS = 1000;
/** Maximum number of items in a list. The remaining items are summed up. */
const MAX_LISTED = 100;
const EFFECTS = ["allow", "deny", "require_approval"] as const;

const Query = Type.Object(
  {
    since: Type.Optional(
      Type.String({
        format: "date-time",
        description: "Start of the range, inclusive. Default: one day before `until`.",
      }),
    ),
    until: Type.Optional(
      Type.String({ format: "date-time", description: "End of the range, exclusive. Default: the current time." }),
    ),
    interval: Type.Optional(
      Type.Union(
        (["hour", "day", "week", "month"] as const).map((name) => Type.Literal(name)),
        { description: "Interval of the series. Weeks begin on Monday. Default: chosen by the length of the range." },
      ),
    ),
    time_zone: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        examples: ["Europe/Berlin"],
        description: "IANA name of the time zone in which days, weeks and months begin. Default: UTC.",
      }),
    ),
    agent_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 256, description: "Counts only actions of this agent." }),
    ),
  },
  { additionalProperties: false },
);
type Query = Static<typeof Query>;

const Count = Type.Integer({ minimum: 0 });
const Named = <Name extends string>(name: Name) =>
  Type.Object({ [name]: Type.String(), count: Count } as Record<Name, TString> & { count: TInteger }, {
    additionalProperties: false,
  });
const Counts = <Name extends string>(names: readonly Name[]) =>
  Type.Object(Object.fromEntries(names.map((name) => [name, Count])) as Record<Name, TInteger>, {
    additionalProperties: false,
  });
const Statuses = Counts(ACTION_STATUSES);
const Decisions = Counts(EFFECTS);
const Time = Type.String({ format: "date-time" });
const NullableString = Type.Union([Type.String(), Type.Null()]);
const Wait = (description: string) => Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], { description });

const Answer = Type.Object(
  {
    since: Time,
    until: Time,
    interval: Type.String(),
    time_zone: Type.String(),
    total: Count,
    by_status: Statuses,
    by_decision: Decisions,
    by_tool: Type.Array(Named("tool"), { description: `The ${MAX_LISTED} most frequent.` }),
    by_agent: Type.Array(Named("agent_id"), { description: `The ${MAX_LISTED} most frequent.` }),
    by_rule: Type.Array(
      Type.Object({ policy: NullableString, rule: NullableString, count: Count }, { additionalProperties: false }),
      { description: `The ${MAX_LISTED} most frequent. A null name means that no policy decided.` },
    ),
    others: Type.Object(
      { tools: Count, agents: Count, rules: Count },
      { additionalProperties: false, description: "Number of actions of the items that are not listed." },
    ),
    approvals: Type.Object(
      {
        decided: Type.Integer({ minimum: 0, description: "Actions that approvers or machine reviewers settled." }),
        approved: Type.Integer({ minimum: 0, description: "Those that were approved." }),
        rejected: Type.Integer({ minimum: 0, description: "Those that were rejected." }),
        p50_ms: Wait("Median time."),
        p95_ms: Wait("95th percentile of the time."),
      },
      {
        additionalProperties: false,
        description:
          "Answers to actions that required approval, and the time from the submission to the answer. Expired and cancelled actions are left out.",
      },
    ),
    series: Type.Array(
      Type.Object(
        { start: Time, end: Time, total: Count, by_status: Statuses, by_decision: Decisions },
        { additionalProperties: false },
      ),
      {
        description:
          "One item for each interval, including empty ones. The first and the last interval are cut to the range.",
      },
    ),
  },
  { title: "Analytics", additionalProperties: false },
);

export default defineCorePlugin({
  name: "analytics",
  setup: (host) => ({ routes: routes(host) }),
});

function routes(host: CoreHost) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/analytics",
      tag: "analytics",
      summary: "Count actions over time",
      scope: "analytics:read",
      query: Query,
      description:
        "Counts the actions that were created in the range and that this key may see, by their current state.",
      responses: { 200: { description: "The counts.", schema: Answer } },
      errors: ["INVALID_RANGE", "AGENT_MISMATCH"],
      handle: ({ query, credential }) => analytics(host, query, credential),
    }),
    oversightRoute(host),
  ];
}

async function analytics(host: CoreHost, query: Query, { visibility }: Credential): Promise<Reply> {
  // Include actions that were decided in the current millisecond.
  const until = readInstant(query.until) ?? host.clock() + 1;
  const since = readInstant(query.since) ?? until - DAY;
  if (since >= until)
    throw new Refusal("INVALID_RANGE", `since (${toRfc3339(since)}) must be earlier than until (${toRfc3339(until)})`, {
      errors: [{ parameter: "since", detail: "a time before `until`" }],
    });
  const zone = findTimeZone(query.time_zone ?? "UTC");
  if (zone === null) {
    throw new Refusal(
      "VALIDATION_FAILED",
      `"${query.time_zone ?? ""}" is not a time zone known here; use an IANA name such as Europe/Berlin`,
      { errors: [{ parameter: "time_zone", detail: "an IANA name such as Europe/Berlin" }] },
    );
  }
  const interval = query.interval ?? intervalFor(until - since);
  const boundaries = intervalBoundaries(since, until, interval, zone, MOST_INTERVALS);
  if (boundaries === null) {
    throw new Refusal(
      "INVALID_RANGE",
      `the range has more than ${MOST_INTERVALS} intervals of one ${interval}; choose a longer interval or a shorter range`,
      { errors: [{ parameter: "interval", detail: `at most ${MOST_INTERVALS} intervals` }] },
    );
  }
  const counts = await host.storage.analytics({ visibility: narrowToAgent(visibility, query.agent_id), boundaries });
  const [tools, agents, rules] = [
    selectTop(counts.tool, (c) => c.value),
    selectTop(counts.agent, (c) => c.value),
    selectTop(counts.rule, (c) => `${c.policy ?? ""}/${c.rule ?? ""}`),
  ];
  return {
    status: 200,
    json: {
      since: toRfc3339(since),
      until: toRfc3339(until),
      interval,
      time_zone: zone.name,
      total: sum(counts.decision),
      by_status: fillCounts(
        ACTION_STATUSES,
        Object.fromEntries(counts.status.map(({ value, count }) => [value, count])),
      ),
      by_decision: fillCounts(EFFECTS, Object.fromEntries(counts.decision.map(({ value, count }) => [value, count]))),
      by_tool: tools.listed.map(({ value, count }) => ({ tool: value, count })),
      by_agent: agents.listed.map(({ value, count }) => ({ agent_id: value, count })),
      by_rule: rules.listed,
      others: { tools: tools.others, agents: agents.others, rules: rules.others },
      approvals: describeAnswers(counts.waits),
      series: seriesOf(counts, boundaries),
    },
  };
}

function describeAnswers({ count, approved, p50, p95 }: ActionCounts["waits"]): Static<typeof Answer>["approvals"] {
  return { decided: count, approved, rejected: count - approved, p50_ms: p50, p95_ms: p95 };
}

/**
 * Narrows the visibility to `agent_id`, if given. Throws AGENT_MISMATCH if the key is bound to another agent, and
 * VALIDATION_FAILED if the key sees only the actions that it submitted.
 */
function narrowToAgent(visibility: Visibility, agent_id: string | undefined): Visibility {
  if (agent_id === undefined) return visibility;
  if ("all" in visibility) return { agent_id };
  if ("within" in visibility)
    return {
      within: visibility.within.map((limits) => intersectLimits({ agents: null, tools: null, agent_id }, limits)),
    };
  if ("agent_id" in visibility) {
    if (visibility.agent_id === agent_id) return visibility;
    throw new Refusal("AGENT_MISMATCH", `the key is bound to "${visibility.agent_id}" and does not see "${agent_id}"`);
  }
  throw new Refusal("VALIDATION_FAILED", "this key sees only what it submitted; omit agent_id", {
    errors: [{ parameter: "agent_id", detail: "needs actions:read" }],
  });
}

function seriesOf(counts: ActionCounts, boundaries: readonly number[]): Static<typeof Answer>["series"] {
  return counts.series.map(({ status, decision }, i) => ({
    start: toRfc3339(boundaries[i] as number),
    end: toRfc3339(boundaries[i + 1] as number),
    total: Object.values(decision).reduce((a, b) => a + b, 0),
    by_status: fillCounts(ACTION_STATUSES, status),
    by_decision: fillCounts(EFFECTS, decision),
  }));
}

function intervalFor(range: number): Interval {
  if (range <= 2 * DAY) return "hour";
  if (range <= 92 * DAY) return "day";
  return range <= 731 * DAY ? "week" : "month";
}

function fillCounts<K extends string>(names: readonly K[], counts: Partial<Record<string, number>>): Record<K, number> {
  return Object.fromEntries(names.map((name) => [name, counts[name] ?? 0])) as Record<K, number>;
}

const sum = (items: readonly { count: number }[]): number => items.reduce((total, { count }) => total + count, 0);

/** Returns the most frequent items. Sorts equally frequent items by name. */
function selectTop<T extends { count: number }>(
  items: readonly T[],
  name: (item: T) => string,
): { listed: T[]; others: number } {
  const ordered = [...items].sort((a, b) => b.count - a.count || (name(a) < name(b) ? -1 : 1));
  return { listed: ordered.slice(0, MAX_LISTED), others: sum(ordered.slice(MAX_LISTED)) };
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    analytics: typeof routes;
  }
}

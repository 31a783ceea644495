/** HTTP schemas of backtests: the range of past decisions, and the report. */
import { Type } from "@sinclair/typebox";
import { parseRfc3339, Refusal, toRfc3339 } from "../../../src/plugin.ts";
import type { BacktestRange, BacktestReport } from "./report.ts";

const WEEK = 7 * 86_400_000;

export const BacktestRangeParams = {
  since: Type.Optional(
    Type.String({
      format: "date-time",
      description: "Start of the range, inclusive. Default: one week before `until`.",
    }),
  ),
  until: Type.Optional(
    Type.String({ format: "date-time", description: "End of the range, exclusive. Default: the current time." }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description: "Maximum number of decisions in a range, newest first; 10,000 when absent.",
    }),
  ),
  before: Type.Optional(
    Type.Integer({ minimum: 0, description: "`next` of an earlier response: continues where it ended." }),
  ),
  examples: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 20, description: "Examples of each kind of flip; 3 when absent." }),
  ),
};

interface SpanQuery {
  since?: string;
  until?: string;
  limit?: number;
  before?: number;
  examples?: number;
}

type Span = Pick<BacktestRange, "since" | "until" | "limit" | "examples" | "before_seq">;

/** Parses the range of a query. Throws INVALID_RANGE. */
export function parseBacktestRange(query: SpanQuery, now: number): Span {
  // Include decisions of the current millisecond.
  const until = (query.until === undefined ? null : parseRfc3339(query.until)) ?? now + 1;
  const since = (query.since === undefined ? null : parseRfc3339(query.since)) ?? until - WEEK;
  if (since >= until)
    throw new Refusal("INVALID_RANGE", `since (${toRfc3339(since)}) must be before until (${toRfc3339(until)})`, {
      errors: [{ detail: "`since` must be a time before `until`" }],
    });
  return {
    since,
    until,
    limit: query.limit ?? 10_000,
    examples: query.examples ?? 3,
    ...(query.before === undefined ? {} : { before_seq: query.before }),
  };
}

export function renderBacktest(span: Span, report: BacktestReport): object {
  return { since: toRfc3339(span.since), until: toRfc3339(span.until), ...report };
}

const OutcomeOf = Type.Object(
  {
    effect: Type.String(),
    policy: Type.Union([Type.String(), Type.Null()]),
    rule: Type.Union([Type.String(), Type.Null()]),
  },
  { additionalProperties: false },
);
const Example = Type.Object(
  {
    action_id: Type.String(),
    hash: Type.String(),
    at: Type.String({ format: "date-time" }),
    agent_id: Type.String(),
    tool: Type.String(),
    operation: Type.String(),
  },
  { additionalProperties: false },
);
/** Members of a report that counts changed decisions. */
export const FlipFields = {
  since: Type.String({ format: "date-time" }),
  until: Type.String({ format: "date-time" }),
  evaluated: Type.Integer({ description: "Number of replayed decisions." }),
  flipped: Type.Integer({ description: "Number of decisions with another effect." }),
  otherwise: Type.Integer({
    description: "Number of decisions with the same effect by another rule, or with other approval terms.",
  }),
  erased: Type.Integer({
    description: "Number of decisions that cannot be replayed because their requests were erased.",
  }),
  unrecorded: Type.Integer({
    description:
      "Number of decisions that cannot be replayed because these policies read past actions (`history`), facts or attributes that the decisions did not read.",
  }),
  altered: Type.Integer({
    description:
      "Number of decisions that cannot be replayed because their rows in the store were altered; `assent audit` lists them.",
  }),
  flips: Type.Array(
    Type.Object(
      { from: OutcomeOf, to: OutcomeOf, count: Type.Integer(), examples: Type.Array(Example) },
      { additionalProperties: false },
    ),
    { description: "Flips, grouped by old and new outcome, most frequent first." },
  ),
  unlisted: Type.Integer({ description: "Number of flips in groups that are not listed." }),
  counted: Type.Array(
    Type.Object(
      { policy: Type.String(), limit: Type.String(), decisions: Type.Integer() },
      { additionalProperties: false },
    ),
    {
      description:
        "Limits without recorded usage, because they were not active under this name. Their usage was counted from the decisions of this report, starting from zero.",
    },
  ),
  next: Type.Union([Type.Integer(), Type.Null()], {
    description:
      "Value of `before` to continue with, if the limit or the time limit of a request was reached; null if the range is complete.",
  }),
};

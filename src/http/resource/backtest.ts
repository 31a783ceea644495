/** Which past decisions are looked at, and what is told of them, over HTTP. */
import { Type } from "@sinclair/typebox";
import { Refusal } from "../../contract/errors.ts";
import { parseRfc3339, toRfc3339 } from "../../domain/time.ts";
import type { BacktestRange, BacktestReport } from "../../contract/backtest.ts";

const WEEK = 7 * 86_400_000;

export const SpanFields = {
  since: Type.Optional(
    Type.String({
      format: "date-time",
      description: "A range: actions created at or after; a week before `until` when absent.",
    }),
  ),
  until: Type.Optional(
    Type.String({ format: "date-time", description: "A range: actions created before; this moment when absent." }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description: "Most decisions of a range, newest first; 10,000 when absent.",
    }),
  ),
  before: Type.Optional(
    Type.Integer({ minimum: 0, description: "`next` of an earlier answer: goes on where it ended." }),
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

export type Span = Pick<BacktestRange, "since" | "until" | "limit" | "examples" | "before_seq">;

/** Throws INVALID_RANGE. */
export function parseSpan(query: SpanQuery, now: number): Span {
  // What was decided in this very millisecond counts too.
  const until = (query.until === undefined ? null : parseRfc3339(query.until)) ?? now + 1;
  const since = (query.since === undefined ? null : parseRfc3339(query.since)) ?? until - WEEK;
  if (since >= until)
    throw new Refusal("INVALID_RANGE", `since (${toRfc3339(since)}) must lie before until (${toRfc3339(until)})`, {
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
/** What would flip. */
export const FlipFields = {
  since: Type.String({ format: "date-time" }),
  until: Type.String({ format: "date-time" }),
  evaluated: Type.Integer({ description: "Decisions that were made again." }),
  flipped: Type.Integer({ description: "Those with another effect." }),
  otherwise: Type.Integer({
    description: "Those with the same effect by another rule, or on other terms of approval.",
  }),
  erased: Type.Integer({ description: "Decisions of the range that cannot be made again: what was asked was erased." }),
  altered: Type.Integer({
    description:
      "Decisions of the range whose row in the store cannot be read as what the service wrote; `assent audit` names them.",
  }),
  flips: Type.Array(
    Type.Object(
      { from: OutcomeOf, to: OutcomeOf, count: Type.Integer(), examples: Type.Array(Example) },
      { additionalProperties: false },
    ),
    { description: "Kinds of flips, most frequent first." },
  ),
  unlisted: Type.Integer({ description: "Flips of kinds beyond those listed." }),
  counted: Type.Array(
    Type.Object(
      { policy: Type.String(), limit: Type.String(), decisions: Type.Integer() },
      { additionalProperties: false },
    ),
    {
      description:
        "Limits without a recorded use, because they were not in force under this name: counted from the decisions of this answer, as if nothing was used before the first.",
    },
  ),
  next: Type.Union([Type.Integer(), Type.Null()], {
    description:
      "Where to go on (`before`) when the limit, or the time that one request may take, ended it; null when the range is done.",
  }),
};

export const BacktestResponse = Type.Object(
  {
    policy_set: Type.Union([Type.String(), Type.Null()], {
      description: "Digest of the set that the decisions were made with.",
    }),
    ...FlipFields,
  },
  { additionalProperties: false },
);

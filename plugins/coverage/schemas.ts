/** Requests and responses about coverage. */
import { PAGE_QUERY, type Static, Type } from "../../src/plugin.ts";
import { CoverageStatement } from "./coverage-statement.ts";

const closed = { additionalProperties: false } as const;
const Time = Type.String({ format: "date-time" });
const Nullable = <T extends ReturnType<typeof Type.String>>(schema: T) => Type.Union([schema, Type.Null()]);

const Execution = Type.Object(
  {
    seq: Type.Integer({ description: "Sequence number of the ledger entry." }),
    action_id: Type.String(),
    phase: Type.Union([Type.Literal("start"), Type.Literal("no_result"), Type.Literal("result")]),
    at: Time,
    success: Type.Union([Type.Boolean(), Type.Null()], { description: "As reported; null unless it is a result." }),
    tool: Type.String(),
    operation: Type.String(),
    params: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()], {
      description: "The parameters that ran; null if they were erased.",
    }),
  },
  { title: "Execution", ...closed },
);

export const ExecutionQuery = Type.Object(
  {
    since: Type.String({ format: "date-time", description: "Start of the range of entry times, inclusive." }),
    until: Type.String({ format: "date-time", description: "End of the range of entry times, exclusive." }),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, default: 500, description: "Maximum number of entries on a page." }),
    ),
    cursor: Type.Optional(Type.String({ maxLength: 256, description: "`next_cursor` of the previous page." })),
  },
  closed,
);

export const ExecutionList = Type.Object(
  { executions: Type.Array(Execution), next_cursor: Nullable(Type.String()) },
  closed,
);

export const StatementRecord = Type.Object(
  {
    ...CoverageStatement.properties,
    seq: Type.Integer({ description: "Sequence number of the ledger entry that records the statement." }),
    hash: Type.String({ description: "Leaf hash of the entry." }),
    at: Time,
    by: Type.String({ description: "Principal that ran the comparison." }),
  },
  { title: "CoverageStatement", ...closed },
);
export type StatementRecord = Static<typeof StatementRecord>;

const { limit, cursor } = PAGE_QUERY;
export const StatementQuery = Type.Object({ limit, cursor }, closed);
export const StatementList = Type.Object(
  { statements: Type.Array(StatementRecord), next_cursor: Nullable(Type.String()) },
  closed,
);

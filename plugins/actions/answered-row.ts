/** An action's row in the answer of the process that leads, as far as the one that asked goes by its form. */
import { Type } from "@sinclair/typebox";
import { ACTION_STATUSES } from "../../src/domain/actions.ts";
import { Nullable } from "./schemas.ts";

/** Of a row that the submission made, what the one who sent it has is left out. */
export const DecidedRow = Type.Object({
  id: Type.String({ format: "uuid" }),
  submitted_by: Type.String(),
  status: Type.Union(ACTION_STATUSES.map((status) => Type.Literal(status))),
  decision: Type.Union([Type.Literal("allow"), Type.Literal("deny"), Type.Literal("require_approval")]),
  decision_seq: Type.Integer(),
  decision_hash: Type.String({ pattern: "^[0-9a-f]{64}$" }),
  quorum: Nullable(Type.Integer()),
  expires_at: Nullable(Type.Integer()),
  approved_until: Nullable(Type.Integer()),
  created_at: Type.Integer(),
  updated_at: Type.Integer(),
});

export const WholeRow = Type.Composite([
  DecidedRow,
  Type.Object({
    agent_id: Type.String(),
    tool: Type.String(),
    operation: Type.String(),
    request: Type.String(),
    request_hash: Type.String({ pattern: "^[0-9a-f]{64}$" }),
    meta: Nullable(Type.String()),
    reason: Type.String(),
    reason_code: Type.String(),
    started_by: Nullable(Type.String()),
    result: Nullable(Type.String()),
    erased_at: Type.Null(),
  }),
]);

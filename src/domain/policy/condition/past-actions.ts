/** Binds the past actions of a policy to the variable `history` of its conditions. */
import { celMap, type CelInput } from "@bufbuild/cel";
import { reflect } from "@bufbuild/protobuf/reflect";
import { timestampFromMs, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { parseRfc3339 } from "../../time.ts";
import type { HistoryFact, HistoryFault, PastAction } from "../policy-types.ts";
import { CelFailure } from "./cel-failure.ts";
import { HISTORY_VARIABLE } from "./cel-history.ts";
import { toCelList } from "./cel-lists.ts";
import type { Bindings } from "./cel-plan.ts";
import { toCelValue } from "./cel-values.ts";

/** Messages of faults. They contain no values of requests, because reasons are stored forever. */
const FAULT_MESSAGES: Readonly<Record<HistoryFault | "unknown", string>> = {
  no_session: "the history is of a session, and the request has no session token",
  no_value: "the owner of the history could not be evaluated",
  too_large: "the members that conditions read of past actions are too large",
  too_many: "the history has more actions than its max",
  unknown: "the history is not known",
};

/** Returns true for the messages of failures that `bindHistory` reports. */
export const isHistoryFaultMessage = (message: string): boolean => Object.values(FAULT_MESSAGES).includes(message);

/**
 * Adds the variable `history`. If the history is unknown, the variable is a failure, so that every condition that reads
 * it fails.
 */
export function bindHistory(
  bindings: Bindings,
  facts: readonly HistoryFact[],
  { policy, basis }: Pick<HistoryFact, "policy" | "basis">,
): void {
  const fact = facts.find((fact) => fact.policy === policy && fact.basis === basis);
  const fault = fact === undefined ? "unknown" : fact.fault;
  const value =
    fault === null ? toCelList((fact as HistoryFact).actions.map(toElement)) : new CelFailure(FAULT_MESSAGES[fault]);
  bindings[HISTORY_VARIABLE] = value as CelInput;
}

function toElement({
  agent,
  at,
  context,
  may_have_run,
  operation,
  params,
  result,
  status,
  tool,
}: PastAction): CelInput {
  const ms = parseRfc3339(at);
  // Omit `params`, `context` and `result` of an erased action, so that a condition that reads one of them fails.
  return celMap(
    new Map<string, CelInput>([
      ["agent", agent],
      ["at", ms === null ? null : reflect(TimestampSchema, timestampFromMs(ms))],
      ...(context === null ? [] : [["context", toCelValue(context)] as const]),
      ["may_have_run", may_have_run],
      ["operation", operation],
      ...(params === null ? [] : [["params", toCelValue(params)] as const]),
      ...(result == null ? [] : [["result", toCelValue(result)] as const]),
      ["status", status],
      ["tool", tool],
    ]),
  );
}

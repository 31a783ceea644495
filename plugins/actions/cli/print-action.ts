/** Prints an action for people, with the request in the form that approvers see. */
import type { ActionRecord } from "../../../clients/typescript/index.ts";
import {
  actionExitCode,
  colourText,
  displayPrincipal,
  EXIT_CODES,
  type JsonObject,
  type Output,
  printJson,
  requestSections,
  toPrintable,
} from "../../../src/command.ts";

type Rejection = NonNullable<ActionRecord["rejection"]>;

/**
 * Prints an action with its request.
 * @param isComplete whether to print all lines of the request instead of collapsing it
 * @example
 * printAction(io, await service.action(id), values.json === true)
 */
export function printAction(io: Output, action: ActionRecord, json: boolean, isComplete = false): void {
  if (json) {
    printJson(io, action);
    return;
  }
  const tint = { [EXIT_CODES.ok]: "green", [EXIT_CODES.pending]: "yellow", [EXIT_CODES.denied]: "red" }[
    actionExitCode(action)
  ] as "green" | "yellow" | "red";
  const lines = [
    `${colourText(io, tint, action.status)}  ${toPrintable(action.tool)} ${toPrintable(action.operation)} by ${toPrintable(action.agent_id)}`,
    ...(typeof action.preview === "string" ? [`  request   ${toPrintable(action.preview)}`] : []),
    `  id        ${action.id}`,
    `  reason    ${toPrintable(action.reason)}`,
    `  decided   ${action.decision}${action.policy === null ? "" : ` by ${toPrintable(action.policy)} / ${toPrintable(action.rule ?? "")}`}`,
    ...(action.pins ?? []).map(
      ({ path, value, current, state }) =>
        `  fact      ${path}: ${toPrintable(JSON.stringify(value))}${state === "changed" ? ` (now ${toPrintable(JSON.stringify(current))})` : state === "unreadable" ? " (cannot be read now)" : ""}`,
    ),
    ...(action.alternative === undefined ? [] : [`  instead   ${toPrintable(action.alternative.text)}`]),
    ...(action.unusual ?? []).map((sentence) => `  unusual   ${sentence}`),
    ...(action.erased_at === null ? requestLines(action, isComplete) : [`  erased    ${action.erased_at}`]),
    ...(action.approvals_needed === null
      ? []
      : [`  approvals ${action.approvals.filter(({ approve }) => approve).length} of ${action.approvals_needed}`]),
    ...action.approvals.map(
      ({ approve, approver, reason }) =>
        `  vote      ${approve ? "approved" : "rejected"} by ${nameIn(action, approver)}${reason === null ? "" : `: ${toPrintable(reason)}`}`,
    ),
    ...(action.proposed === null
      ? []
      : [
          `  changed   by ${nameIn(action, action.proposed.edited_by)}; proposed: ${toPrintable(JSON.stringify(action.proposed.params))}`,
        ]),
    ...action.questions.flatMap(({ number, asked_by, question, answer }) => [
      `  question ${number} by ${nameIn(action, asked_by)}: ${toPrintable(question)}`,
      answer === null ? "  answer    none so far" : `  answer    ${toPrintable(answer)}`,
    ]),
    ...(action.grant === null ? [] : [`  grant     ${action.grant}`]),
    ...(action.denied_by === null ? [] : [`  denied by ${action.denied_by.replace("_", " ")}`]),
    ...(action.rejection === null ? [] : rejectionLines(action.rejection, nameIn(action, action.rejection.approver))),
    ...(action.status === "pending_approval" && action.expires_at !== null ? [`  expires   ${action.expires_at}`] : []),
    ...(action.status === "approved" && action.approved_until !== null ? [`  until     ${action.approved_until}`] : []),
    ...(typeof action.result?.error === "string" ? [`  error     ${toPrintable(action.result.error)}`] : []),
    `  record    ${action.decision_hash}`,
  ];
  for (const line of lines) io.out(line);
}

/** Renders the request in the form that approvers see, shortened unless `isComplete`. */
function requestLines({ params, context, shown_first = [] }: ActionRecord, isComplete: boolean): string[] {
  const request = { params: params as JsonObject, context: context as JsonObject, shown_first };
  return requestSections(request, { isComplete }).flatMap(([name, lines]) => [
    `  ${name.toLowerCase()}`,
    ...lines.map((line) => `    ${line}`),
  ]);
}

/** Returns the name of a person or key that the record mentions. */
export function nameIn({ names = {} }: ActionRecord, principal: string): string {
  const name = Object.hasOwn(names, principal) ? (names[principal] ?? null) : null;
  return toPrintable(displayPrincipal(principal, name));
}

function rejectionLines({ action_id, reason, rejected_at, holds_until }: Rejection, approver: string): string[] {
  return [
    `  rejected  by ${approver} at ${rejected_at}${reason === null ? "" : `: ${toPrintable(reason)}`}`,
    `  rejection ${action_id}, ${holds_until === null ? "the same request can be submitted again" : `refuses the same request until ${holds_until}`}`,
  ];
}

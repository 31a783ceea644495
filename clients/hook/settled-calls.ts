/**
 * Decides whether the hook may tell the host to run a call without the host's own prompt. Only a decision about this
 * very call, by a rule or a person, permits that. In all other cases, such as an outage, the host decides.
 */
import { toSingleLine, type ActionRecord, type ActionRequest } from "../typescript/index.ts";
import { equalJson } from "../typescript/copy-json.ts";
import { approverName } from "../typescript/refusal.ts";
import type { HookEvent } from "./hook-event.ts";

/** Maximum number of characters of a rule's or an approver's words in a reason. */
const MAX_WORDS = 200;

/** Reason codes with which an action can be allowed. Every other code belongs to a denial or to a request for approval. */
const ALLOWING_CODES = ["POLICY_RULE", "GRANTED"];

/** Returns true if a person approved the action, or, before its start, a machine reviewer. */
const isApproved = ({ status, approvals }: ActionRecord): boolean =>
  status === "approved" || (approvals ?? []).some(({ approve }) => approve);

/**
 * Returns who decided the action and why, with its id; null if the decision does not settle the call.
 *
 * Policies generally allow an agent to read, search and talk to its user. The host may have a reason to ask about a
 * single such call, so only an approval or a grant settles it.
 * @param needsPerson whether only the vote of a person, or a grant, settles the call
 */
export function settlingReason(action: ActionRecord, { isPlanning }: HookEvent, needsPerson = false): string | null {
  // The user has told the host not to run anything yet. A decision about the call does not change that.
  if (isPlanning === true || action.proposed != null) return null;
  if (isApproved(action)) return `Assent: ${approvalText(action)} (${action.id}).`;
  const { tool, operation, policy, rule, reason, reason_code, grant, id } = action;
  const isJudged = ALLOWING_CODES.includes(reason_code) && policy != null && rule != null;
  const isRoutine = tool === "agent" || (tool === "files" && operation !== "write" && operation !== "delete");
  // A grant is a person's approval of later calls.
  const needsGrant = needsPerson || isRoutine;
  if (action.decision === "deny" || !isJudged || (needsGrant && grant == null)) return null;
  const by = `the rule "${toSingleLine(rule, MAX_WORDS)}" of the policy "${toSingleLine(policy, MAX_WORDS)}"`;
  return `Assent: allowed by ${grant == null ? by : "an earlier approval"}: ${toSingleLine(reason, MAX_WORDS)} (${id}).`;
}

function approvalText({ approvals, reviews, names }: ActionRecord): string {
  const votes = (approvals ?? []).filter(({ approve }) => approve);
  const people = [...new Set(votes.map(({ approver }) => approverName(approver, names)))];
  const reviewers = (reviews ?? []).filter(({ answer }) => answer === "approve").map(({ reviewer }) => reviewer);
  const words = votes.map(({ reason }) => toSingleLine(reason ?? "", MAX_WORDS)).find((text) => text !== "");
  const by = people.length > 0 ? people : reviewers.map((name) => `the reviewer ${toSingleLine(name, MAX_WORDS)}`);
  return `approved${by.length === 0 ? "" : ` by ${by.join(", ")}`}${words === undefined ? "" : `: ${words}`}`;
}

/** Returns true if the action was started for this request of this session, and has not ended. */
export function isActionOfCall(action: ActionRecord, request: ActionRequest, { host, session }: HookEvent): boolean {
  const { meta } = action;
  return (
    action.status === "executing" &&
    meta["host"] === host &&
    meta["session"] === session &&
    equalJson(requestMembers(action), requestMembers(request))
  );
}

/** Returns the members that identify a request, as JSON has them. */
export const requestMembers = ({ agent_id, tool, operation, params, context }: ActionRequest): unknown =>
  JSON.parse(JSON.stringify([agent_id, tool, operation, params ?? {}, context ?? {}]));

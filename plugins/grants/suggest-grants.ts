/**
 * Suggests scopes for a grant that is created with the vote on an action, each with the earlier requests that it would
 * have covered.
 */
import {
  clipText,
  type CompiledPolicySet,
  effectiveRequest,
  Evaluation,
  findDeniedBy,
  findFreeMembers,
  findScopeFault,
  matchGrant,
  presentRequest,
  renderMarkedText,
} from "../../src/core.ts";
import { Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionFilter, ActionRow } from "../../src/storage/index.ts";
import type { VaryingMember } from "./scope-words.ts";
import { type EarlierRequest, suggestScopes } from "./suggest-scopes.ts";

/** Maximum number of earlier requests that a suggestion contains. */
const MAX_NAMED = 5;
const MAX_SUMMARY = 160;

interface CoveredRequest {
  id: string;
  status: ActionRow["status"];
  created_at: string;
  /** The preview, or else the parameters, as one line that is safe to display. */
  summary: string;
}

export interface GrantSuggestions {
  /** Number of earlier requests of the agent with this tool and operation on which the scopes were evaluated. */
  considered: number;
  /** Suggested scopes, at most two, the narrowest first. */
  suggestions: {
    /** Condition in CEL. It fixes all members of the request except `varying`, and excludes other members. */
    scope: string;
    varying: readonly VaryingMember[];
    /** Number of the considered requests that the grant would have covered. */
    covered: number;
    /** The newest requests that the grant would have covered. */
    requests: CoveredRequest[];
  }[];
  /** What the caller's own scope would cover; null without one. */
  written: WrittenScope | null;
}

interface WrittenScope {
  /** Whether the scope covers the request itself. */
  covers_request: boolean;
  /** As `findFreeMembers` returns it. */
  free: string[];
  covered: number;
  requests: CoveredRequest[];
}

/**
 * Suggests scopes, and evaluates them on earlier requests of the same agent, tool and operation. Returns null if the
 * request of the action was erased.
 * @param written a scope that the caller wrote; null without one. Throws VALIDATION_FAILED if it is not valid
 * @param readEarlier a function that reads the newest earlier requests that the caller can see
 */
export async function suggestGrants(
  compiled: CompiledPolicySet,
  row: ActionRow,
  written: string | null,
  readEarlier: (filter: Omit<ActionFilter, "visibility" | "limit">) => Promise<ActionRow[]>,
): Promise<GrantSuggestions | null> {
  const request = toEarlierAction(compiled, row);
  if (request === null) return null;
  const { agent_id, tool, operation } = row;
  const rows = await readEarlier({ agent_id, tool, operation, before_seq: row.decision_seq });
  const earlier = rows.flatMap((each) => toEarlierAction(compiled, each) ?? []);
  // A scope must not read redacted parameters. A request that has some can therefore not be expressed as a scope.
  const isValid = (scope: string): boolean => findScopeFault(compiled, row, scope, "condition") === null;
  const fault = written === null ? null : findScopeFault(compiled, row, written, "condition");
  if (fault !== null)
    throw new Refusal("VALIDATION_FAILED", `the scope is not valid: ${fault}`, {
      errors: [{ parameter: "scope", detail: fault }],
    });
  const suggestions = suggestScopes(request.evaluation, earlier, isValid).map(({ scope, varying, covered }) => ({
    scope,
    varying,
    covered: covered.length,
    requests: covered.slice(0, MAX_NAMED).map((each) => describeRequest(compiled, each)),
  }));
  if (written === null) return { considered: earlier.length, suggestions, written: null };
  const isCovered = ({ evaluation }: EarlierRequest): boolean =>
    matchGrant({ id: written, scope: written, sum: null }, evaluation) !== null;
  const covered = earlier.filter(isCovered);
  return {
    considered: earlier.length,
    suggestions,
    written: {
      covers_request: isCovered(request),
      free: findFreeMembers(written, request.evaluation.request),
      covered: covered.length,
      requests: covered.slice(0, MAX_NAMED).map((each) => describeRequest(compiled, each)),
    },
  };
}

/** Statuses of an action that was approved after it required approval. */
const APPROVED: readonly ActionRow["status"][] = ["approved", "executing", "succeeded", "failed", "unknown"];

interface EarlierAction extends EarlierRequest {
  row: ActionRow;
}

/** Returns an earlier action; null if its request was erased or cannot be read. */
function toEarlierAction(compiled: CompiledPolicySet, row: ActionRow): EarlierAction | null {
  const request = effectiveRequest(row);
  if (request === null) return null;
  const principal = { key_id: row.submitted_by, name: "", agent_id: row.submitted_agent, owner: row.submitted_owner };
  const evaluation = new Evaluation(compiled, request, { principal }, row.created_at);
  const isApproved = row.decision === "require_approval" && APPROVED.includes(row.status);
  return { row, evaluation, isApproved, isRejected: findDeniedBy(row) === "person" };
}

function describeRequest(compiled: CompiledPolicySet, { row, evaluation: { request } }: EarlierAction): CoveredRequest {
  const { preview } = presentRequest(compiled, { ...row, params: request.params, context: request.context });
  // Hidden characters in the preview are already marked.
  const summary = preview ?? renderMarkedText(clipText(JSON.stringify(request.params), MAX_SUMMARY));
  return {
    id: row.id,
    status: row.status,
    created_at: toRfc3339(row.created_at),
    summary: clipText(summary, MAX_SUMMARY),
  };
}

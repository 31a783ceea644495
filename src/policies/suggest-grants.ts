/**
 * Suggests scopes for a grant that is created with the vote on an action, each with the earlier requests that it would
 * have covered.
 */
import type { ActionFilter, ActionRow } from "../contract/storage.ts";
import { findDeniedBy } from "../domain/denied-by.ts";
import type { ActionRequest } from "../domain/actions.ts";
import { effectiveRequest } from "../domain/edited-request.ts";
import { type EarlierRequest, suggestScopes } from "../domain/grant-suggestions.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import { Evaluation } from "../domain/policy/decide/evaluation.ts";
import { omitRedacted } from "../domain/policy/decide/redact.ts";
import { presentRequest } from "../domain/policy/decide/request-presentation.ts";
import { clipText } from "../domain/text.ts";
import { toRfc3339 } from "../domain/time.ts";
import { renderMarkedText } from "../domain/visible-text.ts";

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
  /** Suggested scopes, at most three, the narrowest first. */
  suggestions: {
    /** Condition in CEL; null covers every request of the agent, tool and operation. */
    scope: string | null;
    /** Number of the considered requests that the grant would have covered. */
    covered: number;
    /** The newest requests that the grant would have covered. */
    requests: CoveredRequest[];
  }[];
}

/**
 * Suggests scopes, and evaluates them on earlier requests of the same agent, tool and operation. Returns null if the
 * request of the action was erased.
 * @param readEarlier a function that reads the newest earlier requests that the caller can see
 */
export async function suggestGrants(
  compiled: CompiledPolicySet,
  row: ActionRow,
  readEarlier: (filter: Omit<ActionFilter, "visibility" | "limit">) => Promise<ActionRow[]>,
): Promise<GrantSuggestions | null> {
  const request = readVisibleRequest(compiled, row);
  if (request === null) return null;
  const { agent_id, tool, operation } = row;
  const rows = await readEarlier({ agent_id, tool, operation, before_seq: row.decision_seq });
  const earlier = rows.flatMap((each) => toEarlierAction(compiled, each) ?? []);
  const suggestions = suggestScopes(request, earlier).map(({ scope, covered }) => ({
    scope,
    covered: covered.length,
    requests: covered.slice(0, MAX_NAMED).map((each) => describeRequest(compiled, each)),
  }));
  return { considered: earlier.length, suggestions };
}

/** Returns the request without redacted parameters, which a scope must not mention; null if it was erased. */
function readVisibleRequest(compiled: CompiledPolicySet, row: ActionRow): ActionRequest | null {
  const request = effectiveRequest(row);
  return request && { ...request, params: omitRedacted(compiled, request, request.params) };
}

interface EarlierAction extends EarlierRequest {
  row: ActionRow;
}

/** Returns an earlier action; null if its request was erased or cannot be read. */
function toEarlierAction(compiled: CompiledPolicySet, row: ActionRow): EarlierAction | null {
  const request = readVisibleRequest(compiled, row);
  if (request === null) return null;
  const principal = { key_id: row.submitted_by, name: "", agent_id: row.submitted_agent, owner: row.submitted_owner };
  const evaluation = new Evaluation(compiled, request, { principal }, row.created_at);
  return { row, evaluation, isRejected: findDeniedBy(row) === "person" };
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

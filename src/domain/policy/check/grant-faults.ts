/**
 * Finds faults in `approval.grants`: a grant is a vote of one approver, so the rule must not require more approvers.
 */
import { parseDuration } from "../../time.ts";
import { MAX_GRANT_MS } from "../parse/bounds.ts";
import type { ApprovalTerms, RuleDocument } from "../policy-types.ts";

interface GrantFault {
  /** RFC 6901 pointer, relative to `approval`. */
  pointer: string;
  detail: string;
  /** Whether the key is at fault instead of its value. */
  key?: boolean;
}

/**
 * Returns the faults of `approval.grants` in a rule or a limit.
 * @param kind the noun for messages
 */
export function findGrantFaults(
  { risk, approval = {} }: Pick<RuleDocument, "risk" | "approval">,
  kind: "rule" | "limit",
): GrantFault[] {
  const { grants } = approval;
  if (grants === undefined) return [];
  const faults: GrantFault[] = [];
  const impossible = (detail: string): void => void faults.push({ pointer: "/grants", key: true, detail });
  if (kind === "limit") impossible("an action that exceeds a limit always requires its own approval; remove grants");
  if (risk === "critical") impossible('a grant cannot cover actions of the risk "critical"; remove grants');
  if (approval.signature !== undefined)
    impossible(
      "each approval needs its own signature (approval.signature), so a grant cannot replace it; remove grants",
    );
  if (requiresSeveralPeople(approval))
    impossible(
      "a grant is the vote of one approver, and this rule requires more; remove grants, or require one approver",
    );
  const ms = parseDuration(grants.for);
  if (ms === null)
    faults.push({ pointer: "/grants/for", detail: `"${grants.for}" is not a duration such as 30m, 1h or 7d` });
  else if (ms < 60_000 || ms > MAX_GRANT_MS)
    faults.push({ pointer: "/grants/for", detail: `"${grants.for}" is not between 1m and 30d` });
  return faults;
}

/** Returns true if the rule requires more than one person. */
export function requiresSeveralPeople({ quorum = 1, approvers = [], stages = [] }: ApprovalTerms): boolean {
  const lists =
    stages.length > 0 ? stages.filter(({ after }) => after === undefined).map((stage) => stage.approvers) : [approvers];
  const votes = lists.flat().reduce((sum, { count = 1 }) => sum + count, 0);
  return quorum > 1 || votes > 1;
}

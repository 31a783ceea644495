/**
 * Finds faults in `approval.reviewers`: a machine reviewer may approve only where one unsigned vote would be enough.
 */
import type { RuleDocument } from "../policy-types.ts";
import { requiresSeveralPeople } from "./grant-faults.ts";

interface ReviewerFault {
  /** RFC 6901 pointer, relative to `approval`. */
  pointer: string;
  detail: string;
  /** Whether the key is at fault instead of its value. */
  key?: boolean;
}

/**
 * Returns the faults of `approval.reviewers` in a rule or a limit.
 * @param kind the noun for messages
 */
export function findReviewerFaults(
  { risk, approval = {} }: Pick<RuleDocument, "risk" | "approval">,
  kind: "rule" | "limit",
): ReviewerFault[] {
  const faults: ReviewerFault[] = [];
  const names = new Set<string>();
  for (const [i, { name, may_approve = false }] of (approval.reviewers ?? []).entries()) {
    if (names.has(name))
      faults.push({ pointer: `/reviewers/${i}/name`, detail: `the reviewer "${name}" is listed twice; remove one` });
    names.add(name);
    const impossible = (reason: string): void =>
      void faults.push({ pointer: `/reviewers/${i}/may_approve`, key: true, detail: `${reason}; remove may_approve` });
    if (!may_approve) continue;
    if (kind === "limit") impossible("an action that exceeds a limit is always approved by a person");
    if (risk === "critical") impossible('a machine cannot approve actions of the risk "critical"');
    if (approval.signature !== undefined)
      impossible("each approval needs the signature of a person (approval.signature)");
    if (requiresSeveralPeople(approval)) impossible("a machine has no vote, and this rule requires several people");
  }
  return faults;
}

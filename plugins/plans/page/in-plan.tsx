/** Says that an action is voted on with its plan, and links to the plan. */
import { type Action, encodeSegment, Notice } from "../../console/app/kit.ts";
import { TEXTS } from "./strings.ts";

export function InPlan({ action: { plan } }: { action: Action }) {
  if (plan === null) return null;
  return (
    <Notice kind="busy">
      {TEXTS.inPlan(plan.position)} <a href={`#/plans/${encodeSegment(plan.id)}`}>{TEXTS.openPlan}</a>
    </Notice>
  );
}

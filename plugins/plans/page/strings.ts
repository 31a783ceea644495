/** Texts of the pages of plans. */
import { formatCounted } from "../../console/app/kit.ts";

interface Terms {
  ordered: boolean;
  stop_on_failure: boolean;
}

export const TEXTS = {
  inPlan: (position: number): string =>
    `This is action ${position} of a plan. You vote on the whole plan, and can strike out single actions.`,
  openPlan: "Open the plan",
  title: "Plan",
  listTitle: "Plans",
  none: "No agent has submitted several actions as a plan.",
  noneHelp: "People approve the actions of a plan with one vote, and can strike some out.",
  snippet: "Submit a plan with curl",
  command: (origin: string): string =>
    `curl -s ${origin}/v1/plans -H "Authorization: Bearer $AGENT_KEY" -H "Content-Type: application/json" -d '{
  "actions": [
    {"agent_id": "support-bot", "tool": "stripe", "operation": "refund", "params": {"amount": 500}},
    {"agent_id": "support-bot", "tool": "email", "operation": "send", "params": {"to": "ada@example.com"}}
  ]
}'`,
  cancel: "Cancel the plan…",
  cancelTitle: "Cancel this plan?",
  cancelHelp: (isAdmin: boolean): string =>
    isAdmin
      ? "Its pending actions are cancelled, and so are its allowed and approved actions that have not started."
      : "Its pending actions are cancelled, and the votes on the others are void.",
  keepPlan: "Keep it",
  submitted: "submitted these actions together",
  terms: ({ ordered, stop_on_failure: stops }: Terms): string =>
    [
      ordered ? "Each starts only when the ones above it have ended." : "They can start in any order.",
      stops ? "No action starts after another has failed." : "",
    ]
      .filter((sentence) => sentence !== "")
      .join(" "),
  stopped: ({ position, status }: { position: number; status: string }): string =>
    `The plan stopped at action ${position}, which is ${status}.`,
  struck: "struck out",
  strike: "Strike out",
  keep: "Keep",
  details: "History and proof",
  reason: "Reason (recorded)",
  approve: (left: number, struck: number): string =>
    `Approve ${formatCounted(left, "action")}${struck === 0 ? "" : `, reject ${struck}`}`,
  reject: (pending: number): string => `Reject ${pending === 1 ? "the action" : `all ${pending}`}`,
};

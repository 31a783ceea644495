/** Texts of the analytics page. */
import { formatCounted } from "../../console/app/kit.ts";

/** Names of the decisions that policies make. `STATUSES` contains what happened to the actions afterwards. */
export const DECISION_LINES = [
  { key: "allow", name: "allowed by policy", color: "good-mark" },
  { key: "require_approval", name: "required approval", color: "busy-mark", dash: [6, 4] },
  { key: "deny", name: "denied by policy", color: "bad", dash: [2, 3] },
] as const;

export const STATUSES = {
  allowed: "allowed, not started",
  denied: "denied",
  approved: "approved, not started",
  pending_approval: "pending approval",
  executing: "running",
  unknown: "outcome unknown",
  succeeded: "succeeded",
  failed: "failed",
  expired: "expired",
  cancelled: "cancelled",
} as const;

export const TEXTS = {
  title: "Analytics",
  range: "Range",
  by: "By",
  automatic: "automatic",
  zone: (zone: string) => `Days begin at midnight in ${zone}.`,
  none: "No action was submitted in this range.",
  noneHelp: "Submit the first one, or choose a longer range.",
  firstSteps: "Submit the first one",
  shortened: "The range has no earlier actions, so the numbers begin there.",
  actions: "Actions",
  median: "Median time to decide (p50)",
  p95: "95 % decided within (p95)",
  approved: "Approvals",
  rejected: "Rejections",
  rate: "Approval rate",
  tooFew: "A line needs two full intervals. All actions so far are in the table below.",
  current: (interval: string) => `Not drawn: the current ${interval}, since`,
  numbers: "The numbers",
  statuses: "Current status",
  afterApproval: "denied after approval was required",
  tools: "By tool",
  agents: "By agent",
  rules: "By rule",
  noRule: "no rule matched",
  others: (count: number, noun: string) =>
    count === 0
      ? ""
      : `${formatCounted(count, "action")} of other ${noun}. Only the ${noun} with the most actions are listed, and no filter selects the rest. Filter the list of actions to count one of them.`,
  asking: "Rules that require approval most often",
  noAsking: "No rule required approval in this range.",
  voting: "Time to decide",
  votes: "Votes by approver and rule",
  votingHelp:
    "From the submission to each vote, by approver and rule. Many votes within three seconds suggest that the rule requires approval too often.",
  noVoting: "No person voted in this range.",
  tooLong: "These numbers are read from the ledger, which has too many entries in this range. Choose a shorter range.",
} as const;

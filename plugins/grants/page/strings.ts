/** Texts of grants. */
import { formatCounted } from "../../console/app/kit.ts";

export const TEXTS = {
  title: "Grants",
  offer: "Also allow later requests",
  considered: (count: number) => `Tried on the agent's last ${formatCounted(count, "request")} of this kind`,
  onlyThis: "This request only",
  equal: "Equal requests, with the same parameters and context",
  except: "Equal requests, except for the values below",
  own: "Requests that match a condition of your own",
  ownLabel: "Condition, in CEL",
  check: "Check it",
  unchecked: "Check the condition before you approve.",
  misses: "It does not cover this request.",
  condition: "Show the condition",
  covered: (count: number) => `would have covered ${count.toLocaleString("en")}`,
  newest: (count: number) => `Show the newest ${count.toLocaleString("en")}`,
  noScope:
    "There is no scope to suggest: a person rejected a request like this one, the request is too long for a scope, or a policy redacts a parameter.",
  count: (most: number) => `Enter a number from 1 to ${most.toLocaleString("en")}.`,
  ends: "Policies and stops are evaluated at each use. You can revoke it under Grants; any rejection of the same kind also ends it.",
  approve: "Approve and grant",
  approveTask: "Approve and start the task",
  byGrant: "A grant allowed this action, so it needed no vote.",
  showUses: "Show its uses",
  flag: {
    button: "Flag this use of the grant…",
    title: "Flag this use of the grant?",
    help: "The action should not have been covered. The grant ends, so later actions require approval again.",
    done: "The use is flagged, and the grant has ended.",
  },
  empty: "No grants are active.",
  emptyAll: "No one has granted anything.",
  emptyHelp:
    "A grant is an approval in advance. Where a rule has approval.grants, open a pending request, choose “Also allow later requests”, and approve. Or on the command line:",
  revoked: (name: string) => `The grant ${name} is revoked.`,
  revokeHelp:
    "From now on, the actions that it covers require approval again, also those that it allowed and that have not started.",
} as const;

/** Durations in the service's format, shortest first. */
export const DURATIONS = [
  { value: "30m", label: "30 minutes", seconds: 1800 },
  { value: "1h", label: "1 hour", seconds: 3600 },
  { value: "8h", label: "8 hours", seconds: 28_800 },
  { value: "24h", label: "24 hours", seconds: 86_400 },
  { value: "7d", label: "7 days", seconds: 604_800 },
  { value: "30d", label: "30 days", seconds: 2_592_000 },
] as const;

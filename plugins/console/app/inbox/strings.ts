/** Texts of the approvals page. */
import { counted } from "../ui/format.ts";

export const TEXTS = {
  title: "Approvals",
  empty: "No requests are waiting.",
  emptyHelp:
    "An agent's request appears here when a policy requires approval. Submit one to try it; replace the key with an agent's key:",
  noMatch: "No pending request matches.",
  tabs: "Which requests",
  search: "Search all pending requests",
  filter: "Filter",
  sort: "Sort",
  risk: "Risk",
  fields: { agent_id: "Agent", tool: "Tool", operation: "Operation" },
  clearFilters: "Clear filters",
  selectAll: (total: number | null) =>
    total === null ? "Select all that match" : `Select all ${total.toLocaleString("en")} that match`,
  selecting: (loaded: number) => `Loading: ${loaded.toLocaleString("en")} so far`,
  notGrouped: (count: number) => `${counted(count, "more group")} of selected requests, not listed here.`,
  pickOne: "Select a request to see it here.",
  readOnly: "You are signed in with a key that can see requests but cannot vote.",
  pending: (count: number) => `${count.toLocaleString("en")} pending`,
  matching: (count: number) => `${count.toLocaleString("en")} ${count === 1 ? "matches" : "match"}`,
  many: (loaded: number) => `more than ${loaded.toLocaleString("en")}`,
  shown: (shown: number, total: number | null) =>
    `${shown.toLocaleString("en")}${total === null ? "" : ` of ${total.toLocaleString("en")}`} loaded`,
  selected: (count: number) => `${count.toLocaleString("en")} selected`,
  showSelected: (count: number) => `Show ${count.toLocaleString("en")} selected`,
  settled: (count: number) => `Clear ${count} settled`,
  held: (count: number, left: string) => `Show ${counted(count, "new request")}, first deadline in ${left}`,
  expired: "Time is up: no one can vote on it any more. The agent has to submit it again.",
  waiting: "The agent is waiting for the answer.",
  recorded: (left: number) => `Your approval is recorded. It needs ${counted(left, "more approval")}.`,
  notYours: "This key cannot vote on it: it belongs to the requester (same key, agent or owner).",
  notRecorded: (reason: string) =>
    `Your vote was not recorded.${reason === "" ? "" : ` Your reason is kept: “${reason}”.`}`,
  signatureRequired:
    "A policy requires votes on this that are signed with a passkey, and an API key cannot sign. Sign in as a user to vote.",
  rule: (needed: number) =>
    `A vote covers this exact request only. ${needed > 1 ? `${needed} people have to approve` : "One approval is enough"}; one rejection ends it.`,
  reason: "Reason",
  reasonHelp: "recorded in the ledger; optional",
  chooseFirst: "Press a or d outside the field, or use a button, to choose the vote.",
  history: "History",
  notSettledYet: "The service has not answered yet.",
} as const;

/** Tabs, with the parameter `view` of the service's list. */
export const TABS = [
  { view: "mine", title: "Mine" },
  { view: "second_vote", title: "Needs a second vote" },
  { view: "", title: "All" },
] as const;

/** Orders of the service's list. */
export const SORTS = [
  { sort: "deadline", title: "Earliest deadline" },
  { sort: "risk", title: "Highest risk" },
  { sort: "newest", title: "Newest" },
  { sort: "oldest", title: "Oldest" },
] as const;

export const SHORTCUTS: readonly (readonly [string, string])[] = [
  ["j / k", "Next, previous request"],
  ["a / d", "Approve, deny: go to the reason"],
  ["Ctrl + Enter", "Vote, and go to the next request"],
  ["Esc", "Leave the reason"],
  ["x", "Select the request"],
  ["Shift + click", "Select a range"],
  ["/", "Search all pending requests"],
  ["Ctrl + K", "Go to a page or an action"],
  ["?", "Show this list"],
];

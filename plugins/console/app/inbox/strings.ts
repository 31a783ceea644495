/** Texts of the approvals page. */
import { formatCounted } from "../ui/format.ts";

export const TEXTS = {
  inPlan: (position: number): string =>
    `This is action ${position} of a plan. You vote on the whole plan, and can strike out single actions.`,
  openPlan: "Open the plan",
  title: "Approvals",
  empty: "No requests are waiting.",
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
  notGrouped: (count: number) => `${formatCounted(count, "more group")} of selected requests, not listed here.`,
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
  held: (count: number, left: string) => `Show ${formatCounted(count, "new request")}, first deadline in ${left}`,
  expired: "The deadline has passed, so no one can vote on it. The agent has to submit it again.",
  waiting: "The agent is waiting for the answer.",
  recorded: (left: number) => `Your approval is recorded. The request needs ${formatCounted(left, "more approval")}.`,
  notYours: "You cannot vote on this request, because your vote would count as the requester's.",
  notRecorded: (reason: string) =>
    `Your vote was not recorded.${reason === "" ? "" : ` Your reason is kept: “${reason}”.`}`,
  signatureRequired: "A rule accepts only votes that are signed with a passkey. An API key cannot sign.",
  rule: (needed: number) =>
    `A vote covers this exact request only. ${needed > 1 ? `${needed} people have to approve` : "One approval is enough"}; one rejection ends it.`,
  reason: "Reason",
  reasonHelp: "recorded in the ledger; optional",
  chooseFirst: "Press a or d outside the field, or use a button, to choose the vote.",
  history: "History",
  submit: "Submit a request",
  submitHelp: "Try an approval.",
} as const;

/** Tabs, each with the value of the list's parameter `view`. */
export const TABS = [
  { view: "mine", title: "Mine" },
  { view: "second_vote", title: "Needs a second vote" },
  { view: "", title: "All" },
] as const;

/** Orders in which the service sorts the list. */
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

/** Texts of an empty inbox, and of its test request. */
export const FIRST_STEPS = {
  help: "A request appears here when an agent submits an action and a policy requires approval. Three ways to submit one:",
  allActions: "Show all actions",
  key: "Agent key",
  createKey: "Create an agent key",
  keyHelp:
    "Stored in this tab and filled in below. You cannot approve requests of a key that you own: use a key that you create here, which has no owner, or the agent key that the first start printed.",
  keyFirst: "To send a test request, enter or create an agent key first.",
  send: "Send a test request",
  sending: "Sending…",
  sendHelp:
    "It has no effect. You approve it here and see its proof. If the policy test-requests is missing and you may activate policies, it is added first.",
  denied: "The test request was denied, because no policy sends it to an approver:",
  addPolicy: "Add this policy, and send it again",
  curl: "From a terminal, with curl",
  typescript: "From TypeScript",
  codingAgent: "From a coding agent (Claude Code)",
  proof: "Proof of your vote",
  noProof: "The ledger has a proof of your vote. Reading it needs the scope provenance:read.",
  verified: "Verified in this browser.",
  entry: (index: number, size: number) =>
    `Your vote is entry ${index.toLocaleString("en")} of ${size.toLocaleString("en")} in the ledger`,
  root: "Signed root:",
  showEntry: "Show the entry",
  unpinned: "Verified with the key that the service publishes.",
  pin: "Pin it, so that this browser notices if the service ever shows a different history.",
  cannotVerify: "browsers can verify only on https pages and on localhost; use assent verify",
} as const;

/** Texts of the approvals page. */
import { formatCounted } from "../ui/format.ts";

export const TEXTS = {
  tooLate: "It may start now. An admin can still cancel it, and who may place stops can stop the agent.",
  keys: {
    step: "Next, previous request",
    choose: "Approve, deny: the selected requests, else the open request, else those of the open group",
    undo: "Undo the last vote, or all votes of a group that were given together, within five seconds",
    confirm: "Confirm a vote on several requests or on a critical request",
    leave: "Leave the reason",
    select: "Select the request",
    range: "Select a range",
    search: "Search all pending requests",
  },
  title: "Approvals",
  group: "Group of requests",
  more: (left: number) => `Show more (${left.toLocaleString("en")} left)`,
  covers: (count: number, all: number) =>
    `Each request gets a separate vote. A vote covers the ${formatCounted(count, "request")} listed here${count < all ? `, the most urgent of ${all.toLocaleString("en")}; the others follow after it` : ""}.`,
  elsewhere: (count: number) =>
    `${formatCounted(count, "request")} of this group ${count === 1 ? "is" : "are"} not listed, because people approve ${count === 1 ? "it" : "them"} only together with other actions. Open ${count === 1 ? "it" : "each one"} to see where.`,
  groupDone: "No other request of this group waits for your vote.",
  listOthers: (count: number) => `List ${formatCounted(count, "other request")}`,
  voteOnGroup: (count: number) => `Vote on ${formatCounted(count, "request")}`,
  empty: "No requests are waiting.",
  noneForYou: "No request waits for your vote.",
  showOthers: (count: number) => `Show ${formatCounted(count, "pending request")} for others`,
  incomplete: "More is pending than this list shows. Search or filter to find the others.",
  noMatch: "No pending request matches.",
  tabs: "Which requests",
  search: "Search all pending requests",
  filter: "Filter",
  sort: "Sort",
  risk: "Risk",
  fields: { agent_id: "Agent", tool: "Tool", operation: "Operation" },
  clearFilters: "Clear filters",
  readOnly: "You are signed in with a key that can see requests but cannot vote.",
  pending: (count: number) => `${count.toLocaleString("en")} pending`,
  matching: (count: number) => `${count.toLocaleString("en")} ${count === 1 ? "matches" : "match"}`,
  selected: (count: number) => `${count.toLocaleString("en")} selected`,
  showSelected: (count: number) => `Show ${count.toLocaleString("en")} selected`,
  keysActOn: (count: number | null, isSelection: boolean) =>
    count === null ? "this request" : formatCounted(count, isSelection ? "selected request" : "listed request"),
  othersSelected: (count: number) =>
    `${formatCounted(count, "request")} ${count === 1 ? "is" : "are"} selected. Votes and keys act on the selection.`,
  voteOnSelection: "Go to the selection",
  critical: (count: number, isSelection: boolean) =>
    `${formatCounted(count, isSelection ? "selected request" : "listed request")} ${count === 1 ? "is" : "are"} critical. Critical requests are not approved together: open each one.`,
  held: (count: number, left: string) => `Show ${formatCounted(count, "new request")}, first deadline in ${left}`,
  expired: "The deadline has passed, so no one can vote on it. The agent has to submit it again.",
  waiting: "The agent is waiting for the answer.",
  recorded: (left: number) => `Your approval is recorded. The request needs ${formatCounted(left, "more approval")}.`,
  heldVote: (approve: boolean) =>
    approve
      ? "You approve it. Your vote is recorded in a few seconds."
      : "You deny it. Your vote is recorded in a few seconds.",
  notYours: "You cannot vote on this request, because your vote would count as the requester's.",
  notRecorded: (reason: string) =>
    `Your vote was not recorded.${reason === "" ? "" : ` Your reason is kept: “${reason}”.`}`,
  signatureRequired: "A rule accepts only votes that are signed with a passkey. An API key cannot sign.",
  whoAgrees: "Who has to agree",
  reason: "Reason",
  reasonHelp: "the agent reads it; optional",
  quickReasons: ["Not needed", "Wrong values"],
  chooseFirst: "Press a or d outside the field, or use a button, to choose the vote.",
  history: "History",
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

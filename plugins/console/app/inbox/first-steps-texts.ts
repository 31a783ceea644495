/** Texts of an empty inbox. Apart from the inbox's other texts, because few people load them. */
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
} as const;

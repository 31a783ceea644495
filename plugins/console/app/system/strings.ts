/** Texts of the system page. */

export const TEXTS = {
  title: "System",
  every: (seconds: number) => `checked every ${seconds} s`,
  ready: "Ready: actions are decided.",
  notReady: "Not ready: actions might not be decided.",
  unreachable: "the service does not respond; this page shows its last response",
  stale: "The newest policies of a source could not be loaded since",
  staleHelp:
    "The last valid policies of the source, if any, stay active. The service's log describes the faults. They are in:",
  checks: "Checks",
  sources: "Policy sources",
  sourceRevisions: "Revisions of policy sources",
  sourceHead: ["Source", "State", "Newest", "Applied"],
  applied: "applied",
  rejected: "rejected",
  unread: "cannot be read",
  baseline: "baseline",
  noCommit: "no commits",
  versions: "Versions",
  none: "none",
  timeline: "Timeline",
  timelineHelp:
    "Changes of policies, keys, agents, users, the ledger's own keys, and what else concerns the whole service.",
} as const;

/** Entry types of the timeline, without those of features. */
export const TIMELINE_TYPES: readonly string[] = ["permit_key", "log_key"];

/**
 * Columns that the audit cannot compare with the ledger, each with the reason why that is acceptable.
 * docs/operations.md contains the same table, and a test compares the two. Another test changes every other column and
 * expects a fault.
 */
interface UnrecordedColumn {
  table: string;
  /** Name of the column; `*` for all columns of the table. */
  column: string;
  why: string;
}

export const UNRECORDED_COLUMNS: readonly UnrecordedColumn[] = [
  { table: "api_keys", column: "prefix", why: "identifies the key to people; the ledger contains no part of a key" },
  { table: "api_keys", column: "last_used_at", why: "uses of a key are not recorded, and no decision depends on them" },
  {
    table: "actions",
    column: "asked_at",
    why: "time of an agent's last request for the action, displayed to people; no decision depends on it",
  },
  {
    table: "actions",
    column: "waits",
    why: "processes on which an agent waits for the action, and until when; no decision depends on it",
  },
  {
    table: "idempotency",
    column: "idempotency_key",
    why: "chosen by the client. If it is changed, a retry becomes a new request, which is decided and recorded",
  },
  {
    table: "idempotency",
    column: "body_hash",
    why: "not compared for requests that created agents, API keys or policies. If it is changed, a retry with the same `Idempotency-Key` is rejected or returns what the first request created. Compared for actions",
  },
  {
    table: "deliveries",
    column: "*",
    why: "recipients depend on the configuration at the time, which is not recorded, and delivery progress does not affect decisions. The entry, the action, the kind and the time are compared",
  },
  {
    table: "policy_versions",
    column: "yaml",
    why: "the text that the author wrote, for the editor. The audit compares the policy that it states, but not its comments",
  },
  { table: "ledger_head", column: "epoch", why: "tells processes that their cached keys and agents are stale" },
  {
    table: "meta",
    column: "*",
    why: "the rows in the next table are not compared; other rows are",
  },
  { table: "documents", column: "*", why: "belong to plugins" },
  { table: "document_counter", column: "*", why: "numbers documents" },
  { table: "action_sums", column: "*", why: "sums for analytics, computed from actions" },
  { table: "sums_state", column: "*", why: "progress of these sums" },
  { table: "leases", column: "*", why: "the process that runs the shared jobs" },
  {
    table: "processes",
    column: "*",
    why: "the processes that share the store, and the newest ledger state that each has read",
  },
  { table: "liveness", column: "*", why: "written to test that the store accepts writes" },
  { table: "schema_migrations", column: "*", why: "the applied migrations of the store" },
];

/** Names in `meta` whose values the ledger does not record. A name that ends in a colon is a prefix. */
export const UNRECORDED_META_NAMES = [
  "secret_fingerprint",
  "environment",
  "settled_incarnation",
  "permit_key",
  "policy_source:",
  "policy_source_refused:",
  "unfinished_copy",
  "repairs",
] as const;

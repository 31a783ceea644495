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

const PROGRESS = "progress of the delivery, on which no decision depends";

export const UNRECORDED_COLUMNS: readonly UnrecordedColumn[] = [
  { table: "api_keys", column: "prefix", why: "helps people recognise the key; the ledger contains no part of a key" },
  {
    table: "api_keys",
    column: "last_used_at",
    why: "the ledger does not record uses of a key, and no decision depends on them",
  },
  {
    table: "actions",
    column: "asked_at",
    why: "time of an agent's last request for the action, displayed to people; no decision depends on it",
  },
  {
    table: "actions",
    column: "waits",
    why: "which service processes have an open wait of the agent for the action, and when each wait ends; displayed to approvers. No decision depends on this column",
  },
  { table: "deliveries", column: "position", why: "numbers deliveries" },
  { table: "deliveries", column: "state", why: PROGRESS },
  { table: "deliveries", column: "attempts", why: PROGRESS },
  { table: "deliveries", column: "next_at", why: PROGRESS },
  { table: "deliveries", column: "give_up_at", why: PROGRESS },
  { table: "deliveries", column: "last_error", why: PROGRESS },
  { table: "deliveries", column: "delivered_at", why: PROGRESS },
  { table: "deliveries", column: "updated_at", why: PROGRESS },
  {
    table: "policy_versions",
    column: "yaml",
    why: "the text that the author wrote, for the editor. The audit compares the policy in the text, but not its comments",
  },
  {
    table: "meta",
    column: "*",
    why: "the rows in the next table are not compared; other rows are",
  },
  { table: "documents", column: "version", why: "numbers the writes of documents" },
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

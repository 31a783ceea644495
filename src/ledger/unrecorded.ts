/**
 * What the audit of a store cannot hold against the ledger, and why that is borne. docs/operations.md lists the same
 * table; a test holds the two together, and another changes every other column and expects to be told.
 */
export interface Unrecorded {
  table: string;
  /** `*` for all. */
  column: string;
  why: string;
}

export const UNRECORDED: readonly Unrecorded[] = [
  { table: "api_keys", column: "prefix", why: "shows people which key it is; no part of a key goes into the ledger" },
  { table: "api_keys", column: "last_used_at", why: "uses are not recorded, and nothing is decided by it" },
  {
    table: "actions",
    column: "asked_at",
    why: "when an agent last asked for it is shown to people, and nothing is decided by it",
  },
  {
    table: "actions",
    column: "waits",
    why: "which processes hold an agent's wait for it at the moment, and until when; nothing is decided by it",
  },
  {
    table: "idempotency",
    column: "idempotency_key",
    why: "the client's own word; changed, a request sent again is a new one, which is decided and recorded as such",
  },
  {
    table: "idempotency",
    column: "body_hash",
    why: "of bodies that made agents, keys and policies; changed, a request sent again is refused, or answered with what that key did make. Of actions it is compared",
  },
  {
    table: "deliveries",
    column: "*",
    why: "whom to tell stands in the configuration of that moment, and how far it came is no decision. The entry, the action, the kind and the time are compared",
  },
  { table: "ledger_head", column: "epoch", why: "tells processes when what they cached of keys and agents is stale" },
  {
    table: "meta",
    column: "*",
    why: "of secret_fingerprint, settled_incarnation (the running database that the processes agreed on), permit_key (the first one; later ones stand in the ledger, and each process holds its own against them), policy_source:… (what a source offered last), unfinished_copy and repairs; and what witnesses wrote under witnessed_checkpoint, which is verified with their keys. The other facts are compared",
  },
  { table: "documents", column: "*", why: "belong to the plugins that keep them" },
  { table: "document_counter", column: "*", why: "numbers documents" },
  { table: "action_sums", column: "*", why: "sums for analytics, which are made again from actions" },
  { table: "sums_state", column: "*", why: "how far the sums are" },
  { table: "leases", column: "*", why: "which process does the shared jobs at the moment" },
  { table: "processes", column: "*", why: "which processes share the store, and what each has seen of the ledger" },
  { table: "liveness", column: "*", why: "written to see that the store takes writes" },
  { table: "schema_migrations", column: "*", why: "the store's own account of its schema" },
];

/** Names of facts in `meta` that the ledger does not know; with a colon at the end, what they begin with. */
export const UNRECORDED_META = [
  "secret_fingerprint",
  "settled_incarnation",
  "permit_key",
  "policy_source:",
  "unfinished_copy",
  "repairs",
] as const;

/** Step 7: a change that has lost its transaction is refused. */
import type { SqlDialect } from "../dialect.ts";

/** What transactions alone may change. Leases and the probe's counter are changed by single statements as well. */
const GUARDED = [
  "entries",
  "tiles",
  "ledger_head",
  "checkpoint",
  "actions",
  "approvals",
  "idempotency",
  "api_keys",
  "agents",
  "policies",
  "policy_versions",
  "policy_sets",
  "deliveries",
  "limit_uses",
  "documents",
  "document_counter",
  "action_sums",
  "sums_state",
  "meta",
];

export function guards(kit: SqlDialect): string[] {
  return kit.guards?.(GUARDED) ?? [];
}

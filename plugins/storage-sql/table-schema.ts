/**
 * Types and column names of the tables, for statements. The migrations define the tables. Rows that are read have
 * strings in packed columns (packed-columns.ts).
 */
import { Kysely, type DialectAdapter, type QueryCompiler } from "kysely";
import { DummyDriver, SqliteIntrospector } from "kysely";
import type {
  ActionRow,
  AgentRow,
  ApprovalRow,
  DeliveryRow,
  DocumentRow,
  EntryRow,
  IdempotencyRow,
  KeyRow,
  LimitUseRow,
  PastActionRef,
  PolicyRow,
  PolicySetRow,
  PolicyVersionRow,
  TileRow,
} from "../../src/storage/index.ts";

type StoredRow<Row, Replaced> = Omit<Row, keyof Replaced> & Replaced;

export interface Tables {
  /** `followed` is 0 or 1. */
  entries: StoredRow<EntryRow, { followed: number }>;
  /** The bytes of the 256 entries from `start`; see bundles.ts. */
  entry_bundles: { start: number; bytes: Uint8Array };
  tiles: TileRow;
  /** Indexed hashes; see hash-index.ts. */
  hash_index: { kind: "entry" | "request"; bucket: number; span: number; bytes: Uint8Array };
  /** One row with the id 1. `edge` contains the concatenated hashes. */
  ledger_head: {
    id: number;
    size: number;
    root: Uint8Array;
    edge: Uint8Array;
    policy_set: string | null;
    epoch: number;
    followed_digest: Uint8Array;
    seal: string;
  };
  /** One row with the id 1. The note is null until a checkpoint is stored. */
  checkpoint: { id: number; size: number; note: string | null };
  /** `agent_fold`: the case-folded name of the agent; null if it equals `agent_id`. */
  actions: ActionRow & { agent_fold: string | null };
  approvals: StoredRow<ApprovalRow, { approve: number; self_approval: number; break_glass: number; signed: number }>;
  idempotency: IdempotencyRow;
  /** `scopes` is a JSON array. */
  api_keys: StoredRow<KeyRow, { scopes: string }>;
  /** `allowed_tools` is a JSON array or null. */
  agents: StoredRow<AgentRow, { allowed_tools: string | null }>;
  policies: PolicyRow;
  policy_versions: PolicyVersionRow;
  policy_sets: PolicySetRow;
  /**
   * Counts of actions in buckets of `grain` milliseconds from `start`, for each visibility and dimension. `counts` is a JSON
   * object.
   */
  action_sums: { grain: number; visible: string; dimension: string; start: number; counts: string };
  /** One row with the id 1. The sums include every action up to this decision_seq. */
  sums_state: { id: number; folded: number };
  meta: { name: string; value: string };
  deliveries: DeliveryRow;
  limit_uses: LimitUseRow;
  /** Number of uses with `from_at <= at < to_at`, and the sum of their amounts; see limits.ts. */
  limit_totals: Pick<LimitUseRow, "policy" | "limit_name" | "subject"> & {
    from_at: number;
    to_at: number;
    uses: number;
    amount: number;
  };
  past_actions: PastActionRef;
  documents: DocumentRow;
  /** At most one row, with the id 1: the highest version of any document. */
  document_counter: { id: number; last: number };
  leases: { name: string; holder: string; until: number };
  /** Used only if several processes share the store. */
  processes: {
    instance: string;
    incarnation: string;
    size: number;
    root: Uint8Array;
    since: number;
    reported_at: number;
  };
  /** One row, with the id 1, that `ping` writes. */
  liveness: { id: number; pings: number };
}

/** Creates a Kysely instance that only builds SQL, because the storage manages connections and transactions. */
export function createSqlBuilder(adapter: DialectAdapter, compiler: QueryCompiler): Kysely<Tables> {
  return new Kysely<Tables>({
    dialect: {
      createAdapter: () => adapter,
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => compiler,
    },
  });
}

/** Returns the names of the columns of T. A missing column is a compile error. */
function columnsOf<T>(columns: { readonly [K in keyof Required<T>]: true }): (keyof T & string)[] {
  return Object.keys(columns) as (keyof T & string)[];
}

export const ENTRY_COLUMNS = columnsOf<EntryRow>({
  seq: true,
  type: true,
  leaf_hash: true,
  bytes: true,
  action_id: true,
  agent_id: true,
  submitted_by: true,
  followed: true,
  created_at: true,
});
export const TILE_COLUMNS = columnsOf<TileRow>({ level: true, index: true, hashes: true, root: true });
export const HASH_INDEX_COLUMNS = columnsOf<Tables["hash_index"]>({
  kind: true,
  bucket: true,
  span: true,
  bytes: true,
});
export const ACTION_COLUMNS = columnsOf<ActionRow>({
  id: true,
  agent_id: true,
  tool: true,
  operation: true,
  request: true,
  request_hash: true,
  salt: true,
  past: true,
  meta: true,
  questions: true,
  effective: true,
  effective_hash: true,
  asked_at: true,
  waits: true,
  status: true,
  decision: true,
  reason: true,
  reason_code: true,
  risk_level: true,
  policy: true,
  rule: true,
  policy_version: true,
  policy_hash: true,
  decision_seq: true,
  decision_hash: true,
  submitted_by: true,
  submitted_agent: true,
  submitted_owner: true,
  quorum: true,
  expires_at: true,
  approved_until: true,
  rejection_until: true,
  allowed_by: true,
  plan_id: true,
  plan_position: true,
  authority: true,
  started_at: true,
  started_by: true,
  result: true,
  waited_ms: true,
  erased_at: true,
  created_at: true,
  updated_at: true,
});
export const APPROVAL_COLUMNS = columnsOf<ApprovalRow>({
  action_id: true,
  principal: true,
  key_id: true,
  approve: true,
  reason: true,
  self_approval: true,
  on_behalf_of: true,
  break_glass: true,
  signed: true,
  seq: true,
  created_at: true,
});
export const IDEMPOTENCY_COLUMNS = columnsOf<IdempotencyRow>({
  key_id: true,
  route: true,
  idempotency_key: true,
  body_hash: true,
  resource_id: true,
  created_at: true,
  seal: true,
});
export const KEY_COLUMNS = columnsOf<KeyRow>({
  id: true,
  name: true,
  hash: true,
  prefix: true,
  scopes: true,
  agent_id: true,
  owner: true,
  created_by: true,
  created_at: true,
  expires_at: true,
  revoked_at: true,
  last_used_at: true,
});
export const AGENT_COLUMNS = columnsOf<AgentRow>({
  id: true,
  name: true,
  description: true,
  allowed_tools: true,
  metadata: true,
  suspended_at: true,
  suspended_reason: true,
  version: true,
  registered_seq: true,
  created_by: true,
  created_at: true,
  updated_at: true,
});
export const POLICY_COLUMNS = columnsOf<PolicyRow>({
  id: true,
  name: true,
  managed_by: true,
  latest_version: true,
  active_version: true,
  deleted_at: true,
  created_at: true,
  updated_at: true,
});
export const POLICY_VERSION_COLUMNS = columnsOf<PolicyVersionRow>({
  policy_id: true,
  version: true,
  definition: true,
  yaml: true,
  digest: true,
  created_by: true,
  created_at: true,
});
export const POLICY_SET_COLUMNS = columnsOf<PolicySetRow>({ digest: true, document: true, created_at: true });
export const DELIVERY_COLUMNS = columnsOf<DeliveryRow>({
  position: true,
  id: true,
  destination: true,
  notifier: true,
  recipient: true,
  kind: true,
  seq: true,
  action_id: true,
  person: true,
  channel: true,
  state: true,
  attempts: true,
  next_at: true,
  give_up_at: true,
  last_error: true,
  reference: true,
  delivered_at: true,
  created_at: true,
  updated_at: true,
  seal: true,
});
export const LIMIT_USE_COLUMNS = columnsOf<LimitUseRow>({
  policy: true,
  limit_name: true,
  subject: true,
  action_id: true,
  at: true,
  amount: true,
  until: true,
});
export const PAST_ACTION_COLUMNS = columnsOf<PastActionRef>({
  policy: true,
  basis: true,
  subject: true,
  action_id: true,
  at: true,
  until: true,
});
export const DOCUMENT_COLUMNS = columnsOf<DocumentRow>({
  plugin: true,
  key: true,
  value: true,
  version: true,
  seal: true,
});

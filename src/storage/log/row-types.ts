/** The tables of the logged storage. */
import type {
  ActionRow,
  AgentRow,
  ApprovalRow,
  DeliveryRow,
  DocumentRow,
  EntryRow,
  IdempotencyRow,
  KeyRow,
  LedgerHead,
  LimitUseRow,
  PastActionRef,
  PolicyRow,
  PolicySetRow,
  PolicyVersionRow,
  TileRow,
} from "../../contract/storage.ts";
import type { TransactionTable, StoredTable, Table } from "./tables.ts";

export interface Rows {
  head: LedgerHead;
  checkpoint: { size: number; note: string };
  entries: EntryRow;
  entriesByHash: EntryRow;
  tiles: TileRow;
  actions: ActionRow;
  /** Index of the actions by `decision_seq`, which is unique. */
  actionsBySeq: { id: string };
  approvals: ApprovalRow;
  idempotency: IdempotencyRow;
  keys: KeyRow;
  agents: AgentRow;
  policies: PolicyRow;
  policyVersions: PolicyVersionRow;
  policySets: PolicySetRow;
  deliveries: DeliveryRow;
  limitUses: LimitUseRow;
  pastActions: PastActionRef;
  documents: DocumentRow;
  /** The highest version of any document. */
  documentCounter: { last: number };
  meta: { value: string };
}

export type Tables = { [Name in keyof Rows]: Table<Rows[Name]> };
export type StoredTables = { [Name in keyof Rows]: StoredTable<Rows[Name]> };
export type TransactionTables = { [Name in keyof Rows]: TransactionTable<Rows[Name]> };

export const TABLE_NAMES: readonly (keyof Rows)[] = [
  "head",
  "checkpoint",
  "entries",
  "entriesByHash",
  "tiles",
  "actions",
  "actionsBySeq",
  "approvals",
  "idempotency",
  "keys",
  "agents",
  "policies",
  "policyVersions",
  "policySets",
  "deliveries",
  "limitUses",
  "pastActions",
  "documents",
  "documentCounter",
  "meta",
];
/** Key of the only row in a single-row table. */
export const SINGLE_ROW_KEY = "only";

export function readLedgerSize({ head }: Pick<Tables, "head">): number {
  return (head.get(SINGLE_ROW_KEY) as LedgerHead).size;
}

export type StorageMethods = Record<string, (...args: never[]) => unknown>;

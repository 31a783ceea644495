/** The names of the contract's methods. The compiler refuses a list that is not complete. */
import type { StorageReader, StorageWrites } from "./transaction.ts";

/** Every member of T exactly once: one that is forgotten does not compile. */
export function namesOf<T>(members: { readonly [Name in keyof T]-?: true }): readonly (keyof T & string)[] {
  return Object.keys(members) as (keyof T & string)[];
}

/** Every read of the contract. */
export const READER_METHODS = namesOf<StorageReader>({
  head: true,
  checkpoint: true,
  entries: true,
  entryByHash: true,
  entriesOfAction: true,
  leafHashes: true,
  tile: true,
  tileRoots: true,
  action: true,
  actions: true,
  decisionSpan: true,
  decisions: true,
  overdueActions: true,
  pendingActions: true,
  pendingCount: true,
  nextExpiry: true,
  approvals: true,
  idempotency: true,
  analytics: true,
  keyByHash: true,
  key: true,
  keys: true,
  agent: true,
  agents: true,
  policy: true,
  policyByName: true,
  policies: true,
  policyVersion: true,
  policyVersions: true,
  policySet: true,
  delivery: true,
  deliveries: true,
  deliveriesOfAction: true,
  dueDeliveries: true,
  nextDelivery: true,
  limitUsed: true,
  document: true,
  documents: true,
  meta: true,
});

/** What a transaction has besides the reads. */
export const WRITER_METHODS = namesOf<StorageWrites>({
  append: true,
  putCheckpoint: true,
  insertAction: true,
  updateAction: true,
  insertApproval: true,
  insertIdempotency: true,
  insertKey: true,
  revokeKey: true,
  touchKey: true,
  insertAgent: true,
  updateAgent: true,
  insertPolicy: true,
  updatePolicy: true,
  insertPolicyVersion: true,
  putPolicySet: true,
  insertDelivery: true,
  updateDelivery: true,
  releaseDeliveries: true,
  pruneDeliveries: true,
  insertLimitUse: true,
  releaseLimitUses: true,
  pruneLimitUses: true,
  putDocument: true,
  deleteDocument: true,
  putMeta: true,
});

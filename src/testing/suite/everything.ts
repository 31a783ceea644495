/** Writes a row of every kind, and reads with every method. */
import type { StorageReader, StorageTransaction } from "../../contract/storage.ts";
import { NO_FOLLOWED_ENTRIES } from "../../domain/followed-digest.ts";
import { EMPTY_ROOT } from "../../domain/merkle.ts";
import {
  actionRow,
  agentRow,
  appendEntries,
  approvalRow,
  deliveryRow,
  headRow,
  idempotencyRow,
  keyRow,
  policyRow,
  policySetRow,
  BASE_TIME,
  tileRow,
  HISTORY_SPAN,
  limitUseRow,
  pastActionRow,
  policyVersionRow,
  readBareHead,
  documentRow,
} from "./rows.ts";

/** Writes a row of every kind, with every method that inserts. */
export async function writeEverything(tx: StorageTransaction): Promise<void> {
  await appendEntries(tx, 1, { type: "api_key", action_id: null, followed: true });
  await appendEntries(tx, 1);
  await tx.append([], [tileRow(0, 0)], headRow(2, { policy_set: policySetRow(1).digest, epoch: 1 }));
  await tx.putCheckpoint(2, "note");
  await tx.insertAction(
    actionRow(1, { status: "pending_approval", decision: "require_approval", expires_at: BASE_TIME, waited_ms: 5 }),
  );
  await tx.insertAction(actionRow(0, { approved_until: BASE_TIME }));
  await tx.insertAction(actionRow(2, { status: "approved", approved_until: BASE_TIME + 9 }));
  await tx.insertAction(actionRow(3, { status: "denied", rejection_until: BASE_TIME + 9 }));
  await tx.insertApproval(approvalRow("action-1", "user:dana"));
  await tx.insertIdempotency(idempotencyRow("a"));
  await tx.insertKey(keyRow(1));
  await tx.insertAgent(agentRow(1));
  await tx.insertPolicy(policyRow(1));
  await tx.insertPolicyVersion(policyVersionRow("policy-1", 1));
  await tx.putPolicySet(policySetRow(1));
  const { position: _, ...delivery } = deliveryRow(1);
  await tx.insertDelivery(delivery);
  await tx.insertDelivery({ ...delivery, id: "delivery-2", state: "scheduled" });
  await tx.insertLimitUse(limitUseRow(1));
  await tx.insertPastAction(pastActionRow(1));
  await tx.putDocument(documentRow("a"), null);
  await tx.putMeta("origin", "example.com/log");
}

/** Results of all reads of the contract. The compiler reports a missing method. */
type Everything = Record<keyof StorageReader, unknown>;

const ALL = { visibility: { all: true } } as const;

export async function readEverything(reader: StorageReader): Promise<Everything> {
  return {
    head: await readBareHead(reader),
    checkpoint: await reader.checkpoint(),
    entries: await reader.entries(0, 10),
    entryByHash: await reader.entryByHash((await reader.leafHashes(0, 1))[0] ?? new Uint8Array(32)),
    entriesOfAction: await reader.entriesOfAction("action-1"),
    followedEntries: await reader.followedEntries(0, 10),
    leafHashes: await reader.leafHashes(0, 10),
    tile: await reader.tile(0, 0),
    tileRoots: await reader.tileRoots(0, 0, 10),
    action: await reader.action("action-1"),
    actionsById: await reader.actionsById(["action-1", "action-none"]),
    openAction: await reader.openAction("key-1", actionRow(2).request_hash, BASE_TIME),
    actions: await reader.actions({ ...ALL, limit: 10 }),
    decisionSpan: await reader.decisionSpan(0, BASE_TIME + 99),
    decisions: await reader.decisions({
      ...ALL,
      from_seq: 0,
      before_seq: 9,
      since: 0,
      until: BASE_TIME + 99,
      limit: 10,
    }),
    rejectedAction: await reader.rejectedAction(actionRow(3).request_hash, BASE_TIME),
    overdueActions: await reader.overdueActions(BASE_TIME, 10),
    pendingActions: await reader.pendingActions({ all: true }, { expires_at: 0, decision_seq: 0 }, 10),
    approvedActions: await reader.approvedActions({ approved_until: 0, decision_seq: 0 }, 10),
    openActionsOf: await reader.openActionsOf({ agent_id: "agent-1" }, 0, 10),
    pendingCount: await reader.pendingCount({ all: true }, 0),
    approvalRequests: await reader.approvalRequests("key-1", 0, BASE_TIME + 99, 10),
    oldestPending: await reader.oldestPending(0),
    nextExpiry: await reader.nextExpiry(),
    approvals: await reader.approvals("action-1"),
    approvalsOfActions: await reader.approvalsOfActions(["action-1", "action-none"]),
    idempotency: await reader.idempotency("key-1", "POST /v1/actions", "a"),
    idempotencies: await reader.idempotencies([{ key_id: "key-1", route: "POST /v1/actions", idempotency_key: "a" }]),
    idempotencyBefore: await reader.idempotencyBefore(
      BASE_TIME + 1,
      { created_at: -1, key_id: "", route: "", idempotency_key: "" },
      10,
    ),
    analytics: (await reader.analytics({ ...ALL, boundaries: [BASE_TIME, BASE_TIME + 99] })).waits,
    keyByHash: await reader.keyByHash(keyRow(1).hash),
    key: await reader.key("key-1"),
    keys: await reader.keys(),
    agent: await reader.agent("agent-1"),
    agents: await reader.agents({ limit: 10 }),
    policy: await reader.policy("policy-1"),
    policyByName: await reader.policyByName("policy 1"),
    policies: await reader.policies(),
    policyVersion: await reader.policyVersion("policy-1", 1),
    policyVersions: await reader.policyVersions("policy-1"),
    policySet: await reader.policySet(policySetRow(1).digest),
    delivery: await reader.delivery("delivery-1"),
    deliveries: await reader.deliveries({ limit: 10 }),
    deliveriesOfAction: await reader.deliveriesOfAction("action-1"),
    dueDeliveries: await reader.dueDeliveries(BASE_TIME, 10),
    deliveryBacklog: await reader.deliveryBacklog(),
    nextScheduledDelivery: await reader.nextScheduledDelivery(),
    limitUses: await reader.limitUses(
      { policy: "payments", limit_name: "refunds a day", subject: "agent-1", since: BASE_TIME },
      10,
    ),
    limitsUsed: await reader.limitsUsed([
      { policy: "payments", limit_name: "refunds a day", subject: "agent-1", since: BASE_TIME },
    ]),
    limitUsed: await reader.limitUsed("payments", "refunds a day", "agent-1", 0),
    pastActions: await reader.pastActions({ ...HISTORY_SPAN, limit: 10 }),
    document: await reader.document("notes", "a"),
    documents: await reader.documents({ plugin: "notes", prefix: "", limit: 10 }),
    meta: await reader.meta("origin"),
  };
}

/** Results of `readEverything` for an empty store. */
export const EMPTY_STORE: Everything = {
  head: {
    size: 0,
    root: EMPTY_ROOT,
    edge: [],
    policy_set: null,
    epoch: 0,
    followed_digest: NO_FOLLOWED_ENTRIES,
    seal: "",
  },
  checkpoint: null,
  entries: [],
  entryByHash: null,
  entriesOfAction: [],
  followedEntries: [],
  leafHashes: [],
  tile: null,
  tileRoots: [],
  action: null,
  actionsById: [],
  openAction: null,
  actions: [],
  decisionSpan: null,
  decisions: [],
  rejectedAction: null,
  overdueActions: [],
  pendingActions: [],
  approvedActions: [],
  openActionsOf: [],
  pendingCount: 0,
  approvalRequests: { requests: 0, hours: 0 },
  oldestPending: null,
  nextExpiry: null,
  approvals: [],
  approvalsOfActions: [],
  idempotency: null,
  idempotencies: [],
  idempotencyBefore: [],
  analytics: { count: 0, approved: 0, p50: null, p95: null },
  keyByHash: null,
  key: null,
  keys: [],
  agent: null,
  agents: [],
  policy: null,
  policyByName: null,
  policies: [],
  policyVersion: null,
  policyVersions: [],
  policySet: null,
  delivery: null,
  deliveries: [],
  deliveriesOfAction: [],
  dueDeliveries: [],
  deliveryBacklog: {
    scheduled: { count: 0, oldest: null },
    waiting: { count: 0, oldest: null },
    dead: { count: 0, oldest: null },
  },
  nextScheduledDelivery: null,
  limitUses: [],
  limitsUsed: [{ count: 0, sum: 0 }],
  limitUsed: { count: 0, sum: 0 },
  pastActions: [],
  document: null,
  documents: [],
  meta: null,
};

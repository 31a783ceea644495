/** Rows for the storage suite. Rows of one kind differ in every member that must be unique. */
import {
  StorageError,
  type ActionRow,
  type AgentRow,
  type ApprovalRow,
  type DeliveryRow,
  type DocumentRow,
  type EntryRow,
  type IdempotencyRow,
  type KeyRow,
  type LedgerHead,
  type LimitUseRow,
  type PastActionRef,
  type PolicyRow,
  type PolicySetRow,
  type PolicyVersionRow,
  type Storage,
  type StorageReader,
  type StorageTransaction,
  type TileRow,
} from "../../contract/storage.ts";
import { NO_FOLLOWED_ENTRIES } from "../../domain/followed-digest.ts";
import { hashLeaf } from "../../domain/merkle.ts";

/** 2026-01-01T00:00:00Z. The times of rows are relative to it. */
export const BASE_TIME = 1_767_225_600_000;

interface Fixture {
  storage: Storage;
  /** Closes the store and opens it again from its disk. */
  reopen(): Promise<Storage>;
  /** Creates an unopened object for the same store, like another process. */
  another(): Promise<Storage>;
}

/** Declares one case, which runs on a new, open, empty store. */
export type DefineCase = (name: string, fn: (fixture: Fixture) => Promise<void>) => void;

export const isStorageError = (error: unknown): boolean => error instanceof StorageError;

const encoder = new TextEncoder();

export function leafHashOfText(text: string): Uint8Array {
  return hashLeaf(encoder.encode(text));
}

export function leafHashHex(text: string): string {
  return [...leafHashOfText(text)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function entryRow(seq: number, overrides: Partial<EntryRow> = {}): EntryRow {
  const bytes = overrides.bytes ?? encoder.encode(`{"seq":${seq}}`);
  return {
    seq,
    type: "decision",
    leaf_hash: hashLeaf(bytes),
    bytes,
    action_id: `action-${seq}`,
    agent_id: "agent-1",
    submitted_by: "key-1",
    followed: false,
    created_at: BASE_TIME + seq,
    ...overrides,
  };
}

/** Returns a head. Its root is not the root of the tree, because the suite tests only what a storage stores. */
export function headRow(size: number, overrides: Partial<LedgerHead> = {}): LedgerHead {
  return {
    size,
    root: leafHashOfText(`root ${size}`),
    edge: size === 0 ? [] : [leafHashOfText(`edge ${size}`)],
    policy_set: null,
    epoch: 0,
    followed_digest: size === 0 ? NO_FOLLOWED_ENTRIES : leafHashOfText(`followed ${size}`),
    seal: size === 0 ? "" : `seal ${size}`,
    ...overrides,
  };
}

export function tileRow(level: number, index: number): TileRow {
  const hashes = new Uint8Array(256 * 32);
  for (let i = 0; i < 256; i++) hashes.set(leafHashOfText(`${level}/${index}/${i}`), i * 32);
  return { level, index, hashes, root: leafHashOfText(`tile ${level}/${index}`) };
}

/** Appends `count` entries after the stored entries. */
export async function appendEntries(
  tx: StorageTransaction,
  count: number,
  overrides: Partial<EntryRow> = {},
): Promise<EntryRow[]> {
  const head = await tx.head();
  const rows = Array.from({ length: count }, (_, i) => entryRow(head.size + i, overrides));
  await tx.append(rows, [], headRow(head.size + count, { policy_set: head.policy_set, epoch: head.epoch }));
  return rows;
}

export function actionRow(n: number, overrides: Partial<ActionRow> = {}): ActionRow {
  return {
    id: `action-${n}`,
    agent_id: "agent-1",
    tool: "stripe",
    operation: "refund",
    request: `{"agent_id":"agent-1","context":{},"operation":"refund","params":{"n":${n}},"tool":"stripe"}`,
    request_hash: leafHashHex(`request ${n}`),
    salt: leafHashHex(`salt ${n}`),
    past: null,
    meta: null,
    questions: null,
    effective: null,
    effective_hash: null,
    asked_at: null,
    waits: null,
    status: "allowed",
    decision: "allow",
    reason: "small refunds",
    reason_code: "POLICY_RULE",
    risk_level: null,
    policy: null,
    rule: null,
    policy_version: null,
    policy_hash: null,
    decision_seq: n,
    decision_hash: leafHashHex(`decision ${n}`),
    submitted_by: "key-1",
    submitted_agent: null,
    submitted_owner: null,
    quorum: null,
    expires_at: null,
    approved_until: null,
    rejection_until: null,
    allowed_by: null,
    plan_id: null,
    plan_position: null,
    authority: null,
    started_at: null,
    started_by: null,
    result: null,
    waited_ms: null,
    erased_at: null,
    created_at: BASE_TIME + n,
    updated_at: BASE_TIME + n,
    ...overrides,
  };
}

/** Returns an action with a value in every nullable member. */
export function fullActionRow(n: number): ActionRow {
  return actionRow(n, {
    status: "pending_approval",
    decision: "require_approval",
    past: '{"limits":[],"salt":"00"}',
    meta: '{"meta":{"session":"s"},"salt":"00"}',
    effective: '{"salt":"00"}',
    effective_hash: leafHashHex("effective"),
    questions: '[{"answer":null}]',
    asked_at: BASE_TIME + 4,
    waits: '{"process":1}',
    risk_level: "high",
    policy: "payments",
    rule: "large refunds",
    policy_version: 3,
    policy_hash: leafHashHex("policy"),
    submitted_agent: "agent-1",
    submitted_owner: "user:dana",
    quorum: 2,
    expires_at: BASE_TIME + 60_000,
    approved_until: BASE_TIME + 2,
    rejection_until: BASE_TIME + 7,
    allowed_by: "grant-1",
    plan_id: "plan-1",
    plan_position: 3,
    authority: '{"id":"authority-1","links":[]}',
    started_at: BASE_TIME + 3,
    started_by: "key-9",
    result: '{"error":null,"meta":{},"success":true}',
    waited_ms: 1234,
  });
}

export function approvalRow(actionId: string, principal: string, overrides: Partial<ApprovalRow> = {}): ApprovalRow {
  return {
    action_id: actionId,
    principal,
    key_id: "key-2",
    approve: true,
    reason: null,
    self_approval: false,
    on_behalf_of: null,
    break_glass: false,
    signed: false,
    seq: 1,
    created_at: BASE_TIME,
    ...overrides,
  };
}

export function idempotencyRow(key: string, overrides: Partial<IdempotencyRow> = {}): IdempotencyRow {
  return {
    key_id: "key-1",
    route: "POST /v1/actions",
    idempotency_key: key,
    body_hash: leafHashHex(key),
    resource_id: `action-${key}`,
    created_at: BASE_TIME,
    seal: leafHashHex(`seal ${key}`),
    ...overrides,
  };
}

export function keyRow(n: number, overrides: Partial<KeyRow> = {}): KeyRow {
  return {
    id: `key-${n}`,
    name: `key ${n}`,
    hash: leafHashHex(`key ${n}`),
    prefix: `ask_${n}`,
    scopes: ["actions:submit", "actions:read"],
    agent_id: null,
    owner: null,
    created_by: null,
    created_at: BASE_TIME + n,
    expires_at: null,
    revoked_at: null,
    last_used_at: null,
    ...overrides,
  };
}

export function agentRow(n: number, overrides: Partial<AgentRow> = {}): AgentRow {
  return {
    id: `agent-${n}`,
    name: `agent ${n}`,
    description: null,
    allowed_tools: null,
    metadata: "{}",
    suspended_at: null,
    suspended_reason: null,
    version: 1,
    registered_seq: n,
    created_by: null,
    created_at: BASE_TIME + n,
    updated_at: BASE_TIME + n,
    ...overrides,
  };
}

export function policyRow(n: number, overrides: Partial<PolicyRow> = {}): PolicyRow {
  return {
    id: `policy-${n}`,
    name: `policy ${n}`,
    managed_by: null,
    latest_version: 1,
    active_version: null,
    deleted_at: null,
    created_at: BASE_TIME + n,
    updated_at: BASE_TIME + n,
    ...overrides,
  };
}

export function policyVersionRow(
  policyId: string,
  version: number,
  overrides: Partial<PolicyVersionRow> = {},
): PolicyVersionRow {
  return {
    policy_id: policyId,
    version,
    definition: `{"policy":"${policyId}"}`,
    yaml: `policy: ${policyId} # a comment\n`,
    digest: leafHashHex(`${policyId} ${version}`),
    created_by: null,
    created_at: BASE_TIME,
    ...overrides,
  };
}

export function policySetRow(n: number, overrides: Partial<PolicySetRow> = {}): PolicySetRow {
  return {
    digest: leafHashHex(`set ${n}`),
    document: `{"format":"assent-policy-set/1","n":${n}}`,
    created_at: BASE_TIME + n,
    ...overrides,
  };
}

/** Returns a delivery with the position that the first `insertDelivery` assigns. */
export function deliveryRow(n: number, overrides: Partial<DeliveryRow> = {}): DeliveryRow {
  return {
    position: n,
    id: `delivery-${n}`,
    destination: "mail dana@example.com",
    notifier: "mail",
    recipient: "dana@example.com",
    kind: "approval_requested",
    seq: n,
    action_id: `action-${n}`,
    person: "user:dana",
    channel: "finance",
    state: "waiting",
    attempts: 0,
    next_at: BASE_TIME,
    give_up_at: BASE_TIME + 1000,
    last_error: null,
    reference: null,
    delivered_at: null,
    created_at: BASE_TIME,
    updated_at: BASE_TIME,
    seal: leafHashHex(`seal ${n}`),
    ...overrides,
  };
}

/** Returns a document without the version, which the store assigns. */
export function documentRow(key: string, overrides: Partial<DocumentRow> = {}): Omit<DocumentRow, "version"> {
  return { plugin: "notes", key, value: "{}", seal: leafHashHex(`seal ${key}`), ...overrides };
}

export function limitUseRow(n: number, overrides: Partial<LimitUseRow> = {}): LimitUseRow {
  return {
    policy: "payments",
    limit_name: "refunds a day",
    subject: "agent-1",
    action_id: `action-${n}`,
    at: BASE_TIME + n,
    amount: n * 1_000_000,
    until: BASE_TIME + n + 100,
    ...overrides,
  };
}

/** All actions of the history of `pastActionRow`. */
export const HISTORY_SPAN = {
  policy: "mail",
  basis: "0123456789abcdef",
  subject: "owner-1",
  since: BASE_TIME,
} as const;

export function pastActionRow(n: number, overrides: Partial<PastActionRef> = {}): PastActionRef {
  const { since: _, ...history } = HISTORY_SPAN;
  return { ...history, action_id: `action-${n}`, at: BASE_TIME + n, until: BASE_TIME + n + 100, ...overrides };
}

/** Reads the head without `server`, which only stores that processes can share return. */
export async function readBareHead(reader: Pick<StorageReader, "head">): Promise<LedgerHead> {
  const { server: _server, ...head } = await reader.head();
  return head;
}

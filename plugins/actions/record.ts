/** An action as the API shows it, to one credential. */
import type { Credential, Host } from "../../src/contract/host.ts";
import type { Reply } from "../../src/contract/resource.ts";
import type { ActionRow, ApprovalRow } from "../../src/contract/storage.ts";
import { openMeta } from "../../src/domain/meta.ts";
import { requestOf } from "../../src/domain/request.ts";
import { toRfc3339 } from "../../src/domain/time.ts";
import { makeToken, type TokenClaims } from "../../src/domain/tokens.ts";
import { mintPermit } from "./permits.ts";
import { isRecorded } from "./recorded.ts";
import { asOf } from "./rows.ts";
import { ActionRecord, OUTCOME } from "./schemas.ts";
import { selfRelationOf } from "./standing.ts";

export function tokenClaims(row: ActionRow, principal: string): TokenClaims {
  return { action_id: row.id, request_hash: row.request_hash, approver: principal, expires_at: row.expires_at ?? 0 };
}

export function approvalMac(host: Host): (message: Uint8Array) => Uint8Array {
  return (message) => host.vault.mac("approval", message);
}

export function linkMac(host: Host): (message: Uint8Array) => Uint8Array {
  return (message) => host.vault.mac("approval-link", message);
}

/** The token only where this credential may use it now; `approvals` are the votes so far. */
function tokenFor(host: Host, row: ActionRow, votes: readonly ApprovalRow[], credential: Credential): string | null {
  if (row.status !== "pending_approval" || row.expires_at === null || row.expires_at <= host.clock()) return null;
  if (!credential.holds("approvals:decide")) return null;
  if (selfRelationOf(host, row, credential) !== null && !host.config.approvals.allow_self_approval) return null;
  if (votes.some((vote) => vote.principal === credential.principal)) return null;
  return makeToken("approval", tokenClaims(row, credential.principal), approvalMac(host));
}

/** @param fresh the row comes from the transaction that wrote it; one that was read is held against the ledger first */
function permitFor(host: Host, row: ActionRow, credential: Credential, fresh: boolean): Promise<string | null> | null {
  if (row.status !== "allowed" && row.status !== "approved") return null;
  const { permit_issued_at: issued_at, permit_expires_at: expires_at, decision_hash } = row;
  if (issued_at === null || expires_at === null || expires_at <= host.clock()) return null;
  if (!credential.holds("actions:execute")) return null;
  const permit = () => mintPermit(host, row, { decision_hash, issued_at, expires_at });
  return fresh ? permit() : isRecorded(host, row).then((recorded) => (recorded ? permit() : null));
}

const time = (ms: number | null): string | null => (ms === null ? null : toRfc3339(ms));

export interface RecordOptions {
  token: boolean;
  /** The row comes from the transaction that wrote it. */
  fresh?: boolean;
}

async function toRecord(
  host: Host,
  row: ActionRow,
  votes: readonly ApprovalRow[],
  credential: Credential,
  options: RecordOptions,
): Promise<ActionRecord> {
  // Begun before the rest is put together, and awaited where it stands.
  const permit = permitFor(host, row, credential, options.fresh ?? false);
  const request = requestOf(row) ?? { params: {}, context: {} };
  const record: ActionRecord = {
    id: row.id,
    agent_id: row.agent_id,
    tool: row.tool,
    operation: row.operation,
    params: request.params,
    context: request.context,
    meta: openMeta(row.meta),
    status: asOf(row, host.clock()).status,
    decision: row.decision,
    outcome: OUTCOME[row.decision],
    reason: row.reason,
    reason_code: row.reason_code,
    risk_level: row.risk_level,
    policy: row.policy,
    rule: row.rule,
    policy_hash: row.policy_hash,
    policy_version: row.policy_version,
    request_hash: row.erased_at === null ? row.request_hash : null,
    decision_hash: row.decision_hash,
    provenance_id: row.decision_hash,
    submitted_by: row.submitted_by,
    approvals: votesOf(votes),
    approvals_needed: row.quorum,
    permit: await permit,
    permit_expires_at: time(row.permit_expires_at),
    expires_at: time(row.expires_at),
    result: row.result === null ? null : (JSON.parse(row.result) as ActionRecord["result"]),
    erased_at: time(row.erased_at),
    created_at: toRfc3339(row.created_at),
    updated_at: toRfc3339(row.updated_at),
  };
  const token = options.token ? tokenFor(host, row, votes, credential) : null;
  if (token !== null) record.approval_token = token;
  return record;
}

export function votesOf(votes: readonly ApprovalRow[]): ActionRecord["approvals"] {
  return votes.map((vote) => ({
    approver: vote.principal,
    key_id: vote.key_id,
    approve: vote.approve,
    reason: vote.reason,
    self_approval: vote.self_approval,
    created_at: toRfc3339(vote.created_at),
  }));
}

/** Reads the votes where there can be any. */
export async function readRecord(
  host: Host,
  row: ActionRow,
  credential: Credential,
  options: RecordOptions,
): Promise<ActionRecord> {
  const votes = row.quorum === null ? [] : await host.storage.approvals(row.id);
  return toRecord(host, row, votes, credential, options);
}

export const RECORD = { description: "The action.", schema: ActionRecord };

/** The answer of a route that gives one action, with the approval token where this credential may use it. */
export async function answerWith(
  host: Host,
  row: ActionRow,
  credential: Credential,
  { headers = {}, fresh = false }: { headers?: Record<string, string>; fresh?: boolean } = {},
): Promise<Reply> {
  return { status: 200, json: await readRecord(host, row, credential, { token: true, fresh }), headers };
}

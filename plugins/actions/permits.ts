/** Permits of actions: made of a row, and held against one. */
import { randomBytes } from "node:crypto";
import type { Host } from "../../src/contract/host.ts";
import type { ActionRow } from "../../src/contract/storage.ts";
import { toBase64Url } from "../../src/domain/hash.ts";
import type { PermitFault, PermitGrant, PermitSubject } from "../../src/domain/permit.ts";
import { actionDigest, requestOf, sealRequest } from "../../src/domain/request.ts";

/**
 * Null when what the action asked for was erased, or is not what its hash says: a digest of parameters that somebody
 * wrote into the store must not be signed.
 */
function subjectOf(host: Host, row: ActionRow): PermitSubject | null {
  const request = requestOf(row);
  if (request === null || sealRequest(request).hash !== row.request_hash) return null;
  return {
    issuer: host.ledger.origin,
    action_id: row.id,
    agent_id: row.agent_id,
    tool: row.tool,
    operation: row.operation,
    action_digest: actionDigest(request),
    request_hash: row.request_hash,
  };
}

/**
 * A new permit for an action as the ledger has it. Null when nothing of it may be signed.
 * @param grant `issued_at` is the ledger's clock in the transaction that grants it: a permit from later is refused
 */
export function mintPermit(host: Host, row: ActionRow, grant: Omit<PermitGrant, "id">): Promise<string | null> {
  const subject = subjectOf(host, row);
  if (subject === null) return Promise.resolve(null);
  return host.permits.make(subject, { ...grant, id: toBase64Url(randomBytes(16)) });
}

/** What is wrong with a permit as one for this action, at the ledger's `now`; null when nothing is. */
export function permitFault(host: Host, row: ActionRow, permit: string, now: number): PermitFault | null {
  const subject = subjectOf(host, row);
  return subject === null ? "other_subject" : host.permits.check(permit, subject, now);
}

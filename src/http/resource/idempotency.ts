/**
 * `Idempotency-Key`: if a credential sends a POST again with the same idempotency key, the second request creates
 * nothing and returns the result of the first request. The transaction that creates the resource also stores the key.
 */
import { Refusal } from "../../contract/errors.ts";
import type { Credential } from "../../contract/host.ts";
import type { LedgerTransaction } from "../../contract/ledger.ts";
import type { IdempotencyLookup } from "../../contract/storage.ts";
import { canonicalText } from "../../domain/canonical.ts";
import { sha256Hex, utf8 } from "../../domain/hash.ts";
import type { JsonValue } from "../../domain/json.ts";

export interface IdempotentCall {
  key: string;
  /** Method and path template of the route. */
  route: string;
  /**
   * SHA-256 of the canonical body in hex; an empty string if the resource itself compares a repeated request with the
   * original.
   */
  bodyHash: string;
}

/** Headers of a response to a repeated request. */
export const REPLAYED_HEADERS = { "Idempotency-Replayed": "true" } as const;

/** Reads the header. Returns null if it is absent. Throws VALIDATION_FAILED. */
export function readIdempotencyKey(headers: Headers): string | null {
  const key = headers.get("idempotency-key");
  if (key === null) return null;
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new Refusal("VALIDATION_FAILED", "the Idempotency-Key header must have 1 to 255 visible ASCII characters", {
      errors: [{ parameter: "Idempotency-Key", detail: "1 to 255 visible ASCII characters" }],
    });
  }
  return key;
}

/**
 * Reads the header, and hashes the body. Returns null if the header is absent. Throws VALIDATION_FAILED.
 * @param body everything in the request that determines the created resource
 */
export function readIdempotentCall(headers: Headers, route: string, body: unknown): IdempotentCall | null {
  const key = readIdempotencyKey(headers);
  return key === null ? null : { key, route, bodyHash: sha256Hex(utf8(canonicalText(body as JsonValue))) };
}

/** Returns the lookup for the row of the first call. */
export function toIdempotencyLookup(credential: Credential, call: IdempotentCall): IdempotencyLookup {
  return { key_id: credential.key.id, route: call.route, idempotency_key: storedKey(credential, call) };
}

/**
 * Returns the idempotency key in its stored form. All agents of a user share the user's id, so theirs begin with the
 * agent and a space. A client's key contains no space.
 */
function storedKey({ key, workload }: Credential, call: IdempotentCall): string {
  return workload?.user_id == null ? call.key : `${key.agent_id} ${call.key}`;
}

/**
 * Returns the id of the resource that the first call created, or null if this is the first call. Throws
 * IDEMPOTENCY_CONFLICT for a different body, and STORE_ALTERED if someone changed the row of the first call.
 */
export async function findCreatedResource(
  tx: Pick<LedgerTransaction, "idempotency" | "seals">,
  credential: Credential,
  call: IdempotentCall | null,
): Promise<string | null> {
  if (call === null) return null;
  const { key_id, route, idempotency_key } = toIdempotencyLookup(credential, call);
  const earlier = await tx.idempotency(key_id, route, idempotency_key);
  if (earlier === null) return null;
  tx.seals.assertMatches("idempotency", earlier);
  if (call.bodyHash !== "" && earlier.body_hash !== call.bodyHash)
    throw idempotencyConflictRefusal(call, earlier.resource_id);
  return earlier.resource_id;
}

export function idempotencyConflictRefusal({ key }: IdempotentCall, created: string): Refusal {
  return new Refusal(
    "IDEMPOTENCY_CONFLICT",
    `the idempotency key "${key}" was used with another body, which created ${created}; use a new key for a new body`,
  );
}

/**
 * Stores the idempotency key with the id of the created resource. Does nothing for a request without a key.
 * @param createdAt the creation time of the resource. Default: the time of this transaction
 */
export async function recordCreatedResource(
  tx: Pick<LedgerTransaction, "insertIdempotency" | "now" | "seals">,
  credential: Credential,
  call: IdempotentCall | null,
  resourceId: string,
  createdAt = tx.now,
): Promise<void> {
  if (call === null) return;
  const row = {
    ...toIdempotencyLookup(credential, call),
    body_hash: call.bodyHash,
    resource_id: resourceId,
    created_at: createdAt,
  };
  await tx.insertIdempotency({ ...row, seal: tx.seals.seal("idempotency", row) });
}

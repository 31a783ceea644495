/**
 * `Idempotency-Key`: a POST that creates, sent again under the same key by the same credential,
 * creates nothing and answers what the first one made. What was created is remembered in the
 * transaction that created it.
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
  /** Method and path template. */
  route: string;
  /** SHA-256 of the canonical body, hex; empty where what was created knows what it was made from: its resource compares that. */
  bodyHash: string;
}

/** Says in the answer that nothing was created this time. */
export const REPLAYED_HEADERS = { "Idempotency-Replayed": "true" } as const;

/** Null without the header. Throws VALIDATION_FAILED. */
export function readIdempotencyKey(headers: Headers): string | null {
  const key = headers.get("idempotency-key");
  if (key === null) return null;
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new Refusal("VALIDATION_FAILED", "the Idempotency-Key header takes 1 to 255 visible ASCII characters", {
      errors: [{ parameter: "Idempotency-Key", detail: "1 to 255 visible ASCII characters" }],
    });
  }
  return key;
}

/** @param body everything of the request that decides what is created */
export function readIdempotentCall(headers: Headers, route: string, body: unknown): IdempotentCall | null {
  const key = readIdempotencyKey(headers);
  return key === null ? null : { key, route, bodyHash: sha256Hex(utf8(canonicalText(body as JsonValue))) };
}

/** What the call is found by again. */
export function idempotencyLookup({ key }: Credential, call: IdempotentCall): IdempotencyLookup {
  return { key_id: key.id, route: call.route, idempotency_key: call.key };
}

/** Id of what the first call created; null when this is the first. Throws IDEMPOTENCY_CONFLICT for another body. */
export async function findCreatedResource(
  tx: Pick<LedgerTransaction, "idempotency">,
  who: Credential,
  call: IdempotentCall | null,
): Promise<string | null> {
  if (call === null) return null;
  const earlier = await tx.idempotency(who.key.id, call.route, call.key);
  if (earlier === null) return null;
  if (call.bodyHash !== "" && earlier.body_hash !== call.bodyHash) throw idempotencyConflict(call, earlier.resource_id);
  return earlier.resource_id;
}

export function idempotencyConflict({ key }: IdempotentCall, created: string): Refusal {
  return new Refusal(
    "IDEMPOTENCY_CONFLICT",
    `the idempotency key "${key}" was used with another body, which made ${created}; send a new key with a new body`,
  );
}

/** @param createdAt when the resource was created, where that was earlier */
export async function recordCreatedResource(
  tx: Pick<LedgerTransaction, "insertIdempotency" | "now">,
  who: Credential,
  call: IdempotentCall | null,
  resourceId: string,
  createdAt = tx.now,
): Promise<void> {
  if (call === null) return;
  await tx.insertIdempotency({
    key_id: who.key.id,
    route: call.route,
    idempotency_key: call.key,
    body_hash: call.bodyHash,
    resource_id: resourceId,
    created_at: createdAt,
  });
}

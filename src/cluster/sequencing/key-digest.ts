/** Which row of a key a process has gone by, so that another goes by no other. */
import type { KeyRow } from "../../contract/storage.ts";
import { sha256Hex, utf8 } from "../../domain/hash.ts";

const digests = new WeakMap<KeyRow, string>();

/** SHA-256 over every column but the time of its last use, hex. */
export function keyDigest(key: KeyRow): string {
  let digest = digests.get(key);
  if (digest === undefined) {
    const { id, name, hash, prefix, scopes, agent_id, owner, created_by, created_at, expires_at, revoked_at } = key;
    const columns = [id, name, hash, prefix, scopes, agent_id, owner, created_by, created_at, expires_at, revoked_at];
    digests.set(key, (digest = sha256Hex(utf8(JSON.stringify(columns)))));
  }
  return digest;
}

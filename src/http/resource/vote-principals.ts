/** Who stands behind a vote: by the keys and their makers, as the ledger has them. */
import type { CoreHost } from "../../contract/core-host.ts";
import type { Actor } from "../../domain/entries.ts";
import { listKeyMakers, principalsOfKeys } from "../../domain/standing.ts";

/** Principals behind a vote. `key_id` is of no key where a link was used: then nobody else is. */
export function principalsBehindVote(
  host: Pick<CoreHost, "config" | "keys">,
  vote: Pick<Actor, "principal" | "key_id">,
): string[] {
  const { principal, key_id } = vote;
  return host.config.approvals.trust_key_makers
    ? [principal]
    : [principal, ...principalsOfKeys(listKeyMakers(key_id, (id) => host.keys.recordedKey(id)))];
}

/** Records changes of policies in the ledger, with or without a change of the active policy set. */
import type { Credential } from "../contract/host.ts";
import type { LedgerTransaction } from "../contract/ledger.ts";
import { toActor } from "../domain/actor.ts";
import { canonicalBytes } from "../domain/canonical.ts";
import type { RecordedPolicyChange } from "../domain/entries.ts";
import type { JsonValue } from "../domain/json.ts";
import type { PolicySetDocument } from "../domain/policy/policy-types.ts";
import { toRfc3339 } from "../domain/time.ts";

const LISTED_POLICIES = 200;
/** Maximum size of the changes in one entry, in bytes. */
const MAX_CHANGES_BYTES = 16_000;

interface PolicySetChange {
  digest: string | null;
  document: PolicySetDocument;
  source: Record<string, string>;
  by: Credential | null;
}

/**
 * Records the new policy set and the changed policies. Splits many changes over several entries, of which only the last
 * changes the set.
 */
export function recordPolicySet(
  tx: LedgerTransaction,
  set: PolicySetChange,
  changes: readonly RecordedPolicyChange[],
): void {
  const { digest: previous, compiled } = tx.activePolicies;
  const parts = partsOf(changes);
  const last = parts.pop() ?? [];
  const unchangedSet = { ...set, digest: previous, document: compiled.document };
  for (const part of parts) recordEntry(tx, previous, unchangedSet, part);
  recordEntry(tx, previous, set, last);
}

function recordEntry(
  tx: LedgerTransaction,
  previous: string | null,
  { digest, document, source, by }: PolicySetChange,
  changes: RecordedPolicyChange[],
): void {
  const { policies } = document;
  tx.record({
    type: "policy_set",
    v: 1,
    at: toRfc3339(tx.now),
    previous,
    policy_set: digest,
    policy_count: policies.length,
    policies: policies.length > LISTED_POLICIES ? null : policies.map(({ policy, version }) => ({ policy, version })),
    source,
    changes,
    by: by === null ? null : toActor(by.key, by.principal),
  });
}

function partsOf(changes: readonly RecordedPolicyChange[]): RecordedPolicyChange[][] {
  const parts: RecordedPolicyChange[][] = [];
  let room = 0;
  for (const change of changes) {
    const size = canonicalBytes(change as unknown as JsonValue).length + 1;
    if (size > room) {
      parts.push([]);
      room = MAX_CHANGES_BYTES;
    }
    parts.at(-1)?.push(change);
    room -= size;
  }
  return parts;
}

/** Records changes of policies in the ledger and stores them, with or without a change of the active policy set. */
import type { Credential } from "../contract/host.ts";
import type { LedgerTransaction } from "../contract/ledger.ts";
import type { PlannedPolicySet, PolicyUpdate } from "../contract/policies.ts";
import { toActor } from "../domain/actor.ts";
import { canonicalBytes } from "../domain/canonical.ts";
import type { PolicySetEntry, RecordedPolicyChange } from "../domain/entries.ts";
import type { JsonValue } from "../domain/json.ts";
import { toPolicyChange } from "../domain/recorded-policies.ts";
import { toRfc3339 } from "../domain/time.ts";

const LISTED_POLICIES = 200;
/** Maximum size of the changes in one entry, in bytes. */
const MAX_CHANGES_BYTES = 16_000;

interface PolicySetChange {
  planned: PlannedPolicySet;
  source: Record<string, string>;
  by: Credential | null;
}

/**
 * Records the new policy set and the changed policies. Splits many changes over several entries, of which only the last
 * changes the set.
 */
export function recordPolicySet(tx: LedgerTransaction, set: PolicySetChange, updates: readonly PolicyUpdate[]): void {
  const { digest: previous, compiled } = tx.activePolicies;
  const parts = partsOf(updates);
  const last = parts.pop() ?? [];
  const unchangedSet = { ...set, planned: { digest: previous, document: compiled.document, text: "" } };
  for (const part of parts) recordEntry(tx, previous, unchangedSet, part);
  recordEntry(tx, previous, set, last);
}

function recordEntry(
  tx: LedgerTransaction,
  previous: string | null,
  { planned, source, by }: PolicySetChange,
  part: readonly RecordedUpdate[],
): void {
  const { policies } = planned.document;
  const entry: PolicySetEntry = {
    type: "policy_set",
    v: 1,
    at: toRfc3339(tx.now),
    previous,
    policy_set: planned.digest,
    policy_count: policies.length,
    policies: policies.length > LISTED_POLICIES ? null : policies.map(({ policy, version }) => ({ policy, version })),
    source,
    changes: part.map(({ change }) => change),
    by: by === null ? null : toActor(by.key, by.principal),
  };
  const texts = part.flatMap(({ change: { id }, text }) => (text === null ? [] : [[id, text] as const]));
  tx.recordPolicies(entry, new Map(texts), planned.text);
}

interface RecordedUpdate extends Pick<PolicyUpdate, "text"> {
  change: RecordedPolicyChange;
}

function partsOf(updates: readonly PolicyUpdate[]): RecordedUpdate[][] {
  const parts: RecordedUpdate[][] = [];
  let room = 0;
  for (const { policy, text } of updates) {
    const change = toPolicyChange(policy, text);
    const size = canonicalBytes(change as unknown as JsonValue).length + 1;
    if (size > room) {
      parts.push([]);
      room = MAX_CHANGES_BYTES;
    }
    parts.at(-1)?.push({ change, text });
    room -= size;
  }
  return parts;
}

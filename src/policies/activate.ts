/**
 * Changes the active policy set inside a batch. A change is first planned without writes. Then it is stored, recorded
 * and activated.
 */
import { Refusal } from "../contract/errors.ts";
import type { Credential } from "../contract/host.ts";
import { PreparationRequired, type LedgerTransaction } from "../contract/ledger.ts";
import type { PlannedPolicySet, PolicyActivation, PolicyUpdate } from "../contract/policies.ts";
import type { Reaction } from "../contract/reaction.ts";
import type { PolicyBundle } from "../contract/policy-source.ts";
import type { PolicyRow, StorageReader } from "../contract/storage.ts";
import { canonicalText } from "../domain/canonical.ts";
import { toActor } from "../domain/actor.ts";
import type { PolicySetEntry } from "../domain/entries.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import type { JsonValue } from "../domain/json.ts";
import {
  buildPolicySet,
  compilePolicySet,
  explainCompileFault,
  isPrecompiled,
  PolicyCompileError,
  precompilePolicySet,
} from "../domain/policy/compile/compile.ts";
import type { PolicyDocument } from "../domain/policy/policy-types.ts";
import { type ChangedPolicy, newPolicy, policySetSourceMeta } from "../domain/recorded-policies.ts";
import { clipText } from "../domain/text.ts";
import { toRfc3339 } from "../domain/time.ts";
import {
  type AcceptedBundle,
  assertBaselineLoaded,
  findSuggestionsReplacingRules,
  findUnloadedBaseline,
  isOwnedByOther,
  readAcceptedBundle,
  assertNoNameConflicts,
  type SourceNames,
} from "./baseline.ts";
import { recordPolicySet } from "./record-policy-set.ts";
import { assertRecordedDefinitions, readUnalteredPolicies } from "./unaltered-policies.ts";

/**
 * Returns the policy set after the edits, without storing it. An edit of null removes the policy. Throws
 * PolicyCompileError, and PreparationRequired if the set is not compiled yet.
 * @param sourceOf name of the source that manages a policy after the edits; null for the API
 */
function planPolicySet(
  tx: LedgerTransaction,
  edits: ReadonlyMap<string, PolicyActivation | null>,
  sourceOf: (policy: string) => string | null,
): PlannedPolicySet {
  const { digest: current, compiled } = tx.activePolicies;
  if (edits.size === 0) return { digest: current, document: compiled.document, text: "" };
  const members = tx.activePolicies.compiled.document.policies.filter(({ policy }) => !edits.has(policy));
  for (const [policy, edit] of edits)
    if (edit !== null) members.push({ policy, version: edit.version, definition: edit.definition });
  const document = buildPolicySet(members);
  // Without an active or added policy, there is no set.
  if (members.length === 0 && tx.activePolicies.digest === null) return { digest: null, document, text: "" };
  if (!isPrecompiled(document)) throw new PreparationRequired("a policy set", () => precompilePolicySet(document));
  const { digest } = compilePolicySet(document, sourceOf);
  return { digest, document, text: canonicalText(document as unknown as JsonValue) };
}

/**
 * Like `planPolicySet`, for edits through the API. Throws the Refusal `POLICY_INVALID` for policies that do not
 * compile, and `POLICY_MANAGED` while a baseline is not loaded.
 */
export async function planPolicySetOrRefuse(
  tx: LedgerTransaction,
  edits: ReadonlyMap<string, PolicyActivation | null>,
  baselines: SourceNames["baselines"],
): Promise<PlannedPolicySet> {
  const unloaded = edits.size === 0 ? null : await findUnloadedBaseline(tx, baselines);
  if (unloaded !== null)
    throw new Refusal(
      "POLICY_MANAGED",
      `the baseline of the source "${unloaded}" is not loaded yet, so the active policies cannot change; correct that source first`,
    );
  const managers = new Map((await readUnalteredPolicies(tx)).map(({ name, managed_by }) => [name, managed_by]));
  assertRecordedDefinitions(tx, edits);
  try {
    return planPolicySet(tx, edits, (policy) => managers.get(policy) ?? null);
  } catch (error) {
    if (!(error instanceof PolicyCompileError)) throw error;
    throw new Refusal(
      "POLICY_INVALID",
      `the policies do not compile together: ${error.faults[0]?.message ?? error.message}`,
      { errors: error.faults.slice(0, 20).map((fault) => ({ detail: explainCompileFault(fault) })) },
    );
  }
}

/** Records, stores and activates a planned set. Records nothing if neither the set nor a policy changes. */
export async function commitPolicySet(
  tx: LedgerTransaction,
  planned: PlannedPolicySet,
  source: Record<string, string>,
  by: Credential | null,
  changes: readonly PolicyUpdate[],
  reactions: readonly Reaction[],
): Promise<void> {
  const { digest, document } = planned;
  const isNewSet = digest !== null && digest !== tx.activePolicies.digest;
  if (isNewSet || changes.length > 0) recordPolicySet(tx, { planned, source, by }, changes);
  if (!isNewSet) return;
  const actor = by === null ? null : toActor(by.key, by.principal);
  for (const reaction of reactions) await reaction.policiesActivated?.(tx, document, actor);
}

/** Returns the source that last activated the set; null if none is recorded. */
export async function findSetSource(
  reader: Pick<StorageReader, "meta">,
  digest: string,
): Promise<Record<string, string> | null> {
  const text = await reader.meta(policySetSourceMeta(digest));
  return text === null ? null : (JSON.parse(text) as Record<string, string>);
}

const MAX_FAULT_LENGTH = 1000;

const refusedMeta = (sourceName: string): string => `policy_source_refused:${sourceName}`;

/**
 * Returns the `source` of the last bundle that any process rejected after the last accepted bundle; null if there is
 * none.
 */
export async function readRefusedSource(
  reader: Pick<StorageReader, "meta">,
  sourceName: string,
): Promise<Record<string, string> | null> {
  const text = await reader.meta(refusedMeta(sourceName));
  return text === null || text === "" ? null : (JSON.parse(text) as { source: Record<string, string> }).source;
}

/**
 * Records that a bundle of a source was rejected, and why. The active set does not change. Resolves to false, and
 * records nothing, in three cases:
 * - `source` is empty, because the source could not be reached.
 * - The same rejection is already recorded.
 * - A different bundle than `basis` was accepted last. The rejected bundle might be older than it.
 */
export async function recordRefusal(
  tx: LedgerTransaction,
  sourceName: string,
  source: Record<string, string>,
  faults: readonly string[],
  basis: { value: string | null },
): Promise<boolean> {
  if (Object.keys(source).length === 0 || (await readAcceptedBundle(tx, sourceName)) !== basis.value) return false;
  const refusal = canonicalText({ source, faults: sha256Hex(utf8(faults.join("\n"))) });
  if ((await tx.meta(refusedMeta(sourceName))) === refusal) return false;
  await tx.putMeta(refusedMeta(sourceName), refusal);
  const { digest, compiled } = tx.activePolicies;
  const entry: PolicySetEntry = {
    type: "policy_set",
    v: 1,
    at: toRfc3339(tx.now),
    previous: digest,
    policy_set: digest,
    policy_count: compiled.document.policies.length,
    policies: null,
    source: {
      ...source,
      source: sourceName,
      refused: String(faults.length),
      fault: clipText(faults[0] ?? "", MAX_FAULT_LENGTH),
    },
    changes: [],
    by: null,
  };
  tx.recordPolicies(entry, new Map(), "");
  return true;
}

/** The effect of an accepted bundle. */
export interface BundleActivation {
  digest: string;
  /** Digest of the set that was active before. */
  previous: string | null;
  /**
   * Policies that a baseline took over from the API or from other sources, and suggested policies that it deactivated.
   */
  displaced: string[];
}

/**
 * Activates the bundle of a source in one transaction: stores new versions of changed policies, stores the set, records
 * the entry, and changes the digest in the head. Resolves to null if a different bundle than `basis` was accepted last.
 */
export async function activateBundle(
  tx: LedgerTransaction,
  { newId, reactions, ...names }: SourceNames & { newId(): string; reactions: readonly Reaction[] },
  sourceName: string,
  bundle: PolicyBundle,
  by: Credential | null,
  basis?: { value: string | null },
): Promise<BundleActivation | null> {
  const lastAccepted = await readAcceptedBundle(tx, sourceName);
  if (basis !== undefined && basis.value !== lastAccepted) return null;
  const confirmed = by === null ? null : await tx.confirm(by);
  const stored = new Map((await readUnalteredPolicies(tx)).map((row) => [row.name, row]));
  const wasRefused = (await readRefusedSource(tx, sourceName)) !== null;
  await assertBaselineLoaded(tx, sourceName, names.baselines);
  assertNoNameConflicts(sourceName, names, bundle, stored);
  const plan = await planVersions(tx, newId, bundle, stored);
  const edits = new Map<string, PolicyActivation | null>(
    plan.map(({ row, document }) => [row.name, { version: row.latest_version, definition: document }]),
  );
  const location = names.baselines.get(sourceName);
  const isBaseline = location !== undefined;
  const replaced = isBaseline ? findSuggestionsReplacingRules(tx, bundle) : [];
  const takenOver = isBaseline ? plan.filter(({ row }) => isOwnedByOther(row, sourceName, names.sources)) : [];
  const dropped = [...stored.values()].filter(
    (row) =>
      row.active_version !== null &&
      !edits.has(row.name) &&
      (row.managed_by === sourceName || replaced.includes(row.name)),
  );
  for (const row of dropped) edits.set(row.name, null);
  const offeredNames = new Set(plan.map(({ row }) => row.name));
  const planned = planPolicySet(tx, edits, (policy) =>
    offeredNames.has(policy) ? sourceName : (stored.get(policy)?.managed_by ?? null),
  );
  // An empty folder is also a policy set, which denies everything, and is recorded like any other.
  if (planned.digest === null) planned.text = canonicalText(planned.document as unknown as JsonValue);
  const digest = planned.digest ?? sha256Hex(utf8(planned.text));
  const changes: PolicyUpdate[] = [];
  const result: BundleActivation = {
    digest,
    previous: tx.activePolicies.digest,
    displaced: [...takenOver.map(({ row }) => row.name), ...replaced],
  };
  const accepted: AcceptedBundle = { digest, source: bundle.source, ...(isBaseline ? { baseline: location } : {}) };
  const offered = canonicalText(accepted as unknown as JsonValue);
  if (offered !== lastAccepted) await tx.putMeta(`policy_source:${sourceName}`, offered);
  if (wasRefused) await tx.putMeta(refusedMeta(sourceName), "");
  if (digest === tx.activePolicies.digest) {
    // The policies have not changed; only the source that manages them has.
    for (const { row } of plan) {
      if (row.managed_by === sourceName) continue;
      changes.push({ policy: { ...row, managed_by: sourceName }, text: null });
    }
    await commitPolicySet(tx, { ...planned, digest }, bundle.source, confirmed, changes, reactions);
    return result;
  }

  for (const { row, newDefinition } of plan) {
    const isUnchanged =
      newDefinition === null && row.managed_by === sourceName && row.active_version === row.latest_version;
    if (isUnchanged) continue;
    changes.push({
      policy: { ...row, managed_by: sourceName, active_version: row.latest_version, deleted_at: null },
      text: newDefinition === null ? null : { definition: newDefinition, yaml: null },
    });
  }
  for (const row of dropped) changes.push({ policy: { ...row, active_version: null }, text: null });
  await commitPolicySet(tx, { ...planned, digest }, bundle.source, confirmed, changes, reactions);
  return result;
}

interface PlannedVersion {
  /** The policy with its version in the bundle. */
  row: ChangedPolicy;
  document: PolicyDocument;
  /** The document as canonical JSON if it becomes a new version; else null. */
  newDefinition: string | null;
}

/**
 * Returns the version of each policy of the bundle: the current version, or the next version if the definition changed.
 */
async function planVersions(
  tx: LedgerTransaction,
  newId: () => string,
  bundle: PolicyBundle,
  stored: ReadonlyMap<string, PolicyRow>,
): Promise<PlannedVersion[]> {
  const plan: PlannedVersion[] = [];
  for (const { document } of bundle.policies) {
    const definition = canonicalText(document as unknown as JsonValue);
    const row: ChangedPolicy = stored.get(document.policy) ?? newPolicy(newId(), document.policy);
    const latest = row.latest_version === 0 ? null : await tx.policyVersion(row.id, row.latest_version);
    const changed = latest?.digest !== sha256Hex(utf8(definition));
    plan.push({
      document,
      newDefinition: changed ? definition : null,
      row: { ...row, latest_version: row.latest_version + (changed ? 1 : 0) },
    });
  }
  return plan;
}

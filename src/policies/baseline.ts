/** Protects the policies of baseline sources from all other policies. */
import type { LedgerTransaction } from "../contract/ledger.ts";
import {
  PolicySourceError,
  type PolicyBundle,
  type PolicyFault,
  type SourceLocation,
} from "../contract/policy-source.ts";
import type { PolicyRow, StorageReader } from "../contract/storage.ts";
import { canonicalText } from "../domain/canonical.ts";
import type { PolicyDocument, PolicySetDocument } from "../domain/policy/policy-types.ts";

type Baselines = ReadonlyMap<string, SourceLocation>;

/** Names of the configured sources, and the locations of the baseline sources. */
export interface SourceNames {
  sources: readonly string[];
  baselines: Baselines;
}

/** The bundle that was last accepted from a source. */
export interface AcceptedBundle {
  digest: string;
  source: Record<string, string>;
  /** Location of the source, if it was a baseline when the bundle was accepted. */
  baseline?: SourceLocation;
}

/** Returns true for an active policy that a baseline source manages. */
export function isBaselinePolicy(
  { managed_by, active_version }: Pick<PolicyRow, "managed_by" | "active_version">,
  baselines: Baselines,
): boolean {
  return active_version !== null && managed_by !== null && baselines.has(managed_by);
}

/** Returns true if the document is a suggested policy that would replace a rule of one of these policies. */
function replacesRuleOf({ suggested }: PolicyDocument, policies: { has(name: string): boolean }): boolean {
  return suggested !== undefined && policies.has(suggested.in_place_of.policy);
}

/** Returns the `AcceptedBundle` of a policy source as JSON, accepted by any process; null if there is none. */
export function readAcceptedBundle(reader: Pick<StorageReader, "meta">, sourceName: string): Promise<string | null> {
  return reader.meta(`policy_source:${sourceName}`);
}

/** Returns true if the bundle was accepted from a baseline source at this location. */
export function isAcceptedBaseline(accepted: AcceptedBundle | null, location: SourceLocation): boolean {
  return accepted?.baseline !== undefined && canonicalText(accepted.baseline) === canonicalText(location);
}

/**
 * Returns the name of a baseline source that is not loaded: no process has accepted one of its bundles with the current
 * configuration. Returns null if all baseline sources are loaded. Until they are, the active set must not change,
 * because rules of other sources could allow actions that the baseline denies.
 */
export async function findUnloadedBaseline(
  reader: Pick<StorageReader, "meta">,
  baselines: Baselines,
): Promise<string | null> {
  for (const [name, location] of baselines) {
    const basis = await readAcceptedBundle(reader, name);
    if (basis === null || !isAcceptedBaseline(JSON.parse(basis) as AcceptedBundle, location)) return name;
  }
  return null;
}

/** While a baseline is not loaded, throws PolicySourceError for bundles of sources that are not baselines. */
export async function assertBaselineLoaded(
  reader: Pick<StorageReader, "meta">,
  sourceName: string,
  baselines: Baselines,
): Promise<void> {
  if (baselines.has(sourceName)) return;
  const unloaded = await findUnloadedBaseline(reader, baselines);
  if (unloaded !== null)
    throw new PolicySourceError(
      `the baseline of the source "${unloaded}" is not loaded yet; the policies of "${sourceName}" are loaded after it`,
    );
}

/**
 * Throws PolicySourceError if a policy of the bundle is active and belongs to the API or another source, or would
 * replace a rule of the baseline. A baseline can take over names from every source except other baselines. Any source
 * can take over policies of a source that is no longer configured.
 */
export function assertNoNameConflicts(
  sourceName: string,
  { sources, baselines }: SourceNames,
  bundle: PolicyBundle,
  stored: ReadonlyMap<string, PolicyRow>,
): void {
  const isBaseline = baselines.has(sourceName);
  const protectedNames = new Set(
    [...stored.values()]
      .filter((row) => row.managed_by !== sourceName && isBaselinePolicy(row, baselines))
      .map(({ name }) => name),
  );
  const faults: PolicyFault[] = [];
  for (const { document, origin } of bundle.policies) {
    const fault = (message: string): number => faults.push({ file: origin, line: null, column: null, message });
    const name = document.policy;
    const row = stored.get(name);
    const isTaken = row !== undefined && isOwnedByOther(row, sourceName, sources);
    if (protectedNames.has(name))
      fault(`policy "${name}" belongs to the baseline of "${row?.managed_by ?? ""}"; choose another name`);
    else if (isTaken && !isBaseline)
      fault(`policy "${name}" is active and managed by ${row.managed_by ?? "the API"}; rename one of the two`);
    if (replacesRuleOf(document, protectedNames))
      fault(
        `policy "${name}" would allow actions in place of a rule of the baseline policy "${document.suggested?.in_place_of.policy ?? ""}"`,
      );
  }
  if (faults.length > 0)
    throw new PolicySourceError(
      `${faults.length} of its policies belong to another source, or replace rules of the baseline`,
      faults,
      bundle.source,
    );
}

/** Returns true if the policy is active and belongs to the API or to another configured source. */
export function isOwnedByOther(
  { active_version, managed_by }: Pick<PolicyRow, "active_version" | "managed_by">,
  sourceName: string,
  sources: readonly string[],
): boolean {
  return active_version !== null && managed_by !== sourceName && (managed_by === null || sources.includes(managed_by));
}

/** Returns the names of active suggested policies, from outside the bundle, that replace rules of a baseline bundle. */
export function findSuggestionsReplacingRules(
  tx: Pick<LedgerTransaction, "activePolicies">,
  bundle: PolicyBundle,
): string[] {
  const names = new Set(bundle.policies.map(({ document }) => document.policy));
  const { policies }: PolicySetDocument = tx.activePolicies.compiled.document;
  return policies
    .filter(({ policy, definition }) => !names.has(policy) && replacesRuleOf(definition, names))
    .map(({ policy }) => policy);
}

/**
 * Limits the size of what a decision records: the answers of shadow policies, the channels, and the usage of limits.
 * Rejects a policy set whose decisions could exceed the maximum size of an entry, because every decision would then
 * fail. Counts limits, although an entry contains only a commitment to their usage.
 */
import { canonicalBytes } from "../../canonical.ts";
import type { JsonValue } from "../../json.ts";
import { listChannels } from "../check/unknown-channels.ts";
import type { CompileFault } from "../compile/compiled-policy.ts";
import type { Decision, LimitFact, PolicyDocument, PolicySetDocument, ShadowOutcome } from "../policy-types.ts";

const MAX_SHADOW_POLICIES = 100;
const MAX_CHANNELS = 100;
const MAX_LIMITS = 50;
const MAX_HISTORIES = 20;
/** Maximum number of facts of one policy, and of all policies that one source manages. */
export const MAX_FACTS_OF_POLICY = 10;
const MAX_FACTS_OF_SOURCE = 50;
/** Form of the name of a fact source. */
export const FACT_SOURCE_NAME_PATTERN = "^[a-z0-9][a-z0-9-]{0,62}$";
/** Maximum number of past actions in one history. */
export const MAX_HISTORY_ACTIONS = 200;
/** Number of hex digits in the `basis` of a limit or of a history, which is a truncated digest. */
export const BASIS_DIGITS = 16;
/**
 * Maximum size in bytes of the recorded answers of shadow policies, channels, limits and groups of approvers. The other
 * members of an entry use at most 27,000 bytes, including the tools of a registered agent. A denial by an earlier
 * rejection is smaller, because its reason is shorter.
 */
const MAX_NAME_BYTES = 38_000;

export function checkEntrySize(document: PolicySetDocument, faults: CompileFault[]): void {
  const channels = new Set<string>();
  let [shadows, limits, histories, bytes] = [0, 0, 0, 0];
  for (const { policy, version, definition } of document.policies) {
    const rules = [...definition.rules, ...(definition.limits ?? [])];
    const reportFault = (message: string, rule: string | null = null): void =>
      void faults.push({ policy, rule, message });
    if (definition.mode === "shadow") {
      if (++shadows > MAX_SHADOW_POLICIES)
        return reportFault(
          `is the ${MAX_SHADOW_POLICIES + 1}st policy in shadow mode; at most ${MAX_SHADOW_POLICIES} can be active together`,
        );
      bytes += sizeOf({
        policy,
        policy_version: version,
        rule: findLongestName(rules),
        effect: "require_approval",
        reason_code: "NO_MATCHING_RULE",
      } satisfies ShadowOutcome);
    }
    limits += definition.limits?.length ?? 0;
    if (limits > MAX_LIMITS)
      return reportFault(
        `is the last of ${limits} limits; at most ${MAX_LIMITS} can be active together`,
        definition.limits?.at(-1)?.name,
      );
    if (definition.history !== undefined && ++histories > MAX_HISTORIES)
      return reportFault(
        `is the ${MAX_HISTORIES + 1}st with a history; at most ${MAX_HISTORIES} can be active together`,
      );
    for (const { name } of definition.limits ?? [])
      bytes += sizeOf({
        policy,
        limit: name,
        basis: "0".repeat(BASIS_DIGITS),
        used: Number.MAX_SAFE_INTEGER,
      } satisfies LimitFact);
    bytes += planBytes(definition);
    for (const rule of rules) {
      for (const channel of listChannels(rule.approval)) {
        if (channels.has(channel)) continue;
        channels.add(channel);
        bytes += sizeOf(channel satisfies NonNullable<Decision["approval"]>["notify"][number]);
        if (channels.size > MAX_CHANNELS)
          return reportFault(
            `names the ${MAX_CHANNELS + 1}st channel; a set can name at most ${MAX_CHANNELS}`,
            rule.name,
          );
      }
    }
    if (bytes > MAX_NAME_BYTES)
      return reportFault(
        `the names of limits, of policies in shadow mode with their rules, of channels and of groups of approvers take more than ${MAX_NAME_BYTES} bytes in the record of a decision up to here; shorten them, or have fewer`,
      );
  }
}

/**
 * Adds a fault for each policy source whose policies have too many facts in total. Each source has its own limit, so
 * that no team can use up the facts of another team or of the baseline.
 * @param sourceOf name of the source that manages a policy; null for the API
 */
export function checkFactCounts(
  { policies }: PolicySetDocument,
  sourceOf: (policy: string) => string | null,
  faults: CompileFault[],
): void {
  const counts = new Map<string | null, number>();
  for (const { policy, definition } of policies) {
    const source = sourceOf(policy);
    const before = counts.get(source) ?? 0;
    const count = before + Object.keys(definition.facts ?? {}).length;
    counts.set(source, count);
    if (count > MAX_FACTS_OF_SOURCE && before <= MAX_FACTS_OF_SOURCE)
      faults.push({
        policy,
        rule: null,
        message: `has the last of ${count} facts; at most ${MAX_FACTS_OF_SOURCE} of one source can be active together`,
      });
  }
}

/**
 * Returns the maximum number of bytes that the approvers of one policy occupy in a decision: the approvers of one rule
 * and of every limit. Omits plans without groups, because combined plans contain at most one of them.
 */
function planBytes({ rules, limits = [] }: PolicyDocument): number {
  const bytesOf = ({ approval }: Pick<PolicyDocument["rules"][number], "approval">): number => {
    const lists = approval?.stages?.map(({ approvers }) => approvers) ?? [approval?.approvers ?? []];
    const groups = lists.flat();
    if (groups.length === 0) return 0;
    const channels = (approval?.stages ?? []).flatMap(({ notify = [] }) => notify);
    const channelBytes = channels.reduce((sum, channel) => sum + canonicalBytes(channel).length + 1, 0);
    return (
      lists.length * 80 +
      channelBytes +
      groups.reduce((sum, { group = "" }) => sum + 30 + canonicalBytes(group).length, 80)
    );
  };
  return Math.max(0, ...rules.map(bytesOf)) + limits.reduce((sum, limit) => sum + bytesOf(limit), 0);
}

/** Returns the size of a value as an array element. */
function sizeOf(value: string | ShadowOutcome | LimitFact): number {
  return canonicalBytes(value as unknown as JsonValue).length + 1;
}

function findLongestName(rules: readonly Pick<PolicyDocument["rules"][number], "name">[]): string {
  let [most, longestName] = [0, ""];
  for (const { name } of rules) {
    // A UTF-16 code unit uses at most six bytes of JSON.
    if (name.length * 6 <= most) continue;
    const size = canonicalBytes(name).length;
    if (size > most) [most, longestName] = [size, name];
  }
  return longestName;
}

/** Default of `rejection_holds`. Milliseconds. */
export const DEFAULT_REJECTION_HOLDS_MS = 86_400_000;
export const MAX_REJECTION_HOLDS_MS = 90 * 86_400_000;
/** Longest grant that a rule can allow. Milliseconds. */
export const MAX_GRANT_MS = 30 * 86_400_000;
export const MAX_GRANT_COUNT = 10_000;
/** Largest `expires_in` of a rule. Milliseconds. */
export const MAX_EXPIRY_MS = 30 * 86_400_000;
/** Largest `valid_for` of a rule. Milliseconds. */
export const MAX_VALIDITY_MS = 7 * 86_400_000;
/** Default of `valid_for`. Milliseconds. */
export const DEFAULT_VALIDITY_MS = 3_600_000;

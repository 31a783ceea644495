/** The limits of the active policies, how much of each is used now, and by which actions. */
import {
  type CompiledLimit,
  type CompiledPolicy,
  type CompiledPolicySet,
  type CoreHost,
  foldName,
  omitRedactedUsage,
  startOfWindow,
  subjectOf,
} from "../../src/core.ts";
import { toRfc3339 } from "../../src/plugin.ts";
import type { LimitUseRow } from "../../src/storage/index.ts";
import type { LimitRecord } from "./schemas.ts";

/** Maximum number of agents or keys for which one limit is read, and of those that are listed. */
const [MAX_SUBJECTS, MAX_LISTED] = [1000, 50];
const MAX_USES = 50;
const MILLION = 1_000_000;

interface Named {
  policy: CompiledPolicy;
  limit: CompiledLimit;
}

/** Returns all limits. Reads their use only for a caller who sees all actions, because sums would tell about the others. */
export async function listLimits(host: CoreHost, seesAll: boolean): Promise<LimitRecord[]> {
  const { compiled } = await host.policies.current();
  const now = host.clock();
  const rows = new Map((await host.storage.policies()).map((row) => [row.name, row]));
  const names = compiled.policies.some(({ limits }) => limits.length > 0) ? await readSubjects(host) : null;
  const records: LimitRecord[] = [];
  for (const policy of compiled.policies)
    for (const limit of policy.limits) {
      const definition = definitionOf(compiled, policy, limit);
      const { per = null, count = null, sum = null, at_most = null, window, time_zone = null } = definition;
      const since = startOfWindow(limit.window, now);
      const managedBy = rows.get(policy.name)?.managed_by ?? null;
      records.push({
        policy: policy.name,
        limit: limit.rule.name,
        shadow: policy.shadow,
        managed_by: managedBy !== null && host.policies.sources.includes(managedBy) ? managedBy : null,
        tools: toList(definition.tool) ?? toList(compiledTools(policy)),
        operations: toList(definition.operation),
        agents: toList(definition.agent),
        per,
        count,
        sum,
        at_most,
        window,
        time_zone,
        effect: definition.effect ?? "deny",
        since: toRfc3339(since),
        use: seesAll && names !== null ? await readUse(host, compiled, { policy, limit }, names, since) : null,
      });
    }
  return records;
}

/** Returns the newest uses of a limit; null if there is no such limit, or its uses would reveal redacted values. */
export async function listUses(
  host: CoreHost,
  { policy: policyName, limit: limitName, subject }: { policy: string; limit: string; subject: string },
): Promise<LimitUseRow[] | null> {
  const { compiled } = await host.policies.current();
  const policy = compiled.policies.find(({ name }) => name === policyName);
  const limit = policy?.limits.find(({ rule }) => rule.name === limitName);
  if (policy === undefined || limit === undefined || isRedacted(compiled, { policy, limit })) return null;
  const since = startOfWindow(limit.window, host.clock());
  return host.storage.limitUses({ policy: policyName, limit_name: limitName, subject, since }, MAX_USES);
}

type LimitDefinition = NonNullable<CompiledPolicySet["document"]["policies"][number]["definition"]["limits"]>[number];

function definitionOf(
  { document }: CompiledPolicySet,
  { name }: CompiledPolicy,
  { rule }: CompiledLimit,
): LimitDefinition {
  const found = document.policies
    .find(({ policy }) => policy === name)
    ?.definition.limits?.find((limit) => limit.name === rule.name);
  if (found === undefined) throw new Error(`the policy ${name} has no limit ${rule.name}`);
  return found;
}

const compiledTools = ({ tools }: CompiledPolicy): readonly string[] | undefined => tools ?? undefined;

const toList = (value: string | readonly string[] | undefined): string[] | null =>
  value === undefined ? null : typeof value === "string" ? [value] : [...value];

/** The agents and keys that may have used a limit. */
async function readSubjects({ storage }: CoreHost): Promise<{ agents: string[]; keys: string[] }> {
  const keys = await storage.keys();
  const registered = await storage.agents({ limit: MAX_SUBJECTS });
  const { agent } = await storage.analytics({ visibility: { all: true }, boundaries: [0, Number.MAX_SAFE_INTEGER] });
  const byCount = [...agent].sort((a, b) => b.count - a.count).map(({ value }) => value);
  return {
    agents: [...new Set([...byCount, ...registered.map(({ id }) => id)])].slice(0, MAX_SUBJECTS),
    keys: keys.map(({ id }) => id).slice(0, MAX_SUBJECTS),
  };
}

/**
 * Returns the use of a limit, highest first; null if the limit is counted by another value, or reads redacted values.
 */
async function readUse(
  host: CoreHost,
  compiled: CompiledPolicySet,
  named: Named,
  { agents, keys }: { agents: readonly string[]; keys: readonly string[] },
  since: number,
): Promise<LimitRecord["use"]> {
  const { policy, limit } = named;
  const { per } = definitionOf(compiled, policy, limit);
  if (isRedacted(compiled, named)) return null;
  const all: Record<string, readonly string[]> = { agent: agents, key: keys };
  const listed = per === undefined ? [""] : all[per];
  if (listed === undefined) return null;
  const isAgent = per === "agent";
  const subjects = [
    ...new Set(listed.map((name) => (isAgent && !policy.caseSensitive ? foldName(name) : name))),
  ].flatMap((name) => subjectOf(name) ?? []);
  const used = await host.storage.limitsUsed(
    subjects.map((subject) => ({ policy: policy.name, limit_name: limit.rule.name, subject, since })),
  );
  return subjects
    .map((subject, i) => ({
      subject,
      used: limit.sum === null ? (used[i]?.count ?? 0) : (used[i]?.sum ?? 0) / MILLION,
    }))
    .filter((each) => each.used > 0)
    .sort((a, b) => b.used - a.used)
    .slice(0, MAX_LISTED);
}

/**
 * Returns true if the limit depends on a redacted parameter. The use before and after an action would reveal its value.
 */
function isRedacted(compiled: CompiledPolicySet, { policy, limit }: Named): boolean {
  const fact = { policy: policy.name, limit: limit.rule.name, basis: limit.basis, used: 0 };
  return omitRedactedUsage(compiled, compiled, { limits: [fact] } as never).limits.length === 0;
}

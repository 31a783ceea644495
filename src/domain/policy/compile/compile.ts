/** Compiles policy sets: compiles their conditions and indexes their rules by tool. */
import { canonicalText } from "../../canonical.ts";
import { sha256Hex, utf8 } from "../../hash.ts";
import type { JsonValue } from "../../json.ts";
import { checkEntrySize, checkFactCounts } from "../parse/bounds.ts";
import { compileDefinition } from "./compile-definition.ts";
import { foldName } from "../../names.ts";
import { isGlob } from "./glob.ts";
import { findNamed } from "./name-variants.ts";
import type { CompiledPolicy, CompiledPolicySet, CompileFault } from "./compiled-policy.ts";
import {
  POLICY_SET_FORMAT,
  type PolicyDocument,
  type PolicySetDocument,
  type PolicySetMember,
} from "../policy-types.ts";

export { DEFAULT_EXPIRY_MS, MICROS_PER_UNIT } from "./compile-definition.ts";

export type * from "./compiled-policy.ts";

/** Returns one sentence, such as `policy "refunds", rule "large ones": there is …`. */
export function explainCompileFault({ policy, rule, message }: CompileFault): string {
  // A fault of a whole policy has a message such as "is the 101st in shadow mode".
  return rule === null ? `policy "${policy}" ${message}` : `policy "${policy}", rule "${rule}": ${message}`;
}

export class PolicyCompileError extends Error {
  readonly faults: CompileFault[];
  constructor(faults: CompileFault[]) {
    super(faults.map(explainCompileFault).join("; "));
    this.name = "PolicyCompileError";
    this.faults = faults;
  }
}

/** Builds a policy set sorted by name, so that the digest does not depend on the order of files. */
export function buildPolicySet(members: readonly PolicySetMember[]): PolicySetDocument {
  return {
    format: POLICY_SET_FORMAT,
    policies: [...members].sort((a, b) => (a.policy < b.policy ? -1 : a.policy > b.policy ? 1 : 0)),
  };
}

export function policySetDigest(document: PolicySetDocument): string {
  return sha256Hex(utf8(canonicalText(document as unknown as JsonValue)));
}

/** Returns the set that applies before the first activation and denies everything. */
export function emptyPolicySet(): CompiledPolicySet {
  const document = buildPolicySet([]);
  return {
    digest: null,
    document,
    policies: [],
    byTool: new Map(),
    anyTool: [],
    named: findNamed([]),
    hasLimits: false,
    hasEffectKeys: false,
    suggested: [],
    withResults: [],
    withHistory: [],
    hasFacts: false,
    readsAttributes: false,
    hasObligations: false,
    redacts: false,
  };
}

/**
 * Compiles a policy set. Throws PolicyCompileError with every fault, and Error if the set is in the format of a
 * different version of Assent.
 * @param sourceOf name of the source that manages a policy; absent for a set that is only checked
 */
export function compilePolicySet(
  document: PolicySetDocument,
  sourceOf?: (policy: string) => string | null,
): CompiledPolicySet {
  const format: string = document.format;
  if (format !== POLICY_SET_FORMAT)
    throw new Error(
      `the policy set has the format "${format}", and this version of Assent reads "${POLICY_SET_FORMAT}"; use the version that wrote it`,
    );
  const faults: CompileFault[] = [];
  const names = new Set<string>();
  const byTool = new Map<string, CompiledPolicy[]>();
  const anyTool: CompiledPolicy[] = [];
  const policies = document.policies.map((member, order) => {
    if (names.has(member.policy))
      faults.push({
        policy: member.policy,
        rule: null,
        message: "appears twice in the set; give each policy a name of its own",
      });
    names.add(member.policy);
    const compiled = compileCached(member.definition);
    for (const fault of compiled.faults) faults.push({ ...fault, policy: member.policy });
    const policy: CompiledPolicy = { ...compiled.policy, order, name: member.policy, version: member.version };
    const tools = findPossibleTools(policy);
    if (tools === null) anyTool.push(policy);
    for (const tool of tools ?? []) {
      const group = byTool.get(tool);
      if (group === undefined) byTool.set(tool, [policy]);
      else group.push(policy);
    }
    return policy;
  });
  checkEntrySize(document, faults);
  checkLabels(policies, faults);
  if (sourceOf !== undefined) checkFactCounts(document, sourceOf, faults);
  if (faults.length > 0) throw new PolicyCompileError(faults);
  return {
    digest: policySetDigest(document),
    document,
    policies,
    byTool,
    anyTool,
    named: findNamed(document.policies.map(({ definition }) => definition).filter(({ mode }) => mode !== "shadow")),
    hasLimits: policies.some(({ limits }) => limits.length > 0),
    hasEffectKeys: policies.some(({ rules }) => rules.all.some(({ effectKey }) => effectKey !== null)),
    suggested: policies.filter(({ suggested, shadow }) => suggested !== null && !shadow).map(({ name }) => name),
    withResults: policies.filter(({ results, shadow }) => results.length > 0 && !shadow),
    withHistory: policies.filter(({ history }) => history !== null),
    hasFacts: policies.some(({ facts }) => facts.length > 0),
    readsAttributes: policies.some((policy) => policy.readsAttributes),
    hasObligations: policies.some((policy) => policy.hasObligations && !policy.shadow),
    redacts: policies.some((policy) => policy.redacts && !policy.shadow),
  };
}

/** Maximum number of different labels in a policy set, because decisions record the labels of their session. */
const MAX_LABELS = 50;

function checkLabels(policies: readonly CompiledPolicy[], faults: CompileFault[]): void {
  const labels = new Set<string>();
  for (const { name, results } of policies) {
    for (const rule of results) rule.labels.forEach((label) => labels.add(label));
    if (labels.size <= MAX_LABELS) continue;
    const message = `and the policies before it have ${labels.size} different labels; at most ${MAX_LABELS} are allowed`;
    return void faults.push({ policy: name, rule: null, message });
  }
}

/**
 * Cache of compiled definitions, keyed by content digest. Documents do not change after they are compiled, so the
 * digest is cached per object.
 */
const compiledDefinitions = new Map<string, ReturnType<typeof compileDefinition>>();
const contentDigests = new WeakMap<PolicyDocument, string>();
const MIN_CACHED_DEFINITIONS = 4096;
let largestSetSize = 0;

function contentDigest(definition: PolicyDocument): string {
  let digest = contentDigests.get(definition);
  if (digest === undefined) {
    digest = sha256Hex(utf8(canonicalText(definition as unknown as JsonValue)));
    contentDigests.set(definition, digest);
  }
  return digest;
}

function compileCached(definition: PolicyDocument): ReturnType<typeof compileDefinition> {
  const key = contentDigest(definition);
  const compiled = compiledDefinitions.get(key) ?? compileDefinition(definition);
  // Move the entry to the end, so that the least recently used is evicted first.
  compiledDefinitions.delete(key);
  compiledDefinitions.set(key, compiled);
  // Keep twice as many entries as the largest set has, so that a precompiled set is still cached when it is activated.
  for (const oldest of compiledDefinitions.keys()) {
    if (compiledDefinitions.size <= Math.max(MIN_CACHED_DEFINITIONS, 2 * largestSetSize)) break;
    compiledDefinitions.delete(oldest);
  }
  return compiled;
}

/** Returns true if every policy of the set is in the cache, which makes `compilePolicySet` fast. */
export function isPrecompiled({ policies }: PolicySetDocument): boolean {
  return policies.every(({ definition }) => compiledDefinitions.has(contentDigest(definition)));
}

/** Fills the cache for `compilePolicySet`, so that nothing is compiled while a lock is held. Does not report faults. */
export function precompilePolicySet({ policies }: Pick<PolicySetDocument, "policies">): void {
  largestSetSize = Math.max(largestSetSize, policies.length);
  for (const { definition } of policies) compileCached(definition);
}

/** Returns the case-folded names of the tools that a policy can apply to; null if its globs do not determine them. */
function findPossibleTools({ tools, rules: { exactTools }, limits }: CompiledPolicy): Iterable<string> | null {
  const limited = limits.flatMap((limit) => limit.tools ?? ["*"]);
  if (exactTools !== null && !limited.some(isGlob)) return new Set([...exactTools, ...limited].map(foldName));
  return tools === null || tools.some(isGlob) ? null : new Set(tools.map(foldName));
}

/** Returns the policies that can apply to a tool, in the order of the set. */
export function policiesForTool({ byTool, anyTool }: CompiledPolicySet, tool: string): readonly CompiledPolicy[] {
  const named = byTool.get(foldName(tool));
  if (named === undefined) return anyTool;
  return anyTool.length === 0 ? named : mergeByOrder(named, anyTool);
}

/** Merges two lists that are sorted by `order`. */
function mergeByOrder(a: readonly CompiledPolicy[], b: readonly CompiledPolicy[]): CompiledPolicy[] {
  const merged: CompiledPolicy[] = [];
  let j = 0;
  for (const policy of a) {
    for (let next = b[j]; next !== undefined && next.order < policy.order; next = b[++j]) merged.push(next);
    merged.push(policy);
  }
  return [...merged, ...b.slice(j)];
}

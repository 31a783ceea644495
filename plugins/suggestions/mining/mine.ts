/**
 * Searches the approvals of one rule, tool and operation for conditions that are true for many approved requests and
 * false for every rejected request. Deterministic: counters limit its time and memory, and not a clock.
 */
import { foldName } from "../../../src/core.ts";
import {
  findNarrowestConditions,
  groupBy,
  readMember,
  scalarMembers,
  type Members,
  type MinedCondition,
  type MinedRequest,
  type Scalar,
} from "./conditions.ts";
import { measureSupport, hasMinimumEvidence, type MinimumEvidence, type PastRequest } from "./past-request.ts";

/** Approvals of one rule, tool and operation, and all rejections of the tool and operation. */
interface MinedGroup {
  asked: { policy: string; rule: string };
  tool: string;
  operation: string;
  approved: readonly PastRequest[];
  rejected: readonly PastRequest[];
}

export interface MinedRule {
  group: MinedGroup;
  /** Agents of the approvals, sorted. */
  agents: string[];
  conditions: MinedCondition[];
  /** CEL of all conditions. */
  text: string;
  covered: PastRequest[];
}

/**
 * Names that are safe in matchers: no globs, no invisible characters, and no characters with a special meaning in YAML
 * or CEL.
 */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,127}$/;
/** Maximum number of approvals of a group, and maximum number of rejections. The newest are used. */
const MAX_APPROVED = 2_000;
const MAX_REJECTED = 2_000;
const MAX_AGENTS = 50;
/** Number of approvals of an agent below which a rule for the other agents is tried. */
const MIN_OF_AGENT = 6;
/** Maximum number of parameters and members of the context together. */
const MAX_MEMBERS = 24;
/** Maximum number of ways to split the approvals of a group. */
const MAX_SPLITS = 24;
/** Maximum number of record visits for a group. */
const MAX_VISITS = 1_000_000;
/** Maximum probability that a part has no rejections by chance. */
const MAX_CHANCE = 0.01;
/** Maximum number of rules of a group. */
const MAX_RULES = 3;
/** Maximum number of characters of a suggested condition, below `MAX_EXPRESSION_LENGTH`. */
const MAX_CONDITION = 1_900;

/** Groups approvals by rule, tool and operation, in this sort order. Expects the newest requests first. */
export function groupRequests(history: readonly PastRequest[]): MinedGroup[] {
  const groups = new Map<string, { group: MinedGroup; approved: PastRequest[] }>();
  const rejected = new Map<string, PastRequest[]>();
  const targetOf = ({ tool, operation }: PastRequest): string => JSON.stringify([tool, operation].map(foldName));
  for (const request of history) {
    const { verdict, asked, tool, operation, agent_id } = request;
    if (verdict === "rejected") {
      const list = rejected.get(targetOf(request)) ?? [];
      if (list.length < MAX_REJECTED) rejected.set(targetOf(request), [...list, request]);
    }
    if (verdict !== "approved" || asked === null || ![tool, operation, agent_id].every((name) => NAME.test(name)))
      continue;
    const key = JSON.stringify([asked.policy, asked.rule, tool, operation]);
    const entry = groups.get(key) ?? { group: { asked, tool, operation, approved: [], rejected: [] }, approved: [] };
    if (entry.approved.length < MAX_APPROVED) entry.approved.push(request);
    groups.set(key, entry);
  }
  return [...groups.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { group, approved }]) => {
      const [first] = approved;
      return { ...group, approved, rejected: first === undefined ? [] : (rejected.get(targetOf(first)) ?? []) };
    });
}

interface Candidate {
  request: PastRequest;
  members: Members;
}

/**
 * Returns up to `MAX_RULES` rules that the group supports. Each rule is the best rule for the approvals that no earlier
 * rule covers. The best rule has the fewest splits, at most two. Among rules with equally many, it covers the most
 * approvals.
 */
export function mineRules(group: MinedGroup, bar: MinimumEvidence): MinedRule[] {
  let left = group.approved.flatMap((request): Candidate[] => {
    const members = scalarMembers(request);
    return members === null || Object.keys(members).length > MAX_MEMBERS ? [] : [{ request, members }];
  });
  const rules: MinedRule[] = [];
  const budget = { visits: MAX_VISITS };
  while (rules.length < MAX_RULES) {
    const rule = findBest(group, left, bar, budget);
    if (rule === null) break;
    rules.push(rule);
    const covered = new Set(rule.covered);
    left = left.filter(({ request }) => !covered.has(request));
  }
  return rules;
}

function findBest(
  group: MinedGroup,
  candidates: readonly Candidate[],
  bar: MinimumEvidence,
  budget: { visits: number },
): MinedRule | null {
  const whole = tryRule(group, candidates, bar, budget);
  if (whole !== null) return whole;
  const found = findSplits(candidates, group.rejected);
  const splits = found.parts.filter(
    (part) => canSupportRule(part, bar, budget) && isBeyondChance(group, part, found.tried),
  );
  const single = largest(splits.map((part) => tryRule(group, part, bar, budget)));
  if (single !== null) return single;
  const pairs: (MinedRule | null)[] = [];
  for (const [i, a] of splits.entries()) {
    const inA = new Set(a);
    for (const b of splits.slice(i + 1)) {
      if (budget.visits <= 0) return largest(pairs);
      const both = b.filter((candidate) => inA.has(candidate));
      budget.visits -= b.length;
      if (both.length === b.length || !canSupportRule(both, bar, budget)) continue;
      if (isBeyondChance(group, both, found.tried ** 2)) pairs.push(tryRule(group, both, bar, budget));
    }
  }
  return largest(pairs);
}

/**
 * Returns true if the part is unlikely to lack rejections by chance. Even if rejections are random, some parts have
 * none. The more parts are tried, the larger such a part can be.
 */
function isBeyondChance({ approved, rejected }: MinedGroup, part: readonly Candidate[], tried: number): boolean {
  if (rejected.length === 0) return true;
  const rate = rejected.length / (approved.length + rejected.length);
  return Math.log(Math.max(1, tried)) + part.length * Math.log1p(-rate) < Math.log(MAX_CHANCE);
}

function canSupportRule(candidates: readonly Candidate[], bar: MinimumEvidence, budget: { visits: number }): boolean {
  budget.visits -= candidates.length;
  if (candidates.length < bar.min_approvals) return false;
  return hasMinimumEvidence(
    measureSupport(
      candidates.map(({ request }) => request),
      bar,
    ),
    bar,
  );
}

/** Returns the rule for these approvals; null if its support is too low, or if a rejected request matches it. */
function tryRule(
  group: MinedGroup,
  candidates: readonly Candidate[],
  bar: MinimumEvidence,
  budget: { visits: number },
): MinedRule | null {
  if (budget.visits <= 0 || !canSupportRule(candidates, bar, budget)) return null;
  const agents = [...new Set(candidates.map(({ request }) => request.agent_id))].sort();
  if (agents.length > MAX_AGENTS) return null;
  const conditions = findNarrowestConditions(
    candidates.map(({ request: { agent_id }, members }) => ({ agent_id, members })),
  );
  budget.visits -= candidates.length + group.rejected.length;
  if (conditions === null) return null;
  const text = conditions.map((condition) => condition.text).join(" && ");
  if (text.length > MAX_CONDITION) return null;
  // Compare the rejections of all agents, because a rejection is about the request, regardless of its submitter.
  if (group.rejected.some((request) => matchesConditions(conditions, request))) return null;
  const covered = candidates.filter(({ request }) => matchesConditions(conditions, request));
  if (!canSupportRule(covered, bar, budget)) return null;
  return { group, agents, conditions, text, covered: covered.map(({ request }) => request) };
}

/** Returns true if all conditions are true for the request. */
export function matchesConditions(conditions: readonly MinedCondition[], request: MinedRequest): boolean {
  return conditions.every((condition) => condition.holds(request));
}

function largest(rules: readonly (MinedRule | null)[]): MinedRule | null {
  return rules.reduce((best, rule) => {
    if (rule === null || best === null) return best ?? rule;
    const more = rule.covered.length - best.covered.length;
    if (more !== 0) return more > 0 ? rule : best;
    const shorter = best.text.length - rule.text.length;
    return shorter > 0 || (shorter === 0 && rule.text < best.text) ? rule : best;
  }, null);
}

/**
 * Returns parts of the approvals that one member separates from the rejected requests. A part is defined by the
 * presence of the member, its value, a list of values that no one rejected, a range between rejected numbers, or a
 * prefix. The largest part is first. Also returns the number of parts that were tried.
 */
function findSplits(
  candidates: readonly Candidate[],
  rejected: readonly PastRequest[],
): { parts: Candidate[][]; tried: number } {
  const names = [...new Set(candidates.flatMap(({ members }) => Object.keys(members)))].sort();
  const parts = names.flatMap((name) => {
    const present = candidates.filter(({ members }) => Object.hasOwn(members, name));
    const refused = rejected.map((request) => readMember(request, name)).filter((value) => value !== undefined);
    const absent = candidates.filter(({ members }) => !Object.hasOwn(members, name));
    return [
      absent,
      present,
      ...splitByValue(name, present, new Set<unknown>(refused)),
      ...splitByRange(name, present, refused),
      ...splitByStart(name, present),
    ];
  });
  const unique = new Map<string, Candidate[]>();
  for (const part of [ofBusyAgents(candidates), ...parts]) {
    if (part.length === 0 || part.length === candidates.length) continue;
    unique.set(part.map(({ request }) => request.action_id).join(), part);
  }
  const sorted = [...unique.values()].sort((a, b) => b.length - a.length);
  return { parts: sorted.slice(0, MAX_SPLITS), tried: sorted.length };
}

/** Returns the requests of agents with several requests, because values must be approved for each agent of a rule. */
function ofBusyAgents(candidates: readonly Candidate[]): Candidate[] {
  const counts = groupBy(candidates, ({ request }) => request.agent_id);
  return candidates.filter(({ request }) => (counts.get(request.agent_id)?.length ?? 0) >= MIN_OF_AGENT);
}

function splitByValue(name: string, present: readonly Candidate[], refused: ReadonlySet<unknown>): Candidate[][] {
  const groups = new Map<Scalar, Candidate[]>();
  for (const candidate of present) {
    const value = candidate.members[name] as Scalar;
    groups.set(value, [...(groups.get(value) ?? []), candidate]);
  }
  if (groups.size > 200) return [];
  const clean = [...groups.entries()]
    .filter(([value, group]) => !refused.has(value) && group.length > 1)
    .map(([, group]) => group)
    .sort((a, b) => b.length - a.length);
  return [clean.slice(0, 8).flat(), ...clean];
}

function splitByRange(name: string, present: readonly Candidate[], refused: readonly unknown[]): Candidate[][] {
  const numbers = present.filter(({ members }) => typeof members[name] === "number");
  const bounds = [...new Set(refused.filter((value) => typeof value === "number"))].sort((a, b) => a - b);
  if (numbers.length === 0 || bounds.length === 0) return [];
  const edges = [-Infinity, ...bounds, Infinity];
  const segments = new Map<number, Candidate[]>();
  for (const candidate of numbers) {
    const value = candidate.members[name] as number;
    const segment = edges.findIndex((edge) => edge >= value);
    if (edges[segment] === value) continue;
    segments.set(segment, [...(segments.get(segment) ?? []), candidate]);
  }
  return [...segments.values()];
}

/** Returns parts by the prefix of a string up to each separator, and by the domain of an e-mail address. */
function splitByStart(name: string, present: readonly Candidate[]): Candidate[][] {
  const groups = new Map<string, Candidate[]>();
  const add = (key: string, candidate: Candidate): void => {
    const group = groups.get(key);
    if (group !== undefined) group.push(candidate);
    else if (groups.size < 2_000) groups.set(key, [candidate]);
  };
  for (const candidate of present) {
    const value = candidate.members[name];
    if (typeof value !== "string") continue;
    for (const end of [...value.matchAll(/[^\p{L}\p{N}]/gu)].slice(0, 8)) add(value.slice(0, end.index + 1), candidate);
    const at = value.lastIndexOf("@");
    if (at > 0) add(`@${value.slice(at)}`, candidate);
  }
  return [...groups.values()]
    .filter((group) => group.length > 1)
    .sort((a, b) => b.length - a.length)
    .slice(0, 200);
}

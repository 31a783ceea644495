/** Matches the names of a request against the policies and rules of a set. */
import type { ActionRequest } from "../../actions.ts";
import { foldName } from "../../names.ts";
import {
  policiesForTool,
  type CompiledLimit,
  type CompiledPolicySet,
  type CompiledPolicy,
  type CompiledRule,
} from "../compile/compile.ts";
import { matchNames } from "../compile/name-patterns.ts";

/** The names of a request: tool, operation and agent. */
export interface Names {
  readonly tool: string;
  readonly operation: string;
  readonly agent: string;
}

type Named = Pick<ActionRequest, "agent_id" | "tool" | "operation">;

/** Maximum number of cached matches of a policy set. */
const MAX_CACHED = 1_000;
const cached = new WeakMap<CompiledPolicySet, Map<string, NameMatches>>();

/** Returns the matches of the names of a request. Caches them, because agents use the same names again and again. */
export function matchNamesOf(compiled: CompiledPolicySet, request: Named): NameMatches {
  const known = cached.get(compiled) ?? new Map<string, NameMatches>();
  cached.set(compiled, known);
  const key = JSON.stringify([request.tool, request.operation, request.agent_id]);
  let matches = known.get(key);
  if (matches === undefined) {
    if (known.size >= MAX_CACHED) known.clear();
    known.set(key, (matches = new NameMatches(compiled, request)));
  }
  return matches;
}

/** The policies and rules that match the names of a request. Each policy is matched once, when it is first needed. */
export class NameMatches {
  private readonly compiled: CompiledPolicySet;
  private readonly written: Names;
  private readonly folded: Names;
  private applicable: readonly CompiledPolicy[] | null = null;
  private readonly rulesOf = new Map<CompiledPolicy, readonly CompiledRule[]>();

  constructor(compiled: CompiledPolicySet, { tool, operation, agent_id: agent }: Named) {
    this.compiled = compiled;
    this.written = { tool, operation, agent };
    this.folded = { tool: foldName(tool), operation: foldName(operation), agent: foldName(agent) };
  }

  /** Returns the names, case-folded unless the policy is case-sensitive. */
  names({ caseSensitive }: Pick<CompiledPolicy, "caseSensitive">): Names {
    return caseSensitive ? this.written : this.folded;
  }

  /** Returns the policies that apply, in the order of the set. */
  policies(): readonly CompiledPolicy[] {
    return (this.applicable ??= policiesForTool(this.compiled, this.written.tool).filter((policy) => {
      const { tool, agent } = this.names(policy);
      return matchNames(policy.tools, tool) && matchNames(policy.agents, agent);
    }));
  }

  /** Returns the rules of a policy that match, in written order. */
  rules(policy: CompiledPolicy): readonly CompiledRule[] {
    let rules = this.rulesOf.get(policy);
    if (rules === undefined) this.rulesOf.set(policy, (rules = policy.rules.find(this.names(policy))));
    return rules;
  }

  /** Returns true if a limit of a policy matches. */
  matchesLimit(policy: CompiledPolicy, { tools, rule: { operations, agents } }: CompiledLimit): boolean {
    const { tool, operation, agent } = this.names(policy);
    return matchNames(tools, tool) && matchNames(operations, operation) && matchNames(agents, agent);
  }
}

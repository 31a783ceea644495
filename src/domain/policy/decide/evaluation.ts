/** One request at one moment, as the policies of a set look at it: what is worked out once for all of them. */
import type { ActionRequest } from "../../actions.ts";
import { foldName } from "../../names.ts";
import type { CompiledLimit, CompiledPolicySet, CompiledPolicy, CompiledRule } from "../compile/compile.ts";
import { policiesForTool } from "../compile/rule-index.ts";
import { Activation } from "../condition/condition.ts";
import { matchNames } from "../compile/name-patterns.ts";
import type { Facts, ReasonCode } from "../types.ts";

/** The names of a request. */
export interface Names {
  readonly tool: string;
  readonly operation: string;
  readonly agent: string;
}

/** How an action stands to one limit. */
export type LimitMatch =
  | { kind: "none" }
  | { kind: "error"; code: ReasonCode; message: string }
  | { kind: "match"; subject: string; amount: number };

export class Evaluation {
  readonly compiled: CompiledPolicySet;
  readonly request: ActionRequest;
  readonly now: number;
  readonly activation: Activation;
  /** Limits that were evaluated already. */
  readonly limitMatches = new Map<CompiledLimit, LimitMatch>();
  private readonly written: Names;
  private readonly folded: Names;
  private ofSubjects: Activation | null = null;

  /** @param now milliseconds since the epoch */
  constructor(compiled: CompiledPolicySet, request: ActionRequest, facts: Pick<Facts, "principal">, now: number) {
    const { tool, operation, agent_id: agent } = request;
    this.compiled = compiled;
    this.request = request;
    this.now = now;
    this.activation = new Activation(request, facts, now);
    this.written = { tool, operation, agent };
    this.folded = { tool: foldName(tool), operation: foldName(operation), agent: foldName(agent) };
  }

  /** Evaluates what a limit counts by, with folded names: another spelling is not another subject. */
  get subjectActivation(): Activation {
    return (this.ofSubjects ??= this.activation.withNames({ ...this.folded, agent_id: this.folded.agent }));
  }

  /** As the policy reads names. */
  names({ caseSensitive }: Pick<CompiledPolicy, "caseSensitive">): Names {
    return caseSensitive ? this.written : this.folded;
  }

  /** Policies that speak of the action, in the order of the set. */
  applicablePolicies(): CompiledPolicy[] {
    return policiesForTool(this.compiled, this.request.tool).filter((policy) => {
      const { tool, agent } = this.names(policy);
      return matchNames(policy.tools, tool) && matchNames(policy.agents, agent);
    });
  }

  /** Whether a rule's matchers other than the tool let it speak of the action. */
  matchesRule(policy: CompiledPolicy, { operations, agents }: CompiledRule): boolean {
    const { operation, agent } = this.names(policy);
    return matchNames(operations, operation) && matchNames(agents, agent);
  }
}

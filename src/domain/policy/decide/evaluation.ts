/** The state that all policies share in the evaluation of one request. */
import type { ActionRequest } from "../../actions.ts";
import type { CompiledLimit, CompiledPolicySet, CompiledPolicy, CompiledRule } from "../compile/compile.ts";
import { MAX_STEPS } from "../condition/cel.ts";
import { Meter } from "../condition/cel-meter.ts";
import { Activation, type ConditionFacts } from "../condition/condition.ts";
import type { Facts, ReasonCode, SourceFact } from "../policy-types.ts";
import { matchNamesOf, type NameMatches, type Names } from "./name-matches.ts";

/** The facts that an evaluation reads. */
type EvaluationFacts = ConditionFacts & Pick<Facts, "authority" | "delegators" | "final_request" | "session">;

/** Result of matching a limit: whether it applies to the action, and the amount that counts. */
export type LimitMatch =
  | { kind: "none" }
  | { kind: "error"; code: ReasonCode; message: string }
  | { kind: "match"; subject: string; amount: number };

/** Digest of the owner of an action's history, or the reason why the owner cannot be determined. */
export type HistoryOwner = { subject: string } | { fault: "no_session" | "no_value" };

export class Evaluation {
  readonly compiled: CompiledPolicySet;
  readonly request: ActionRequest;
  readonly now: number;
  readonly activation: Activation;
  /** Results of limits that were already evaluated. */
  readonly limitMatches = new Map<CompiledLimit, LimitMatch>();
  /** Owners of histories that were already determined. */
  readonly historyOwners = new Map<CompiledPolicy, HistoryOwner>();
  /**
   * Cache of matched grants: maps a grant id to the amount that the request would use; null if the grant does not cover
   * the request.
   */
  readonly grantMatches = new Map<string, number | null>();
  /**
   * Activation for grants. All grants together get the steps of one condition, so that many grants cannot delay the
   * decision.
   */
  readonly grantActivation: Activation;
  /** The policies and rules that match the names of the request. */
  readonly matches: NameMatches;
  private ofSubjects: Activation | null = null;
  private readonly facts: EvaluationFacts;
  private readonly steps: Meter | null;

  /**
   * @param now the current time in milliseconds since the epoch
   * @param matches the matches of another evaluation of the same names and policies
   * @param steps the steps of all conditions and of all evaluations derived from this one; null if each condition has its
   *   own
   */
  constructor(
    compiled: CompiledPolicySet,
    request: ActionRequest,
    facts: EvaluationFacts,
    now: number,
    matches: NameMatches = matchNamesOf(compiled, request),
    steps: Meter | null = null,
  ) {
    this.compiled = compiled;
    this.request = request;
    this.now = now;
    this.facts = facts;
    this.steps = steps;
    this.activation = new Activation(request, facts, now, steps);
    this.grantActivation = new Activation(request, facts, now, new Meter(MAX_STEPS));
    this.matches = matches;
  }

  /** Returns a new evaluation of a request with the same names, with the full number of steps. */
  withRequest(request: ActionRequest): Evaluation {
    return new Evaluation(this.compiled, request, this.facts, this.now, this.matches, this.steps);
  }

  /** Returns a new evaluation with other facts, with the full number of steps. */
  withFacts(facts: EvaluationFacts): Evaluation {
    return new Evaluation(this.compiled, this.request, facts, this.now, this.matches, this.steps);
  }

  /** Returns a new evaluation with more values of fact sources. */
  withSources(added: readonly SourceFact[]): Evaluation {
    return this.withFacts({ ...this.facts, sources: [...this.sources, ...added] });
  }

  /** The values of fact sources. */
  get sources(): SourceFact[] {
    return this.facts.sources ?? [];
  }

  /** The authority that the request names, and the facts about its delegators. */
  get delegation(): Pick<Facts, "authority" | "delegators"> {
    return this.facts;
  }

  /** Whether obligations may no longer change the request. */
  get isFinal(): boolean {
    return this.facts.final_request === true;
  }

  /** Returns true if an enforced policy that applies to the action has obligations. */
  hasObligations(): boolean {
    return (
      this.compiled.hasObligations &&
      this.applicablePolicies().some(({ hasObligations, shadow }) => hasObligations && !shadow)
    );
  }

  /** Returns the activation for `per` expressions. Its names are case-folded unless the policy is case-sensitive. */
  subjects({ caseSensitive }: Pick<CompiledPolicy, "caseSensitive">): Activation {
    if (caseSensitive) return this.activation;
    return (this.ofSubjects ??= this.withFoldedNames(this.activation));
  }

  private withFoldedNames(activation: Activation): Activation {
    const { agent, tool, operation } = this.names({ caseSensitive: false });
    return activation.withNames({ agent_id: agent, tool, operation });
  }

  /** Returns the session of the request; null if it has no session. */
  get sessionId(): string | null {
    return this.facts.session?.id ?? null;
  }

  /** Returns an activation for the owner of a history. */
  historyActivation(policy: Pick<CompiledPolicy, "caseSensitive">): Activation {
    const activation = this.inputActivation(new Meter(MAX_STEPS));
    return policy.caseSensitive ? activation : this.withFoldedNames(activation);
  }

  /** Returns an activation that contains only the facts that inputs can read: no past actions. */
  inputActivation(steps: Meter): Activation {
    const { attributes, labels, principal, sources } = this.facts;
    const facts = {
      principal,
      ...(attributes && { attributes }),
      ...(labels && { labels }),
      ...(sources && { sources }),
    };
    return new Activation(this.request, facts, this.now, steps);
  }

  /**
   * Returns true if a policy that applies to the action reads attributes of the agent or its principal. A policy with a
   * history applies to every action, because every action needs an owner in that history.
   */
  readsAttributes(): boolean {
    const { compiled } = this;
    if (!compiled.readsAttributes) return false;
    return [...compiled.withHistory, ...this.applicablePolicies()].some((policy) => policy.readsAttributes);
  }

  /** Returns the names, case-folded unless the policy is case-sensitive. */
  names(policy: Pick<CompiledPolicy, "caseSensitive">): Names {
    return this.matches.names(policy);
  }

  /** Returns the policies that apply to the action, in the order of the set. */
  applicablePolicies(): readonly CompiledPolicy[] {
    return this.matches.policies();
  }

  /** Returns the rules that match the names of the request, in written order. */
  rules(policy: CompiledPolicy): readonly CompiledRule[] {
    return this.matches.rules(policy);
  }
}

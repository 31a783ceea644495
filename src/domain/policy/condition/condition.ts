/**
 * CEL conditions. An expression is checked when its policy is compiled. Its evaluation can still fail, for example
 * because of a missing field or a type mismatch. A failure is a result instead of an exception, and makes the rule's
 * policy deny.
 *
 * Two limits bound the cost: the expression's text and shape at compilation (condition-shape.ts), and its steps at
 * evaluation (cel.ts). Each expression has its own steps.
 */
import type { CelInput } from "@bufbuild/cel";
import { reflect } from "@bufbuild/protobuf/reflect";
import { timestampFromMs, TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { ActionRequest } from "../../actions.ts";
import { MAX_STEPS } from "./cel.ts";
import { CelFailure } from "./cel-failure.ts";
import { exhaustSteps, Meter, runMetered } from "./cel-meter.ts";
import { parseExpression } from "./cel-parse.ts";
import { planExpression, type Bindings } from "./cel-plan.ts";
import { toCelValue } from "./cel-values.ts";
import { HISTORY_VARIABLE } from "./cel-history.ts";
import { type Comparisons, readComparisons, readParameterPath } from "./compared-numbers.ts";
import { findMembersRead } from "./condition-members.ts";
import { readsAttributes } from "./attributes-read.ts";
import { bindHistory, isHistoryFaultMessage } from "./past-actions.ts";
import { bindFacts, isFactFaultMessage, isFactVariable, nameOfFact } from "./source-facts.ts";
import {
  findTooDeepBracket,
  checkNumbers,
  checkShape,
  MAX_EXPRESSION_DEPTH,
  ShapeFault,
  VARIABLES,
  type ExpressionShape,
} from "./condition-shape.ts";
import { foldName } from "../../names.ts";
import type { Facts, HistoryFact, SourceFact } from "../policy-types.ts";

export { MAX_COMPREHENSIONS, MAX_EXPRESSION_DEPTH, MAX_COMPREHENSION_NESTING, VARIABLES } from "./condition-shape.ts";
export const MAX_EXPRESSION_LENGTH = 2_048;

export type ConditionResult = { value: boolean } | { error: "CONDITION_ERROR" | "CONDITION_LIMIT"; message: string };

type ExpressionResult = { value: unknown } | { error: "CONDITION_ERROR" | "CONDITION_LIMIT"; message: string };

/** An expression of any type. Integer results are bigint. */
export interface Expression {
  /** JSON pointers of the request members that the expression reads, directly or through named values. */
  readonly members: readonly string[];
  /** Names in the source. Messages can contain these names, because they do not come from the request. */
  readonly names: ReadonlySet<string>;
  /** Variables and named values that the expression reads directly. */
  readonly variables: ReadonlySet<string>;
  /** The patterns of the expression, which are compiled as long as the expression exists. */
  readonly patterns: ExpressionShape["patterns"];
  /** Whether the expression reads attributes of the agent or its principal, including through named values. */
  readonly readsAttributes: boolean;
  /** The comparisons of parameters with numbers. */
  readonly comparisons: Comparisons;
  /** The members of `params`, if the expression is one parameter; otherwise null. */
  readonly parameter: readonly string[] | null;
  evaluate(activation: Activation): ExpressionResult;
  /**
   * Evaluates the expression as a named value, within another expression. Returns a CelFailure if the evaluation fails.
   */
  evaluateNested(bindings: Bindings, meter: Meter): unknown;
}

/** The named values of a policy: constants, and expressions that are evaluated at most once per request. */
export interface NamedValues {
  readonly names: readonly string[];
  readonly constants: Readonly<Record<string, CelInput>>;
  readonly derived: ReadonlyMap<string, Expression>;
  /** Identifies the fact that contains the policy's past actions; null if the policy declares no history. */
  readonly history: Pick<HistoryFact, "policy" | "basis"> | null;
  /** The values of fact sources that the policy declares. */
  readonly facts: readonly Pick<SourceFact, "policy" | "name" | "basis">[];
  /** Names that the expression cannot read, each with the reason. */
  readonly unavailable?: ReadonlyMap<string, string>;
}

export const NO_NAMED_VALUES: NamedValues = { names: [], constants: {}, derived: new Map(), history: null, facts: [] };

/** The facts that conditions read. */
export type ConditionFacts = Pick<Facts, "attributes" | "history" | "labels" | "principal" | "sources">;

/** Returns the named values that an expression with these variables reads, directly or through derived values. */
export function findNamesRead({ names, derived }: NamedValues, variables: ReadonlySet<string>): Set<string> {
  const read = new Set<string>();
  const visit = (name: string): void => {
    if (!names.includes(name) || read.has(name)) return;
    read.add(name);
    derived.get(name)?.variables.forEach(visit);
  };
  variables.forEach(visit);
  return read;
}

export interface Condition extends Pick<Expression, "members" | "readsAttributes" | "comparisons"> {
  /** Whether the condition reads the history of its policy, including through named values. */
  readonly readsHistory: boolean;
  /** Names of the facts that the condition reads, including through named values. */
  readonly facts: ReadonlySet<string>;
  evaluate(activation: Activation): ConditionResult;
}

/** Result of a compilation. `offset` is in UTF-16 code units of the source. */
type CompiledCondition = { ok: true; condition: Condition } | { ok: false; message: string; offset: number };

/** The variables of one decision. They are created when the first condition reads one. */
export class Activation {
  private readonly request: ActionRequest;
  private readonly facts: ConditionFacts;
  private readonly now: number;
  private readonly shared: Meter | null;
  private variables: Bindings | null = null;
  private readonly named = new Map<NamedValues, Bindings>();

  /** @param shared the steps of all expressions together; null if each expression has its own */
  constructor(request: ActionRequest, facts: ConditionFacts, now: number, shared: Meter | null = null) {
    this.request = request;
    this.facts = facts;
    this.now = now;
    this.shared = shared;
  }

  /** Returns an activation with `names` and the case-folded agent of the key. */
  withNames(names: Pick<ActionRequest, "agent_id" | "tool" | "operation">): Activation {
    const { principal } = this.facts;
    const bound = principal.agent_id === null ? null : foldName(principal.agent_id);
    const facts = { ...this.facts, principal: { ...principal, agent_id: bound } };
    return new Activation({ ...this.request, ...names }, facts, this.now, this.shared);
  }

  /** Returns the meter for the next expression. */
  meter(): Meter {
    return this.shared ?? new Meter(MAX_STEPS);
  }

  /** Returns the variables, including the named values of a policy. */
  bindings(namedValues: NamedValues = NO_NAMED_VALUES): Bindings {
    if (namedValues.names.length === 0) return this.requestBindings();
    let bindings = this.named.get(namedValues);
    if (bindings === undefined) {
      bindings = bindNamedValues(this.requestBindings(), namedValues, () => this.meter());
      if (namedValues.history !== null) bindHistory(bindings, this.facts.history ?? [], namedValues.history);
      bindFacts(bindings, this.facts.sources ?? [], namedValues.facts);
      this.named.set(namedValues, bindings);
    }
    return bindings;
  }

  private requestBindings(): Bindings {
    if (this.variables === null) {
      const { agent_id, tool, operation, params, context } = this.request;
      const { attributes, labels = [], principal } = this.facts;
      const groups = attributes?.groups;
      const roles = attributes?.roles;
      this.variables = {
        agent: agent_id,
        tool,
        operation,
        params: toCelValue(params),
        context: toCelValue(context),
        // Always set `claims`, so that `has(principal.claims.repository)` is false for an API key instead of an error.
        // Omit unknown attributes, so that a read of them is an error.
        principal: toCelValue(Object.assign({ claims: {} }, principal, groups && { groups }, roles && { roles })),
        session: toCelValue({ labels }),
        now: reflect(TimestampSchema, timestampFromMs(this.now)),
      };
      if (attributes !== undefined) {
        this.variables["agent_groups"] = toCelValue(attributes.agent_groups);
        this.variables["agent_metadata"] = toCelValue(attributes.agent_metadata);
      }
    }
    return this.variables;
  }
}

/** Adds the named values. A derived value is evaluated when the first condition reads it, and then stored. */
function bindNamedValues(variables: Bindings, { constants, derived }: NamedValues, nextMeter: () => Meter): Bindings {
  const bindings: Bindings = { ...variables, ...constants };
  for (const [name, expression] of derived)
    Object.defineProperty(bindings, name, {
      configurable: true,
      get() {
        const meter = nextMeter();
        const value = expression.evaluateNested(bindings, meter);
        Object.defineProperty(bindings, name, meter.exceeded ? { get: exhaustSteps } : { value });
        return meter.exceeded ? exhaustSteps() : value;
      },
    });
  return bindings;
}

export function compileCondition(source: string, namedValues: NamedValues = NO_NAMED_VALUES): CompiledCondition {
  const compiled = compileExpression(source, "condition", namedValues);
  if (!compiled.ok) return compiled;
  const { expression } = compiled;
  const read = [...findNamesRead(namedValues, expression.variables)];
  return {
    ok: true,
    condition: {
      members: expression.members,
      readsAttributes: expression.readsAttributes,
      comparisons: expression.comparisons,
      readsHistory: read.includes(HISTORY_VARIABLE),
      facts: new Set(read.filter(isFactVariable).map(nameOfFact)),
      evaluate(activation) {
        const result = expression.evaluate(activation);
        if ("error" in result) return result;
        return typeof result.value === "boolean"
          ? { value: result.value }
          : { error: "CONDITION_ERROR", message: "its result is not true or false" };
      },
    },
  };
}

type CompiledExpression = { ok: true; expression: Expression } | { ok: false; message: string; offset: number };

/**
 * Compiles an expression.
 * @param noun the noun for the expression in messages
 */
export function compileExpression(
  source: string,
  noun = "expression",
  namedValues: NamedValues = NO_NAMED_VALUES,
): CompiledExpression {
  const fail = (message: string, offset = 0): CompiledExpression => ({ ok: false, message, offset });
  if (source.trim() === "")
    return fail(
      `the ${noun} is empty; remove it, or write one such as params.amount${noun === "condition" ? " <= 100" : ""}`,
    );
  if (source.length > MAX_EXPRESSION_LENGTH)
    return fail(`the ${noun} has ${source.length} characters, at most ${MAX_EXPRESSION_LENGTH} are allowed`);
  const tooDeep = findTooDeepBracket(source);
  if (tooDeep >= 0) return fail(`the ${noun}'s brackets nest deeper than ${MAX_EXPRESSION_DEPTH} levels`, tooDeep);
  try {
    const parsed = parseExpression(source);
    checkNumbers(source);
    const read = findMembersRead(parsed.expr);
    const { names: declared, unavailable = new Map<string, string>() } = namedValues;
    const scope = [...VARIABLES, ...declared].filter((name) => !unavailable.has(name));
    const shape = checkShape(parsed, noun === "condition", scope, unavailable);
    const run = planExpression(parsed.expr, scope);
    const inner = [...findNamesRead(namedValues, shape.variables)].flatMap(
      (name) => namedValues.derived.get(name) ?? [],
    );
    const names = new Set([...shape.names, ...inner.flatMap((expression) => [...expression.names])]);
    const { nodes, variables, patterns } = shape;
    return {
      ok: true,
      expression: {
        members: [...new Set([...read, ...inner.flatMap(({ members }) => members)])],
        names,
        variables,
        patterns,
        readsAttributes: readsAttributes(parsed.expr) || inner.some((expression) => expression.readsAttributes),
        comparisons: readComparisons(parsed.expr),
        parameter: readParameterPath(parsed.expr),
        evaluate: (activation) => evaluate(run, { nodes, names }, activation.bindings(namedValues), activation.meter()),
        evaluateNested(bindings, meter) {
          try {
            meter.charge(nodes);
            return runMetered(meter, () => run(bindings));
          } catch (error) {
            if (meter.exceeded) return null;
            throw error;
          }
        },
      },
    };
  } catch (error) {
    if (error instanceof ShapeFault) return fail(error.message, error.offset);
    if (error instanceof RangeError) return fail(`the ${noun} nests too deeply`);
    return fail(...syntaxFault(error, source, noun));
  }
}

function evaluate(
  run: (bindings: Bindings) => unknown,
  shape: Pick<ExpressionShape, "names" | "nodes">,
  bindings: Bindings,
  meter: Meter,
): ExpressionResult {
  try {
    meter.charge(shape.nodes);
    const result = runMetered(meter, () => run(bindings));
    // `||` and `&&` absorb errors, so after the step limit was exceeded, the result is not valid.
    if (meter.exceeded) return STEP_LIMIT_EXCEEDED;
    if (result instanceof CelFailure)
      return { error: "CONDITION_ERROR", message: explainError(result.message, shape.names) };
    return { value: result };
  } catch (error) {
    if (meter.exceeded || error instanceof RangeError) return STEP_LIMIT_EXCEEDED;
    return { error: "CONDITION_ERROR", message: explainError("", shape.names) };
  }
}

const STEP_LIMIT_EXCEEDED = {
  error: "CONDITION_LIMIT",
  message: `it needs more than ${MAX_STEPS} steps for this request`,
} as const;

/**
 * Explains a library error without values of the request, because reasons are stored forever but arguments can be
 * erased.
 */
export function explainError(message: string, names: ReadonlySet<string>): string {
  const [, field] = /^field not found: (.*)$/s.exec(message) ?? [];
  if (field !== undefined)
    return names.has(field) ? `there is no field "${field}"; test for it with has()` : "no field has this name";
  const [, operator, types] =
    /^found no matching overload for '([^']*)' applied to '.*\(([a-z_., ]*)\)'$/i.exec(message) ?? [];
  if (operator !== undefined)
    return `"${/^[a-z]/i.test(operator) ? operator : operator.replaceAll(/[_@]/g, "")}" cannot take (${types ?? ""})`;
  if (message.startsWith("index ")) return "an index is outside its list";
  if (message.startsWith("unresolved attribute")) return "a field of something that has no fields is read";
  if (message.startsWith("type mismatch: iterable")) return "exists, all, map and filter need a list or a map";
  if (message.startsWith("type mismatch: expected bool")) return "&& and || need true or false on both sides";
  if (
    /^"[^"]*" cannot take these values$/.test(message) ||
    isHistoryFaultMessage(message) ||
    isFactFaultMessage(message)
  )
    return message;
  return "it cannot be evaluated for these values";
}

function syntaxFault(error: unknown, source: string, expressionKind: string): [message: string, offset: number] {
  const text = error instanceof Error ? error.message : String(error);
  const offset = (error as { location?: { start?: { offset?: number } } }).location?.start?.offset ?? 0;
  const description = offset >= source.trimEnd().length ? "the end" : JSON.stringify(source.slice(offset, offset + 12));
  const hint = operatorHint(source, offset);
  return [
    / but expecting /.test(text)
      ? `the ${expressionKind} cannot be read at ${description}${hint}`
      : `the ${expressionKind} cannot be read: ${text}${hint}`,
    offset,
  ];
}

/** Operators of other languages, with their equivalent in CEL. */
const OPERATORS: Readonly<Record<string, string>> = { and: "&&", or: "||", not: "!", "=": "==", "<>": "!=" };

/** Suggests the CEL operator if the parser stopped at an operator of another language. */
function operatorHint(source: string, offset: number): string {
  const [, token = ""] = /^\s*([a-z]+|=(?!=)|<>)/i.exec(source.slice(offset)) ?? [];
  // The parser can stop after the first character of a longer operator, such as the first `=` of `==`.
  const [, before = ""] = /(?:^|[^=!<>])(=|<>|\bnot|\band|\bor)\s*$/i.exec(source.slice(0, offset)) ?? [];
  const written = [token, before].find((operator) => operator.toLowerCase() in OPERATORS);
  return written === undefined ? "" : `; write "${OPERATORS[written.toLowerCase()] ?? ""}" instead of "${written}"`;
}

/**
 * Conditions in CEL. An expression is checked once, when its policy is compiled; evaluating it can
 * still fail (a field that is not there, a type that does not fit), and that is a result, not an
 * exception: the rule's policy then denies.
 *
 * What an expression may cost is bounded twice: its text and shape when it is compiled, and the
 * collections it would walk when it is evaluated.
 */
import { celEnv, isCelError, parse, plan, type CelInput } from "@bufbuild/cel";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ActionRequest } from "../actions.ts";
import type { JsonValue } from "../json.ts";
import { suggest } from "../suggest.ts";
import type { Facts } from "./types.ts";

export const MAX_LENGTH = 2_048;
export const MAX_DEPTH = 64;
export const MAX_NESTING = 2;
export const MAX_COMPREHENSIONS = 8;
/** Elements of the largest collection in the request, by how deep the expression's comprehensions nest. */
export const MAX_ELEMENTS: readonly number[] = [Infinity, 1_024, 128];
/** Characters of the longest string in the request where the expression uses `matches`. */
export const MAX_MATCHED_LENGTH = 65_536;

export const VARIABLES = ["agent", "tool", "operation", "params", "context", "principal", "now"] as const;
const TYPE_NAMES = ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type", "google"];

export type ConditionResult =
  | { value: boolean }
  | { error: "CONDITION_ERROR" | "CONDITION_LIMIT"; message: string };

export interface Condition {
  evaluate(activation: Activation): ConditionResult;
}

export type CompiledCondition = { ok: true; condition: Condition } | { ok: false; message: string; offset: number };

/** The variables of one decision. Converted when the first condition asks, and once. */
export class Activation {
  /** Elements of the largest list or map in the request. */
  largest = 0;
  /** Characters of the longest string in the request. */
  longest = 0;
  private readonly request: ActionRequest;
  private readonly facts: Facts;
  private readonly now: number;
  private made: Record<string, CelInput> | null = null;

  constructor(request: ActionRequest, facts: Facts, now: number) {
    this.request = request;
    this.facts = facts;
    this.now = now;
  }

  bindings(): Record<string, CelInput> {
    if (this.made === null) {
      const { agent_id, tool, operation, params, context } = this.request;
      this.made = {
        agent: agent_id,
        tool,
        operation,
        params: this.convert(params),
        context: this.convert(context),
        principal: this.convert(this.facts.principal),
        now: timestampFromMs(this.now),
      };
    }
    return this.made;
  }

  /** Integers become CEL ints, other numbers doubles; objects become maps, so that no key can reach a prototype. */
  private convert(value: JsonValue): CelInput {
    if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
    if (typeof value === "string") {
      if (value.length > this.longest) this.longest = value.length;
      return value;
    }
    if (value === null || typeof value === "boolean") return value;
    if (Array.isArray(value)) {
      if (value.length > this.largest) this.largest = value.length;
      return value.map((item) => this.convert(item));
    }
    const map = new Map<string, CelInput>();
    for (const [key, item] of Object.entries(value)) map.set(key, this.convert(item));
    if (map.size > this.largest) this.largest = map.size;
    return map;
  }
}

const env = celEnv();

export function compileCondition(source: string): CompiledCondition {
  const fail = (message: string, offset = 0): CompiledCondition => ({ ok: false, message, offset });
  if (source.trim() === "") return fail("the condition is empty");
  if (source.length > MAX_LENGTH) return fail(`the condition has ${source.length} characters, at most ${MAX_LENGTH} are allowed`);
  try {
    const parsed = parse(source);
    const shape = inspect(parsed.expr as unknown as Node);
    if (shape.fault !== null) return fail(shape.fault);
    const run = plan(env, parsed);
    return { ok: true, condition: { evaluate: (activation) => evaluate(run, shape, activation) } };
  } catch (error) {
    if (error instanceof RangeError) return fail("the condition nests too deeply");
    const { message, offset } = locate(error);
    return fail(message, offset);
  }
}

function evaluate(run: (bindings: Record<string, CelInput>) => unknown, shape: Shape, activation: Activation): ConditionResult {
  try {
    const bindings = activation.bindings();
    const limit = MAX_ELEMENTS[shape.nesting] as number;
    if (activation.largest > limit) {
      return { error: "CONDITION_LIMIT", message: `the request holds a list or map of ${activation.largest} elements, and the condition may walk at most ${limit}` };
    }
    if (shape.matches && activation.longest > MAX_MATCHED_LENGTH) {
      return { error: "CONDITION_LIMIT", message: `the request holds a string of ${activation.longest} characters, and the condition may match at most ${MAX_MATCHED_LENGTH}` };
    }
    const result = run(bindings);
    if (typeof result === "boolean") return { value: result };
    if (isCelError(result)) return { error: "CONDITION_ERROR", message: result.message };
    return { error: "CONDITION_ERROR", message: "the condition gives something else than true or false" };
  } catch (error) {
    if (error instanceof RangeError) return { error: "CONDITION_LIMIT", message: "the condition needs more stack or memory than it may use" };
    return { error: "CONDITION_ERROR", message: error instanceof Error ? error.message : String(error) };
  }
}

interface Shape {
  nesting: number;
  matches: boolean;
  fault: string | null;
}

/** What `inspect` reads of the syntax tree (google.api.expr.v1alpha1.Expr). */
interface Node {
  exprKind?: { case?: string; value?: Record<string, unknown> };
}

function inspect(root: Node): Shape {
  const shape: Shape = { nesting: 0, matches: false, fault: null };
  let comprehensions = 0;
  const visit = (node: Node | undefined, depth: number, nesting: number, scope: readonly string[]): void => {
    if (node === undefined || shape.fault !== null) return;
    if (depth > MAX_DEPTH) {
      shape.fault = `the condition nests deeper than ${MAX_DEPTH} levels`;
      return;
    }
    const value = node.exprKind?.value ?? {};
    const go = (child: unknown, deeper = nesting, names = scope): void => visit(child as Node | undefined, depth + 1, deeper, names);
    switch (node.exprKind?.case) {
      case "identExpr": {
        const name = (value["name"] as string).replace(/^\./, "");
        if (!scope.includes(name) && !TYPE_NAMES.includes(name)) {
          const meant = suggest(name, VARIABLES);
          shape.fault = `there is no variable "${name}"${meant === null ? `; the variables are ${VARIABLES.join(", ")}` : `; did you mean "${meant}"?`}`;
        }
        return;
      }
      case "selectExpr":
        // `google.protobuf.Timestamp` and its like are names, not selections of a variable.
        return go(value["operand"]);
      case "callExpr":
        if (value["function"] === "matches") shape.matches = true;
        go(value["target"]);
        for (const arg of value["args"] as Node[]) go(arg);
        return;
      case "listExpr":
        for (const element of value["elements"] as Node[]) go(element);
        return;
      case "structExpr":
        for (const entry of value["entries"] as { keyKind?: { case?: string; value?: unknown }; value?: unknown }[]) {
          if (entry.keyKind?.case === "mapKey") go(entry.keyKind.value);
          go(entry.value);
        }
        return;
      case "comprehensionExpr": {
        comprehensions++;
        if (comprehensions > MAX_COMPREHENSIONS) shape.fault = `the condition has more than ${MAX_COMPREHENSIONS} comprehensions`;
        if (nesting + 1 > MAX_NESTING) shape.fault = `the condition nests comprehensions deeper than ${MAX_NESTING}`;
        shape.nesting = Math.max(shape.nesting, nesting + 1);
        const names = [...scope, ...[value["iterVar"], value["iterVar2"], value["accuVar"]].filter((name): name is string => typeof name === "string" && name !== "")];
        // The range of an inner comprehension inside an outer one's range multiplies as well.
        go(value["iterRange"], nesting + (containsComprehension(value["iterRange"] as Node) ? 1 : 0));
        go(value["accuInit"]);
        for (const part of ["loopCondition", "loopStep", "result"]) go(value[part], nesting + 1, names);
        return;
      }
      default:
        return;
    }
  };
  visit(root, 1, 0, VARIABLES);
  return shape;
}

function containsComprehension(node: Node | undefined): boolean {
  return node !== undefined && JSON.stringify(node, (_, value: unknown) => (typeof value === "bigint" ? null : value)).includes('"comprehensionExpr"');
}

function locate(error: unknown): { message: string; offset: number } {
  const at = (error as { location?: { start?: { offset?: number } } }).location?.start?.offset ?? 0;
  const text = error instanceof Error ? error.message : String(error);
  return { message: text.replace(/^(?:ParseSyntaxError: )?syntax error <input>:/, "syntax error at "), offset: at };
}

/** The syntax tree of CEL expressions. */
import type { parse } from "@bufbuild/cel";

export type ParsedExpression = ReturnType<typeof parse>;
export type Expr = ParsedExpression["expr"];

type Kind<Case extends Expr["exprKind"]["case"]> =
  Extract<Expr["exprKind"], { case: Case }> extends { value: infer Value } ? Value : never;

export type CallExpr = Kind<"callExpr">;
export type SelectExpr = Kind<"selectExpr">;
export type ListExpr = Kind<"listExpr">;
export type StructExpr = Kind<"structExpr">;
export type ComprehensionExpr = Kind<"comprehensionExpr">;
export type Constant = Kind<"constExpr">["constantKind"];

/** Name of the element variable of `cel.bind`, which is not used. */
export const UNUSED_VARIABLE = "#unused";

/** Returns true if a comprehension is a `cel.bind`, which evaluates its body once. */
export const isBinding = ({ iterVar }: ComprehensionExpr): boolean => iterVar === UNUSED_VARIABLE;

/** Operators of `owner.?name` and `owner[?key]`, with their names in the specification. */
export const OPTIONAL_SELECT = "_?._";
export const OPTIONAL_INDEX = "_[?_]";

/** Maps the macros `optMap` and `optFlatMap` to the names of their unused element variables. */
export const OPTIONAL_MACROS: Readonly<Record<string, string>> = { optMap: "#optMap", optFlatMap: "#optFlatMap" };

/** Returns true if a comprehension is a macro of optionals, which evaluates its body once if there is a value. */
export const isOptionalMacro = ({ iterVar }: ComprehensionExpr): boolean =>
  Object.values(OPTIONAL_MACROS).includes(iterVar);

/**
 * Returns the owner and the name of `owner.name`, `owner["name"]` and their optional forms. The name is null for
 * `owner[expression]`. Returns null for other expressions, and for `owner[1]`, because a number is an index of a list.
 */
export function readAccess({ exprKind: kind }: Expr): { owner: Expr; name: string | null } | null {
  if (kind.case === "selectExpr") return { owner: kind.value.operand as Expr, name: kind.value.field };
  if (kind.case !== "callExpr" || !["_[_]", OPTIONAL_INDEX, OPTIONAL_SELECT].includes(kind.value.function)) return null;
  const [owner, key] = kind.value.args as [Expr, Expr];
  const constant = key.exprKind.case === "constExpr" ? key.exprKind.value.constantKind : null;
  if (constant?.case === "int64Value") return null;
  return { owner, name: constant?.case === "stringValue" ? constant.value : null };
}

/** Returns every direct child of a node. */
export function childrenOf({ exprKind: kind }: Expr): Expr[] {
  const children = (): (Expr | undefined)[] => {
    switch (kind.case) {
      case "selectExpr":
        return [kind.value.operand];
      case "callExpr":
        return [kind.value.target, ...kind.value.args];
      case "listExpr":
        return kind.value.elements;
      case "structExpr":
        return kind.value.entries.flatMap(({ keyKind, value }) => [
          keyKind.case === "mapKey" ? keyKind.value : undefined,
          value,
        ]);
      case "comprehensionExpr": {
        const { iterRange, accuInit, loopCondition, loopStep, result } = kind.value;
        return [iterRange, accuInit, loopCondition, loopStep, result];
      }
      default:
        return [];
    }
  };
  return children().filter((child) => child !== undefined);
}

/** Returns the number of nodes, which is the minimum cost of an evaluation. */
export function countNodes(expr: Expr): number {
  return childrenOf(expr).reduce((count, child) => count + countNodes(child), 1);
}

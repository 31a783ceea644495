/** The syntax tree of CEL expressions. */
import type { parse } from "@bufbuild/cel";

export type ParsedExpression = ReturnType<typeof parse>;
export type Expr = ParsedExpression["expr"];

type Kind<Case extends Expr["exprKind"]["case"]> =
  Extract<Expr["exprKind"], { case: Case }> extends { value: infer Value } ? Value : never;

export type CallExpr = Kind<"callExpr">;
export type SelectExpr = Kind<"selectExpr">;
export type StructExpr = Kind<"structExpr">;
export type ComprehensionExpr = Kind<"comprehensionExpr">;
export type Constant = Kind<"constExpr">["constantKind"];

/** Name of the element variable of `cel.bind`, which is not used. */
export const UNUSED_VARIABLE = "#unused";

/** Returns true if a comprehension is a `cel.bind`, which evaluates its body once. */
export const isBinding = ({ iterVar }: ComprehensionExpr): boolean => iterVar === UNUSED_VARIABLE;

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

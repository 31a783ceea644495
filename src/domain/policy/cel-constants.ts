/**
 * What is the same at each evaluation, made once: the evaluator looks up the name of a type wherever it stands, and makes
 * each list anew. Only where nothing can tell: types are one object each anyway, and a list is seen by its `in` alone;
 * whatever else compares lists takes fewer steps where both are one object.
 */
import { celList, CelScalar, celUint, type CelInput, type parse } from "@bufbuild/cel";

type Expr = ReturnType<typeof parse>["expr"];

const TYPES: ReadonlyMap<string, CelInput> = new Map(
  [
    CelScalar.INT,
    CelScalar.UINT,
    CelScalar.DOUBLE,
    CelScalar.BOOL,
    CelScalar.STRING,
    CelScalar.BYTES,
    CelScalar.NULL,
    CelScalar.TYPE,
  ].map((type) => [type.name, type as unknown as CelInput]),
);

/** Changes the tree. Once it has been looked at: what stands there then is no CEL any more. */
export function makeOnce(root: Expr): void {
  const calls: { name: string; args: Expr[] }[] = [];
  /** Names of elements and results of `all`, `exists` and the like: such a name may be a type's elsewhere. */
  const local = new Set<string>();
  collect(root, calls, local);
  const valueOf = ({ exprKind }: Expr): CelInput | undefined => {
    if (exprKind.case === "constExpr") return constantOf(exprKind.value.constantKind);
    if (exprKind.case !== "identExpr" || local.has(exprKind.value.name)) return undefined;
    return TYPES.get(exprKind.value.name);
  };
  for (const { name, args } of calls) {
    if (name === "@in") putList(args[1], valueOf);
    else if (name === "_==_" || name === "_!=_")
      for (const arg of args) if (arg.exprKind.case === "identExpr") put(arg, valueOf(arg));
  }
}

function putList(node: Expr | undefined, valueOf: (element: Expr) => CelInput | undefined): void {
  if (node?.exprKind.case !== "listExpr") return;
  const values = node.exprKind.value.elements.map(valueOf);
  if (!values.includes(undefined)) put(node, celList(values as CelInput[]));
}

/** The evaluator gives what a constant holds, whatever it is. */
function put(node: Expr, value: CelInput | undefined): void {
  if (value === undefined) return;
  const constantKind = { case: "bytesValue" as const, value: value as Uint8Array };
  node.exprKind = { case: "constExpr", value: { $typeName: "cel.expr.Constant", constantKind } };
}

function constantOf({ case: kind, value }: ConstantKind): CelInput | undefined {
  if (kind === "uint64Value") return celUint(value);
  if (kind === "nullValue") return null;
  return kind === "durationValue" || kind === "timestampValue" ? undefined : value;
}

type ConstantKind = Extract<Expr["exprKind"], { case: "constExpr" }>["value"]["constantKind"];

function collect(node: Expr | undefined, calls: { name: string; args: Expr[] }[], local: Set<string>): void {
  const within = (child: Expr | undefined): void => collect(child, calls, local);
  const kind = node?.exprKind;
  switch (kind?.case) {
    case "selectExpr":
      within(kind.value.operand);
      break;
    case "callExpr":
      within(kind.value.target);
      kind.value.args.forEach(within);
      calls.push({ name: kind.value.function, args: kind.value.args });
      break;
    case "listExpr":
      kind.value.elements.forEach(within);
      break;
    case "structExpr":
      for (const { keyKind, value } of kind.value.entries) {
        if (keyKind.case === "mapKey") within(keyKind.value);
        within(value);
      }
      break;
    case "comprehensionExpr": {
      const { iterVar, accuVar, iterRange, accuInit, loopCondition, loopStep, result } = kind.value;
      local.add(iterVar).add(accuVar);
      [iterRange, accuInit, loopCondition, loopStep, result].forEach(within);
    }
  }
}

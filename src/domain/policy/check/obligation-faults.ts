/** Finds faults in `obligations` when the policy is loaded. */
import { findObligationConflict } from "../../obligations.ts";
import type { RuleDocument } from "../policy-types.ts";
import { createUnion, describeType, DYN, type StaticType, unionMembers } from "./static-types.ts";

interface ObligationsFault {
  /** RFC 6901 pointer from `obligations`. */
  pointer: string;
  detail: string;
  /** Whether the fault is in the key instead of its value. */
  key?: boolean;
}

/**
 * Returns the faults: changes by a rule that denies, bounds that no value satisfies, and parameters that the schemas of
 * the tools do not have or that have a different type.
 * @param params type of `params`, see `inferParamsType`
 */
export function findObligationFaults(
  { effect, obligations }: Pick<RuleDocument, "effect" | "obligations">,
  params: StaticType,
): ObligationsFault[] {
  if (obligations === undefined) return [];
  const { redact = [], set = {}, clamp = {} } = obligations;
  const redactFaults = redact.flatMap((path, i) => {
    const detail = findTypeFault(path, null, params);
    return detail === null ? [] : [{ pointer: `/redact/${i}`, detail }];
  });
  if (effect === "deny")
    return [
      ...redactFaults,
      ...(["set", "clamp"] as const)
        .filter((name) => obligations[name] !== undefined)
        .map((name) => ({
          pointer: `/${name}`,
          detail: "it has no meaning with the effect deny; remove it",
          key: true,
        })),
    ];
  return [
    ...redactFaults,
    ...Object.entries(set).flatMap(([path, value]) => {
      const detail = findTypeFault(path, typeof value as ParameterType, params);
      return detail === null ? [] : [{ pointer: `/set/${path}`, detail }];
    }),
    ...Object.entries(clamp).flatMap(([path, bounds]) => {
      const value = set[path];
      const conflict = findObligationConflict({ ...bounds, ...(value === undefined ? {} : { set: value }) });
      const detail = conflict ?? findTypeFault(path, "number", params);
      return detail === null ? [] : [{ pointer: `/clamp/${path}`, detail }];
    }),
  ];
}

type ParameterType = "string" | "number" | "boolean";

const KINDS: Readonly<Record<ParameterType, readonly string[]>> = {
  string: ["string"],
  number: ["int", "uint", "double"],
  boolean: ["bool"],
};

/**
 * Returns why the parameter cannot have a value of the type, according to the schemas; null if it can have such a
 * value.
 * @param expectedType the type; null if the parameter can have any type and can be a member of objects in a list
 */
function findTypeFault(path: string, expectedType: ParameterType | null, params: StaticType): string | null {
  let type = params;
  for (const name of path.split(".").slice(1)) {
    const members = unionMembers(type);
    const owners =
      expectedType === null ? members.map((each) => (each.kind === "list" ? each.element : each)) : members;
    const next = unionMembers(createUnion(owners)).flatMap((member) =>
      member.kind === "map" ? (member.fields.get(name) ?? member.rest ?? []) : member.kind === "dyn" ? DYN : [],
    );
    if (next.length === 0) return `the tool has no parameter ${path}, according to its schema`;
    type = createUnion(next);
  }
  if (expectedType === null) return null;
  const fits = unionMembers(type).some(({ kind }) => kind === "dyn" || KINDS[expectedType].includes(kind));
  return fits ? null : `${path} is ${describeType(type)}, not a ${expectedType}`;
}

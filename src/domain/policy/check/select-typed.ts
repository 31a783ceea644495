/**
 * Checks that an external value has its declared type. Conditions were type-checked with the declared type, so their
 * result for a value of a different type would be unpredictable.
 */
import type { JsonValue } from "../../json.ts";
import { unionMembers, type ListType, type MapType, type ScalarType, type StaticType } from "./static-types.ts";

/**
 * Returns the members of a value that its type declares; null if the value has a different type. The value can lack
 * declared members.
 * @example selectDeclaredMembers({ status: "open", note: "x" }, typeOfJsonSchema({ properties: { status: { type: "string" } } })) // { value: { status: "open" } }
 */
export function selectDeclaredMembers(value: JsonValue, type: StaticType): { value: JsonValue } | null {
  const members = unionMembers(type);
  if (members.length === 0) return { value };
  for (const member of members) {
    const selected = selectMember(value, member);
    if (selected !== null) return selected;
  }
  return null;
}

function selectMember(value: JsonValue, type: ReturnType<typeof unionMembers>[number]): { value: JsonValue } | null {
  // No JSON value is optional.
  if (type.kind === "optional") return null;
  if (type.kind === "list") return Array.isArray(value) ? selectElements(value, type) : null;
  if (type.kind === "map") return selectFields(value, type);
  return isScalarOf(value, type) ? { value } : null;
}

function selectElements(values: readonly JsonValue[], { element }: ListType): { value: JsonValue } | null {
  const selected: JsonValue[] = [];
  for (const value of values) {
    const one = selectDeclaredMembers(value, element);
    if (one === null) return null;
    selected.push(one.value);
  }
  return { value: selected };
}

function selectFields(value: JsonValue, { fields, rest }: MapType): { value: JsonValue } | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const selected: [string, JsonValue][] = [];
  for (const [name, member] of Object.entries(value)) {
    const type = fields.get(name) ?? rest;
    if (type === null) continue;
    const one = selectDeclaredMembers(member, type);
    if (one === null) return null;
    selected.push([name, one.value]);
  }
  return { value: Object.fromEntries(selected) };
}

function isScalarOf(value: JsonValue, { kind, values }: ScalarType): boolean {
  switch (kind) {
    case "dyn":
      return true;
    case "string":
      return typeof value === "string" && (values === undefined || values.includes(value));
    case "int":
      return Number.isSafeInteger(value);
    case "double":
      return typeof value === "number";
    case "bool":
      return typeof value === "boolean";
    case "null":
      return value === null;
    default:
      return false;
  }
}

/** Types that are known before a policy runs: the types of variables, constants and declared tool parameters. */
import { unescapePointerToken } from "../../json-pointer.ts";
import type { JsonObject, JsonValue } from "../../json.ts";

export type ScalarName =
  | "dyn"
  | "int"
  | "uint"
  | "double"
  | "bool"
  | "string"
  | "bytes"
  | "null"
  | "timestamp"
  | "duration"
  | "net.IP"
  | "net.CIDR"
  | "type";

/** `values` contains all possible strings, for a JSON Schema with `enum` or `const`. */
export interface ScalarType {
  readonly kind: ScalarName;
  readonly values?: readonly string[];
}

export interface ListType {
  readonly kind: "list";
  readonly element: StaticType;
}

export interface MapType {
  readonly kind: "map";
  readonly fields: ReadonlyMap<string, StaticType>;
  /** Type of the members that are not in `fields`; null if there are no other members. */
  readonly rest: StaticType | null;
}

/** An optional value, such as `params.?amount`. */
interface OptionalType {
  readonly kind: "optional";
  readonly element: StaticType;
}

/** A union. The empty union is the element type of an empty list, and is assignable to every type. */
interface UnionType {
  readonly kind: "union";
  readonly members: readonly StaticType[];
}

type MemberType = ScalarType | ListType | MapType | OptionalType;

export type StaticType = MemberType | UnionType;

export const DYN: ScalarType = { kind: "dyn" };
export const BOOL: ScalarType = { kind: "bool" };
export const STRING: ScalarType = { kind: "string" };
export const ANY_MAP: MapType = { kind: "map", fields: new Map(), rest: DYN };

/** Returns the flattened union of types. If one of them is `dyn`, the union is `dyn`. */
export function createUnion(types: readonly StaticType[]): StaticType {
  const members = types.flatMap((type) => (type.kind === "union" ? type.members : [type]));
  if (members.some(({ kind }) => kind === "dyn")) return DYN;
  const [only] = members;
  if (only !== undefined && members.length === 1) return only;
  return { kind: "union", members };
}

/** Returns the types that a value of `type` can have. */
export function unionMembers(type: StaticType): readonly MemberType[] {
  return type.kind === "union" ? type.members.flatMap(unionMembers) : [type];
}

/** Unwraps optionals in a type. Also returns whether the type included an optional. */
export function unwrapOptional(type: StaticType): { type: StaticType; isOptional: boolean } {
  const members = unionMembers(type);
  const isOptional = members.some(({ kind }) => kind === "optional");
  if (!isOptional) return { type, isOptional };
  return {
    type: createUnion(members.map((member) => (member.kind === "optional" ? member.element : member))),
    isOptional,
  };
}

const NUMBERS: readonly string[] = ["int", "uint", "double"];

/** Returns true if a value of `a` can equal a value of `b`. Numbers of different types can be equal. */
export function canBeEqual(a: StaticType, b: StaticType): boolean {
  const [left, right] = [unionMembers(a), unionMembers(b)];
  if (left.length === 0 || right.length === 0) return true;
  return left.some((x) =>
    right.some((y) => {
      if (x.kind === "dyn" || y.kind === "dyn") return true;
      if (x.kind === "list") return y.kind === "list";
      if (x.kind === "map") return y.kind === "map";
      if (x.kind === "optional") return y.kind === "optional" && canBeEqual(x.element, y.element);
      if (x.kind !== y.kind) return NUMBERS.includes(x.kind) && NUMBERS.includes(y.kind);
      const [texts, others] = [x.values, (y as ScalarType).values];
      return texts === undefined || others === undefined || texts.some((text) => others.includes(text));
    }),
  );
}

const NAMES: Readonly<Record<MemberType["kind"], string>> = {
  list: "a list",
  map: "a map",
  optional: "an optional",
  dyn: "any value",
  int: "an int",
  uint: "a uint",
  double: "a double",
  bool: "a bool",
  string: "a string",
  bytes: "bytes",
  null: "null",
  timestamp: "a timestamp",
  duration: "a duration",
  "net.IP": "an IP address",
  "net.CIDR": "a network",
  type: "a type",
};

/** Returns a noun phrase with its article, such as `an int or null`. */
export function describeType(type: StaticType): string {
  const names = unionMembers(type).map(({ kind }) => NAMES[kind]);
  return names.length === 0 ? NAMES.dyn : [...new Set(names)].join(" or ");
}

/**
 * Returns the type of one JSON value. The type of a string allows only this string; the type of a map allows only these
 * members.
 */
export function typeOfJson(value: JsonValue): StaticType {
  if (typeof value === "string") return { kind: "string", values: [value] };
  if (typeof value === "number") return { kind: Number.isSafeInteger(value) ? "int" : "double" };
  if (typeof value === "boolean") return BOOL;
  if (value === null) return { kind: "null" };
  if (Array.isArray(value)) return { kind: "list", element: mergeTexts(value.map(typeOfJson)) };
  return {
    kind: "map",
    fields: new Map(Object.entries(value).map(([name, member]) => [name, typeOfJson(member)])),
    rest: null,
  };
}

/** Returns the union, with all strings combined into one type, so that a long list is checked quickly. */
function mergeTexts(types: readonly StaticType[]): StaticType {
  const texts = types.flatMap((type) => (type.kind === "string" ? (type.values ?? []) : []));
  const others = types.filter(({ kind }) => kind !== "string");
  return createUnion([...(texts.length === 0 ? [] : [{ kind: "string", values: texts } as const]), ...others]);
}

/** Maximum depth of schemas that are read. Values below it have the type `dyn`. */
const MAX_SCHEMA_DEPTH = 16;

/**
 * Returns the type of the values that a JSON Schema describes. Reads `type`, `enum`, `const`, `properties`, `items`,
 * `additionalProperties`, `anyOf`, `oneOf` and local `$ref`; other keywords restrict values further and are ignored. An
 * object with `properties` has no other members unless `additionalProperties` is true or a schema, because misspelt
 * parameters are the most common mistake. Source: JSON Schema 2020-12, Validation, section 6.1; Core, sections 8.2.3,
 * 10.2 and 10.3.
 */
export function typeOfJsonSchema(
  schema: JsonValue | undefined,
  root: JsonValue = schema ?? true,
  depth = 0,
): StaticType {
  if (!isObject(schema) || depth > MAX_SCHEMA_DEPTH) return DYN;
  const inner = (part: JsonValue | undefined): StaticType => typeOfJsonSchema(part, root, depth + 1);
  if (typeof schema["$ref"] === "string") return inner(resolveLocalRef(schema["$ref"], root));
  const alternatives = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(alternatives)) return createUnion(alternatives.map(inner));
  const constants = Array.isArray(schema["enum"])
    ? schema["enum"]
    : "const" in schema
      ? [schema["const"] ?? null]
      : null;
  if (constants !== null) return createUnion(typesOfConstants(constants));
  const { type } = schema;
  const types = Array.isArray(type) ? type : [type];
  return createUnion(types.map((name) => typeByName(name, schema, inner)));
}

function typeByName(
  name: JsonValue | undefined,
  schema: JsonObject,
  inner: (part?: JsonValue) => StaticType,
): StaticType {
  switch (name) {
    case "string":
      return STRING;
    case "integer":
      return { kind: "int" };
    case "number":
      // JSON does not distinguish 5 from 5.0, and CEL reads both as an int.
      return createUnion([{ kind: "int" }, { kind: "double" }]);
    case "boolean":
      return BOOL;
    case "null":
      return { kind: "null" };
    case "array":
      return { kind: "list", element: inner(schema["items"]) };
    case "object":
      return objectType(schema, inner);
    default:
      return name === undefined && isObject(schema["properties"]) ? objectType(schema, inner) : DYN;
  }
}

function objectType(schema: JsonObject, inner: (part?: JsonValue) => StaticType): MapType {
  const properties = schema["properties"];
  const others = schema["additionalProperties"];
  if (!isObject(properties)) return { kind: "map", fields: new Map(), rest: others === false ? null : inner(others) };
  return {
    kind: "map",
    fields: new Map(Object.entries(properties).map(([name, part]) => [name, inner(part)])),
    rest: others === true || isObject(others) ? inner(others) : null,
  };
}

function typesOfConstants(constants: readonly JsonValue[]): StaticType[] {
  const texts = constants.filter((value) => typeof value === "string");
  const types: StaticType[] = texts.length === 0 ? [] : [{ kind: "string", values: texts }];
  for (const value of constants) {
    if (typeof value === "number") types.push({ kind: Number.isSafeInteger(value) ? "int" : "double" });
    else if (typeof value === "boolean") types.push(BOOL);
    else if (value === null) types.push({ kind: "null" });
    else if (typeof value === "object") types.push(DYN);
  }
  return types;
}

/** Returns the schema at a reference such as `#/$defs/money`; undefined if it does not exist. */
function resolveLocalRef(reference: string, root: JsonValue): JsonValue | undefined {
  if (!reference.startsWith("#/")) return undefined;
  let part: JsonValue | undefined = root;
  for (const segment of reference.slice(2).split("/")) {
    const key = unescapePointerToken(decodeURIComponent(segment));
    part = isObject(part) && Object.hasOwn(part, key) ? part[key] : undefined;
  }
  return part;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The runtime types of CEL values, which determine the overload of a call. */
import { isCelList, isCelMap, isCelType, isCelUint } from "@bufbuild/cel";
import { isReflectMessage } from "@bufbuild/protobuf/reflect";
import { CelCidr, CelIp, CelOptional, JsonList, JsonMap } from "./cel-values.ts";

/** A type that a function declares. */
export interface DeclaredType {
  readonly kind: string;
  readonly name: string;
}

/** Names of the types. A kind is an index into this list. Values of other messages have the kind of `message`. */
const NAMES = [
  "string",
  "int",
  "double",
  "bool",
  "null_type",
  "map",
  "list",
  "bytes",
  "uint",
  "google.protobuf.Timestamp",
  "google.protobuf.Duration",
  "type",
  "message",
  "optional_type",
  "net.IP",
  "net.CIDR",
];

/** Number of kinds. */
export const KIND_COUNT = NAMES.length;
/** The kind of a declared type that accepts every value. */
export const ANY_KIND = -1;

/** Returns the kind of the values that a declared type accepts. */
export function kindOfType({ name }: DeclaredType): number {
  const kind = NAMES.indexOf(name);
  if (kind < 0 && name !== "dyn") throw new Error(`no kind for values of the type ${name}`);
  return kind;
}

/** Returns the name of a kind, such as `int` or `google.protobuf.Timestamp`. */
export const nameOfKind = (kind: number): string => NAMES[kind] as string;

/** Returns the kind of a value. */
export function kindOf(value: unknown): number {
  switch (typeof value) {
    case "string":
      return 0;
    case "bigint":
      return 1;
    case "number":
      return 2;
    case "boolean":
      return 3;
  }
  if (value === null) return 4;
  if (value instanceof JsonMap) return 5;
  if (value instanceof JsonList) return 6;
  if (value instanceof Uint8Array) return 7;
  if (value instanceof CelOptional) return 13;
  if (value instanceof CelIp) return 14;
  if (value instanceof CelCidr) return 15;
  if (isCelList(value)) return 6;
  if (isCelMap(value)) return 5;
  if (isCelUint(value)) return 8;
  if (isReflectMessage(value)) return kindOfMessage(value.desc.typeName);
  return isCelType(value as Parameters<typeof isCelType>[0]) ? 11 : 12;
}

function kindOfMessage(typeName: string): number {
  const kind = NAMES.indexOf(typeName);
  return kind < 0 ? 12 : kind;
}

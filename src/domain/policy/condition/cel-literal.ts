/** Converts values of requests to CEL literals, which can never be parsed as anything except a literal. */
import type { JsonValue } from "../../json.ts";
import { escapeCharacter } from "../../text.ts";

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Words that CEL rejects as a member name after a dot. */
const RESERVED = new Set([
  "in",
  "true",
  "false",
  "null",
  "as",
  "break",
  "const",
  "continue",
  "else",
  "for",
  "function",
]);

/** Returns a CEL literal in which no character is invisible. */
export function celLiteral(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(celLiteral).join(", ")}]`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([name, member]) => `${celLiteral(name)}: ${celLiteral(member)}`)
      .join(", ")}}`;
  // CEL has no integers above 2^63, so write large numbers as doubles.
  if (typeof value === "number" && !Number.isSafeInteger(value) && Number.isInteger(value))
    return value.toExponential();
  return JSON.stringify(value).replace(/[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, escapeCharacter);
}

/** Returns true if CEL accepts the name after a dot. */
function isMemberName(name: string): boolean {
  return IDENTIFIER.test(name) && !RESERVED.has(name);
}

/** The two parts of a request that a condition reads. */
export type RequestPart = "params" | "context";
export const REQUEST_PARTS: readonly RequestPart[] = ["params", "context"];

/** Returns the CEL expression of a parameter or a member of the context. */
export function celMember(part: RequestPart, name: string): string {
  return celPath(part, [name]);
}

/** Returns the CEL expression of a nested member, such as `params.order["total net"]`. */
export function celPath(part: RequestPart, path: readonly string[]): string {
  return path.reduce<string>(
    (owner, name) => (isMemberName(name) ? `${owner}.${name}` : `${owner}[${celLiteral(name)}]`),
    part,
  );
}

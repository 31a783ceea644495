/** Converts values of requests to CEL literals, which can never be parsed as anything except a literal. */
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
export function celLiteral(value: string | number | boolean | null): string {
  return JSON.stringify(value).replace(/[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, escapeCharacter);
}

/** Returns true if CEL accepts the name after a dot. */
function isMemberName(name: string): boolean {
  return IDENTIFIER.test(name) && !RESERVED.has(name);
}

/** Returns the CEL expression of a parameter. */
export function celParam(name: string): string {
  return isMemberName(name) ? `params.${name}` : `params[${celLiteral(name)}]`;
}

/** Returns a CEL expression that is true if the parameter is present. */
export function celHasParam(name: string): string {
  return isMemberName(name) ? `has(params.${name})` : `${celLiteral(name)} in params`;
}

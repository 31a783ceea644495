/** Headers of 2026-07-28, which repeat what is in the body. */
import { META, metaOf, type Request } from "./message.ts";

/** Where the name that is in the headers stands in the body. */
const NAMED: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
};

/** Headers are for those on the way that do not read the body. What they say must be what the body says. */
export function headerFault(headers: Headers, { method, params }: Request): string | null {
  if (headers.get("mcp-protocol-version") !== metaOf(params)[META.version])
    return "MCP-Protocol-Version is missing, or differs from the body";
  if (headers.get("mcp-method") !== method) return "Mcp-Method is missing, or differs from the body";
  const member = NAMED[method];
  if (member !== undefined && decoded(headers.get("mcp-name")) !== params?.[member])
    return "Mcp-Name is missing, or differs from the body";
  return null;
}

/** A value that ASCII cannot write stands as `=?base64?…?=`. */
function decoded(value: string | null): string | null {
  const encoded = value === null ? null : /^=\?base64\?(.*)\?=$/.exec(value.trim());
  return encoded === null ? (value?.trim() ?? null) : Buffer.from(encoded[1] as string, "base64").toString("utf8");
}

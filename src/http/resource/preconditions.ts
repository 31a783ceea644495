/** `If-Match` (RFC 9110, section 13.1.1): applies a change only if the client knows the current representation. */
import { Type } from "@sinclair/typebox";
import { Refusal } from "../../contract/errors.ts";

/** Schema of the `If-Match` header, for routes that accept it. */
export const IF_MATCH = Type.Object({
  "If-Match": Type.Optional(
    Type.String({
      description: "The last known `ETag`: the change is refused with 412 if the resource has changed since.",
    }),
  ),
});

/**
 * Throws PRECONDITION_FAILED unless the header is absent, `*`, or contains `current`, which is an entity tag with its
 * quotes.
 * @example
 * assertIfMatch(headers, `"${document.version}"`);
 */
export function assertIfMatch(headers: Headers, current: string): void {
  const ifMatch = headers.get("if-match");
  if (ifMatch === null || ifMatch.trim() === "*") return;
  // If-Match uses the strong comparison, so weak tags never match (section 8.8.3.2).
  if (ifMatch.split(",").some((tag) => tag.trim() === current)) return;
  throw new Refusal(
    "PRECONDITION_FAILED",
    `If-Match names ${ifMatch.slice(0, 100)}, but the resource is at ${current}: it was changed since; read it again and repeat the change`,
    {
      headers: { ETag: current },
    },
  );
}

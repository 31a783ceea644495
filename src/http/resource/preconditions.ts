/** `If-Match` (RFC 9110, section 13.1.1): a change is made only to the representation that the client saw. */
import { Type } from "@sinclair/typebox";
import { Refusal } from "../../contract/errors.ts";

/** For the documentation of routes that take it. */
export const IF_MATCH = Type.Object({
  "If-Match": Type.Optional(
    Type.String({ description: "The `ETag` that was seen: the change is refused (412) when another came first." }),
  ),
});

/** Throws PRECONDITION_FAILED unless the header is absent, `*`, or names `current`, an entity tag with its quotes. */
export function assertIfMatch(headers: Headers, current: string): void {
  const wanted = headers.get("if-match");
  if (wanted === null || wanted.trim() === "*") return;
  // Weak tags never match here: section 8.8.3.2.
  if (wanted.split(",").some((tag) => tag.trim() === current)) return;
  throw new Refusal(
    "PRECONDITION_FAILED",
    `If-Match names ${wanted.slice(0, 100)}, and the resource is at ${current}: it was changed meanwhile; read it again and repeat the change`,
    {
      headers: { ETag: current },
    },
  );
}

/** The key `coverage` of `assent.yaml`. */
import { Type } from "@sinclair/typebox";

export const CoverageSchema = Type.Object(
  {
    notify: Type.Union([Type.Array(Type.String({ minLength: 1 }), { maxItems: 100 }), Type.Null()], {
      default: null,
      description:
        "Channels to notify when a coverage statement has unmatched or missing effects. Default: all channels.",
    }),
  },
  { default: {}, additionalProperties: false, description: "Coverage statements, which `assent reconcile` records." },
);

/** The options of coverage statements: the key `coverage` of `assent.yaml`. */
import { type Static, Type } from "../../src/plugin.ts";

export const CoverageOptions = Type.Object(
  {
    notify: Type.Union([Type.Array(Type.String({ minLength: 1 }), { maxItems: 100 }), Type.Null()], {
      default: null,
      description:
        "Channels to notify when a coverage statement has unmatched or missing effects. Default: all channels.",
    }),
  },
  { default: {}, additionalProperties: false, description: "Coverage statements, which `assent reconcile` records." },
);
export type CoverageOptions = Static<typeof CoverageOptions>;

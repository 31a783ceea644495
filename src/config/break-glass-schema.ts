/** The key `break_glass` of `assent.yaml`. */
import { Type } from "@sinclair/typebox";

export const BreakGlassSchema = Type.Object(
  {
    notify: Type.Union([Type.Array(Type.String({ minLength: 1 }), { maxItems: 100 }), Type.Null()], {
      default: null,
      description:
        "Channels that are notified when someone approves alone in an emergency, in addition to those that were asked; absent: all of them.",
    }),
  },
  { default: {}, additionalProperties: false, description: "Emergency approvals by one person." },
);

/** The key `break_glass` of `assent.yaml`. */
import { Type } from "@sinclair/typebox";

export const BreakGlassSchema = Type.Object(
  {
    notify: Type.Union([Type.Array(Type.String({ minLength: 1 }), { maxItems: 100 }), Type.Null()], {
      default: null,
      description:
        "Channels to notify of emergency approvals, in addition to the channels that were notified of the request. Default: all channels.",
    }),
  },
  {
    default: {},
    additionalProperties: false,
    description: "Emergency approvals by one person without a second approver (break-glass).",
  },
);

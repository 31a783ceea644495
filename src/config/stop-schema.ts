/** The key `stop` of `assent.yaml`. */
import { Type } from "@sinclair/typebox";

export const StopSchema = Type.Object(
  {
    lift_approvals: Type.Integer({
      default: 1,
      minimum: 1,
      maximum: 10,
      description: "How many people it takes to lift a stop. To place one takes one.",
    }),
    notify: Type.Union([Type.Array(Type.String({ minLength: 1 }), { maxItems: 100 }), Type.Null()], {
      default: null,
      description: "Channels that are told of stops; absent: all of them.",
    }),
  },
  { default: {}, additionalProperties: false, description: "Stops, which halt decisions." },
);

/** The key `stop` of `assent.yaml`. */
import { Type } from "@sinclair/typebox";

export const StopSchema = Type.Object(
  {
    lift_approvals: Type.Integer({
      default: 1,
      minimum: 1,
      maximum: 10,
      description: "Number of people needed to lift a stop. One person can place a stop.",
    }),
    notify: Type.Union([Type.Array(Type.String({ minLength: 1 }), { maxItems: 100 }), Type.Null()], {
      default: null,
      description: "Channels that are told of stops; absent: all of them.",
    }),
  },
  { default: {}, additionalProperties: false, description: "Stops, which halt decisions." },
);

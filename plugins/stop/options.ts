/** The options of stops: the key `stop` of `assent.yaml`. */
import { type Static, Type } from "../../src/plugin.ts";

export const StopOptions = Type.Object(
  {
    lift_approvals: Type.Integer({
      default: 1,
      minimum: 1,
      maximum: 10,
      description: "Number of people who must lift a stop. One person is enough to place it.",
    }),
    notify: Type.Union([Type.Array(Type.String({ minLength: 1 }), { maxItems: 100 }), Type.Null()], {
      default: null,
      description: "Channels to notify of stops. Default: all channels.",
    }),
  },
  { default: {}, additionalProperties: false, description: "Stops, which prevent actions." },
);
export type StopOptions = Static<typeof StopOptions>;

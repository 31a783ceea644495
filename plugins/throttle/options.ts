/** The options of throttling: the key `throttle` of `assent.yaml`. */
import { type Static, Type } from "../../src/plugin.ts";

export const ThrottleOptions = Type.Object(
  {
    times: Type.Integer({
      default: 10,
      minimum: 0,
      maximum: 1000,
      description:
        "Factor by which a key may exceed its usual number of requests for approval per hour. Above the limit, requests get 429. 0 disables throttling.",
    }),
    minimum: Type.Integer({
      default: 60,
      minimum: 1,
      maximum: 10_000,
      description: "Number of requests for approval per hour that is never throttled.",
    }),
  },
  { default: {}, additionalProperties: false, description: "Throttling of unusually many requests." },
);
export type ThrottleOptions = Static<typeof ThrottleOptions>;

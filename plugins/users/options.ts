/** Options of the plugin in `assent.yaml`. */
import { Type, type Static } from "../../src/plugin.ts";

export const Options = Type.Object(
  {
    session_idle_minutes: Type.Integer({
      default: 720,
      minimum: 1,
      maximum: 43_200,
      description: "Ends a session that was not used for this many minutes.",
    }),
    session_hours: Type.Integer({
      default: 168,
      minimum: 1,
      maximum: 2160,
      description: "Ends a session this many hours after the sign-in, whether it is used or not.",
    }),
  },
  { additionalProperties: false },
);
export type Options = Static<typeof Options>;

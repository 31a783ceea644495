/** Users: sign-in, sessions, passkeys. A session gives the same `Credential` as an API key. */
import { defineCorePlugin } from "../../src/core.ts";
import { Type } from "../../src/plugin.ts";
import { ERRORS } from "./errors.ts";
import { Options } from "./options.ts";
import { signInPages } from "./pages.ts";
import { sessionRoutes } from "./session-routes.ts";
import { Sessions } from "./sessions.ts";
import { userRoutes } from "./user-routes.ts";

const Nullable = Type.Union([Type.String(), Type.Null()]);

export default defineCorePlugin({
  name: "users",
  options: Options,
  errors: ERRORS,
  entries: {
    "users:session": Type.Object(
      {
        change: Type.Union([Type.Literal("started"), Type.Literal("ended"), Type.Literal("refused")]),
        session_id: Nullable,
        user_id: Type.String(),
        method: Type.String(),
        reason: Nullable,
      },
      { additionalProperties: false },
    ),
  },
  setup(host, options) {
    const sessions = new Sessions(host, options);
    return {
      routes: [...sessionRoutes(host, sessions), ...userRoutes(host, sessions)],
      authenticators: [{ name: "session", authenticate: (request) => sessions.identify(request) }],
      pages: signInPages(),
    };
  },
});

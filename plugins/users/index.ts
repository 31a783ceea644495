/** Users: sign-in, sessions, passkeys. A session yields the same type of `Credential` as an API key. */
import { defineCorePlugin } from "../../src/core.ts";
import { Type } from "../../src/plugin.ts";
import { accessReviewRoute } from "./access-review/routes.ts";
import { createUserAuditor } from "./user-audit.ts";
import { ERRORS } from "./user-errors.ts";
import { Options, type ProviderOptions } from "./user-options.ts";
import { signInPages } from "./sign-in-pages.ts";
import { sessionRoutes } from "./session-routes.ts";
import { Provider } from "./provider.ts";
import { providerRoutes } from "./provider-routes.ts";
import { createDelegationAuditor } from "./delegation-audit.ts";
import { delegationRoutes } from "./delegation-routes.ts";
import { createPushNotifier } from "./push/push-notifier.ts";
import { pushRoutes } from "./push/routes.ts";
import { createPushSender } from "./push/send-push.ts";
import { SCOPES } from "./user-scopes.ts";
import { scimRoutes } from "./scim/routes.ts";
import { Sessions } from "./sessions.ts";
import { userRoutes } from "./user-routes.ts";

const Nullable = Type.Union([Type.String(), Type.Null()]);

export default defineCorePlugin({
  name: "users",
  needs: ["actions"],
  options: Options,
  auditors: [createUserAuditor, createDelegationAuditor],
  scopes: SCOPES,
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
    assertDistinct(options.providers);
    const providers = options.providers.map((each) => new Provider(host, each));
    const sessions = new Sessions(host, options, providers);
    const push = options.push ?? {};
    const sendPush = createPushSender(host, push);
    return {
      routes: [
        ...sessionRoutes(host, sessions, options.providers),
        ...providerRoutes(host, sessions, providers),
        ...userRoutes(host, sessions),
        ...delegationRoutes(host),
        ...pushRoutes(host, push, sendPush),
        accessReviewRoute(host, sessions),
        ...scimRoutes(host, sessions, options.providers),
      ],
      authenticators: [{ name: "session", authenticate: (request) => sessions.identify(request) }],
      notifiers: [createPushNotifier(host, sendPush)],
      pages: signInPages(),
    };
  },
});

/** Throws if two providers have the same id, issuer or domain, because each could claim the other's users. */
function assertDistinct(providers: readonly ProviderOptions[]): void {
  for (const key of ["id", "issuer"] as const) {
    const values = providers.map((provider) => provider[key]);
    const twice = values.find((value, at) => values.indexOf(value) !== at);
    if (twice !== undefined) throw new Error(`two providers have the ${key} "${twice}"; each needs its own`);
  }
  const domains = providers.flatMap(({ email_domains }) => [
    ...new Set(email_domains.map((each) => each.toLowerCase())),
  ]);
  const shared = domains.find((domain, at) => domains.indexOf(domain) !== at);
  if (shared !== undefined)
    throw new Error(`two providers have the e-mail domain "${shared}"; only one can verify its addresses`);
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    users:
      | typeof sessionRoutes
      | typeof providerRoutes
      | typeof userRoutes
      | typeof delegationRoutes
      | typeof pushRoutes
      | typeof accessReviewRoute;
  }
}

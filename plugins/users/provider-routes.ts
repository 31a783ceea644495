/** Routes for signing in at an identity provider. Browsers navigate to them. */
import type { CoreHost } from "../../src/core.ts";
import { defineRoute, Refusal, type Reply } from "../../src/plugin.ts";
import { endSessionsByLogoutToken } from "./back-channel-logout.ts";
import { ERRORS } from "./user-errors.ts";
import type { Provider } from "./provider.ts";
import { finishProviderSignIn, clearSignInCookie, startProviderSignIn } from "./provider-sign-in.ts";
import * as schema from "./schemas.ts";
import { readBrowserName, OPENAPI_TAG } from "./session-routes.ts";
import type { Sessions } from "./sessions.ts";
import { requireSite, type Site } from "./site.ts";

const PROVIDER_ERRORS = [
  ERRORS.INSECURE,
  ERRORS.PROVIDER_UNKNOWN,
  ERRORS.PROVIDER_UNAVAILABLE,
  ERRORS.PROVIDER_INVALID,
];

export function providerRoutes(host: CoreHost, sessions: Sessions, providers: readonly Provider[]) {
  const find = (id: string): Provider => {
    const provider = providers.find(({ options }) => options.id === id);
    if (provider === undefined)
      throw new Refusal(ERRORS.PROVIDER_UNKNOWN, `the configuration has no provider ${id.slice(0, 60)}`);
    return provider;
  };
  return [
    defineRoute({
      method: "GET",
      path: "/v1/sign-in/:provider",
      tag: OPENAPI_TAG,
      summary: "Start a sign-in at a provider",
      description: "For browsers to navigate to. If it fails and they accept HTML, they are sent to the sign-in page.",
      scope: null,
      params: schema.ProviderParams,
      query: schema.SignInQuery,
      responses: { 303: { description: "Redirects to the provider." } },
      errors: PROVIDER_ERRORS,
      handle: ({ params, query, request }) =>
        forBrowser(request, null, async () => {
          const { url, cookie } = await startProviderSignIn(
            host,
            find(params.provider),
            requireSite(host),
            query.return_to ?? "/",
          );
          return redirect(url, cookie);
        }),
    }),
    defineRoute({
      method: "GET",
      path: "/v1/sign-in/:provider/callback",
      tag: OPENAPI_TAG,
      summary: "Finish a sign-in at a provider",
      description: "The provider redirects browsers to it.",
      scope: null,
      params: schema.ProviderParams,
      query: schema.CallbackQuery,
      responses: { 303: { description: "Signed in; redirects to the sign-in page, which continues to `return_to`." } },
      errors: [
        ...PROVIDER_ERRORS,
        ERRORS.PROVIDER_REFUSED,
        ERRORS.CHALLENGE_INVALID,
        ERRORS.SIGN_IN_ENDED,
        ERRORS.NOT_PROVISIONED,
      ],
      handle({ params, request }) {
        const site = requireSite(host);
        return forBrowser(request, site, async () => {
          if (request.method !== "GET")
            throw new Refusal("METHOD_NOT_ALLOWED", "a code is exchanged only for GET", { headers: { Allow: "GET" } });
          const provider = find(params.provider);
          const browser = readBrowserName(request);
          const done = await finishProviderSignIn(host, sessions, { provider, site, request, browser });
          // The sign-in page stores the page token. Browsers do not send the fragment to servers.
          const page = `/sign-in?return_to=${encodeURIComponent(done.return_to)}#session=${done.page_token}`;
          return redirect(page, done.cookie);
        });
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/sign-in/:provider/logout",
      tag: OPENAPI_TAG,
      summary: "End sessions with a logout token",
      description: "The provider calls it: OpenID Connect Back-Channel Logout 1.0.",
      scope: null,
      params: schema.ProviderParams,
      textBodies: ["application/x-www-form-urlencoded"],
      bodyLimit: 65_536,
      responses: { 200: { description: "The sessions have ended, in every process." } },
      errors: [ERRORS.PROVIDER_UNKNOWN, ERRORS.PROVIDER_UNAVAILABLE, ERRORS.LOGOUT_INVALID],
      async handle({ params, body }) {
        await endSessionsByLogoutToken(host, sessions, find(params.provider), body);
        return { status: 200, headers: { "Cache-Control": "no-store" } };
      },
    }),
  ];
}

function redirect(location: string, cookie: string): Reply {
  return {
    status: 303,
    headers: {
      Location: location,
      "Set-Cookie": cookie,
      "Cache-Control": "no-store",
      "Referrer-Policy": "no-referrer",
    },
  };
}

/**
 * Redirects a browser whose sign-in failed to the sign-in page, which explains the error code. Other clients get the
 * error.
 */
async function forBrowser(request: Request, site: Site | null, work: () => Promise<Reply>): Promise<Reply> {
  try {
    return await work();
  } catch (error) {
    const acceptsPages = /\btext\/html\b/.test(request.headers.get("accept") ?? "");
    if (!(error instanceof Refusal) || !error.code.startsWith("USERS_") || !acceptsPages) throw error;
    const headers = { Location: `/sign-in?failed=${error.code}`, "Cache-Control": "no-store" };
    return {
      status: 303,
      headers: { ...headers, ...(site === null ? {} : { "Set-Cookie": clearSignInCookie(site) }) },
    };
  }
}

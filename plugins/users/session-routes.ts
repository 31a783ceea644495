/** Routes that sign users in, and that read and end the caller's session. */
import { userState, type CoreHost } from "../../src/core.ts";
import { defineRoute, Refusal, toRfc3339 } from "../../src/plugin.ts";
import { clearSessionCookie } from "./cookies.ts";
import { findEnrolment } from "./user-changes.ts";
import { ERRORS } from "./user-errors.ts";
import { assertionOptions, registrationOptions, SIGN_IN_PURPOSE } from "./passkeys.ts";
import * as schema from "./schemas.ts";
import { assertSameSite, type IdentifiedSession, type Sessions } from "./sessions.ts";
import { enrolUser, enrolmentChallengePurpose, signInWithPasskey } from "./sign-in.ts";
import { requireSite, type Site } from "./site.ts";
import { confirmTerminal, signInTerminal, terminalOptions } from "./terminal-sign-in.ts";

export const OPENAPI_TAG = "users";
const CEREMONY_ERRORS = [ERRORS.INSECURE, ERRORS.CROSS_SITE];
const ANSWER_ERRORS = [...CEREMONY_ERRORS, ERRORS.CHALLENGE_INVALID, ERRORS.PASSKEY_INVALID];

/** @param providers configured providers, in the order in which the sign-in page shows them */
export function sessionRoutes(host: CoreHost, sessions: Sessions, providers: readonly { id: string; name: string }[]) {
  const listed = providers.map(({ id, name }) => ({ id, name, url: `/v1/sign-in/${id}` }));
  return [
    methodsRoute(host, listed),
    ...ownSessionRoutes(host, sessions),
    ...passkeyRoutes(host, sessions),
    ...enrolmentRoutes(host, sessions),
    ...terminalRoutes(host, sessions),
  ];
}

function methodsRoute(host: CoreHost, providers: readonly { id: string; name: string; url: string }[]) {
  return defineRoute({
    method: "GET",
    path: "/v1/sign-in-methods",
    tag: OPENAPI_TAG,
    summary: "List the ways to sign in",
    scope: null,
    responses: { 200: { description: "The ways to sign in.", schema: schema.SignInMethods } },
    handle() {
      try {
        const { origin } = requireSite(host);
        return { status: 200, json: { origin, passkey: { available: true, reason: null }, providers } };
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        return { status: 200, json: { origin: null, passkey: { available: false, reason: error.message }, providers } };
      }
    },
  });
}

function ownSessionRoutes(host: CoreHost, sessions: Sessions) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/session",
      tag: OPENAPI_TAG,
      summary: "Show the signed-in user",
      description: "For a request with a session cookie. `GET /v1/me` describes an API key.",
      scope: null,
      responses: { 200: { description: "The user and the session.", schema: schema.CurrentSession } },
      errors: ["MISSING_CREDENTIAL", ERRORS.INSECURE],
      async handle({ request }) {
        const { credential, session, headers } = await identify(sessions, request);
        const user = credential.session?.user;
        if (user === undefined) throw new Error("the credential of a session has no user");
        return {
          status: 200,
          json: {
            user: schema.renderUser(user),
            scopes: schema.listScopes(user, host.scopes),
            session: schema.renderSession(session, session.id),
          },
          ...(headers === undefined ? {} : { headers }),
        };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/v1/session",
      tag: OPENAPI_TAG,
      summary: "Sign out",
      scope: null,
      responses: { 204: { description: "The session has ended." } },
      errors: ["MISSING_CREDENTIAL", ...CEREMONY_ERRORS],
      async handle({ request }) {
        const { session, site } = await identify(sessions, request);
        await host.ledger.transact((tx) => sessions.end(tx, session, null, "the user signed out"));
        return { status: 204, headers: { "Set-Cookie": clearSessionCookie(site) } };
      },
    }),
  ];
}

function passkeyRoutes(host: CoreHost, sessions: Sessions) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/session/passkey/options",
      tag: OPENAPI_TAG,
      summary: "Start a sign-in with a passkey",
      scope: null,
      responses: { 200: { description: "Options for `navigator.credentials.get`.", schema: schema.Ceremony } },
      errors: CEREMONY_ERRORS,
      async handle({ request }) {
        return {
          status: 200,
          json: { options: await assertionOptions(host, requireSamePage(host, request), SIGN_IN_PURPOSE) },
        };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/session/passkey",
      tag: OPENAPI_TAG,
      summary: "Sign in with a passkey",
      scope: null,
      body: schema.SignInBody,
      responses: { 201: { description: "Signed in; the session is in the cookie.", schema: schema.SignedIn } },
      errors: [...ANSWER_ERRORS, ERRORS.PASSKEY_UNKNOWN, ERRORS.PASSKEY_CLONED],
      async handle({ request, body }) {
        const done = await signInWithPasskey(
          host,
          sessions,
          requireSamePage(host, request),
          body.response,
          readBrowserName(request),
        );
        return {
          status: 201,
          json: schema.renderSignedIn(done),
          headers: { "Set-Cookie": done.cookie },
        };
      },
    }),
  ];
}

function enrolmentRoutes(host: CoreHost, sessions: Sessions) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/enrolment/options",
      tag: OPENAPI_TAG,
      summary: "Start an enrolment with a link or a recovery code",
      scope: null,
      body: schema.EnrolmentStartBody,
      responses: {
        200: { description: "Options for `navigator.credentials.create`.", schema: schema.EnrolmentCeremony },
      },
      errors: [...CEREMONY_ERRORS, ERRORS.LINK_INVALID],
      async handle({ request, body: { token } }) {
        const site = requireSamePage(host, request);
        const { user } = findEnrolment(await host.state(userState), token, host.clock());
        const options = await registrationOptions(host, site, user, enrolmentChallengePurpose(token));
        return { status: 200, json: { user: user.name, options } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/enrolment",
      tag: OPENAPI_TAG,
      summary: "Add a passkey with a link or a recovery code, and sign in",
      scope: null,
      body: schema.EnrolmentBody,
      responses: { 201: { description: "Signed in; the session is in the cookie.", schema: schema.Enrolled } },
      errors: [...ANSWER_ERRORS, ERRORS.LINK_INVALID, ERRORS.TOO_MANY_PASSKEYS],
      async handle({ request, body: { token, response, name = "Passkey" } }) {
        const answer = { token, response, name };
        const done = await enrolUser(host, sessions, requireSamePage(host, request), answer, readBrowserName(request));
        return {
          status: 201,
          json: { ...schema.renderSignedIn(done), recovery_codes: done.recovery_codes },
          headers: { "Set-Cookie": done.cookie },
        };
      },
    }),
  ];
}

function terminalRoutes(host: CoreHost, sessions: Sessions) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/session/terminal/confirm/options",
      tag: OPENAPI_TAG,
      summary: "Start the confirmation of a terminal",
      description: "For a request with the session cookie of a browser.",
      scope: null,
      body: schema.TerminalCode,
      responses: {
        200: {
          description: "Options for `navigator.credentials.get`; null if the user has no passkey here.",
          schema: schema.ConfirmationOptions,
        },
      },
      errors: ["MISSING_CREDENTIAL", "INSUFFICIENT_SCOPE", ...CEREMONY_ERRORS, ERRORS.CHALLENGE_INVALID],
      async handle({ request, body }) {
        const { session, site } = await identify(sessions, request);
        return { status: 200, json: { options: await terminalOptions(host, site, session, body) } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/session/terminal/confirm",
      tag: OPENAPI_TAG,
      summary: "Confirm the sign-in of a terminal",
      description: "For a request with the session cookie of a browser.",
      scope: null,
      body: schema.TerminalConfirmBody,
      responses: { 201: { description: "The terminal can sign in.", schema: schema.ConfirmedTerminal } },
      errors: ["MISSING_CREDENTIAL", "INSUFFICIENT_SCOPE", ...ANSWER_ERRORS, ERRORS.PASSKEY_CLONED],
      async handle({ request, body }) {
        const { session, site } = await identify(sessions, request);
        const expiresAt = await confirmTerminal(host, sessions, site, session, body);
        return { status: 201, json: { expires_at: toRfc3339(expiresAt) } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/session/terminal",
      tag: OPENAPI_TAG,
      summary: "Sign in a terminal",
      description:
        "`assent watch` repeats this until the user has confirmed the sign-in in a browser. The session ends with the browser's session, and can only read, vote and ask questions.",
      scope: null,
      body: schema.TerminalSignInBody,
      responses: { 201: { description: "Signed in; the session is in the cookie.", schema: schema.SignedIn } },
      errors: [...CEREMONY_ERRORS, ERRORS.TERMINAL_UNCONFIRMED],
      async handle({ request, body: { verifier } }) {
        const site = requireSamePage(host, request);
        const done = await signInTerminal(host, sessions, site, verifier, readBrowserName(request));
        return {
          status: 201,
          json: schema.renderSignedIn(done),
          headers: { "Set-Cookie": done.cookie },
        };
      },
    }),
  ];
}

/**
 * Throws unless the request came from a page of this service. Checked even before sign-in, when there is no session
 * yet.
 */
function requireSamePage(host: CoreHost, request: Request): Site {
  const site = requireSite(host);
  assertSameSite(request, site);
  return site;
}

async function identify(sessions: Sessions, request: Request): Promise<IdentifiedSession> {
  const found = await sessions.identify(request);
  if (found === null) throw new Refusal("MISSING_CREDENTIAL", "you are not signed in; open /sign-in");
  return found;
}

/** Returns the beginning of the `User-Agent` header, for lists of sessions. */
export function readBrowserName(request: Request): string {
  return (request.headers.get("user-agent") ?? "").replaceAll(/[^\x20-\x7e]/g, "").slice(0, 200);
}

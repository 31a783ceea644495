/** Routes that list and change users, their sessions and their passkeys. */
import { type Credential, defineRoute, nextLink, Refusal, slicePage } from "../../src/plugin.ts";
import {
  userState,
  confirmCredential,
  type CoreHost,
  toActor,
  parseRfc3339,
  principalOfUser,
  type User,
  rightsReader,
} from "../../src/core.ts";
import {
  assertUnlimited,
  changeUser,
  createEnrolmentLink,
  createUser,
  deactivateUser,
  requireUser,
  reactivateUser,
} from "./user-changes.ts";
import { describeRights, listDelegators } from "./access-review/review.ts";
import { RightsRecord } from "./access-review/routes.ts";
import { ERRORS } from "./user-errors.ts";
import { passkeyChangeRoutes } from "./passkey-routes.ts";
import * as schema from "./schemas.ts";
import type { Sessions } from "./sessions.ts";
import { OPENAPI_TAG } from "./session-routes.ts";
import { requireSite } from "./site.ts";

export function userRoutes(host: CoreHost, sessions: Sessions) {
  return [
    ...listRoutes(host, sessions),
    ...managementRoutes(host, sessions),
    rightsRoute(host),
    ...sessionListRoutes(host, sessions),
    ...passkeyChangeRoutes(host, sessions),
  ];
}

/** Returns the routes that list users and add a user. */
function listRoutes(host: CoreHost, sessions: Sessions) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/users",
      tag: OPENAPI_TAG,
      summary: "List users, newest first",
      scope: ["users:read", "users:manage"],
      query: schema.ListQuery,
      responses: { 200: { description: "A page, including deactivated users.", schema: schema.UserList } },
      errors: ["INVALID_CURSOR"],
      async handle({ query }) {
        const all = [...(await host.state(userState)).values()]
          .filter(({ ended_at }) => query.status === undefined || (query.status === "live") === (ended_at === null))
          .map((user) => ({ id: user.id, created_at: parseRfc3339(user.created_at) ?? 0, user }))
          .reverse();
        const { rows, next_cursor } = slicePage("users", all, query);
        return {
          status: 200,
          json: { users: await Promise.all(rows.map(({ user }) => describeUser(host, sessions, user))), next_cursor },
          headers: nextLink("/v1/users", query, next_cursor),
        };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/users",
      tag: OPENAPI_TAG,
      summary: "Create a user, with a link to enrol a passkey",
      scope: "users:manage",
      body: schema.CreateUserBody,
      responses: {
        201: { description: "The user, with the link, which is returned only once.", schema: schema.InvitedUser },
      },
      errors: ["SCOPE_ESCALATION", ERRORS.INSECURE],
      async handle({ body: { name, roles = [], groups = [] }, credential }) {
        const { origin } = requireSite(host);
        const { user, token } = await createUser(host, credential, { name, roles, groups });
        return {
          status: 201,
          json: renderInvitation(user, token, origin),
          headers: { Location: `/v1/users/${user.id}` },
        };
      },
    }),
  ];
}

/** Returns the routes with which callers read and manage one user. */
function managementRoutes(host: CoreHost, sessions: Sessions) {
  const response = { description: "The user.", schema: schema.UserRecord };
  const changeErrors = [ERRORS.NOT_FOUND, ERRORS.ENDED, "SCOPE_ESCALATION" as const];
  return [
    defineRoute({
      method: "GET",
      path: "/v1/users/:id",
      tag: OPENAPI_TAG,
      summary: "Show a user",
      scope: ["users:read", "users:manage"],
      params: schema.UserParams,
      responses: { 200: { description: "The user.", schema: schema.UserDetails } },
      errors: [ERRORS.NOT_FOUND],
      handle: async ({ params }) => ({
        status: 200,
        json: await describeUser(host, sessions, requireUser(await host.state(userState), params.id)),
      }),
    }),
    defineRoute({
      method: "PATCH",
      path: "/v1/users/:id",
      tag: OPENAPI_TAG,
      summary: "Change a user's name, roles or groups",
      scope: "users:manage",
      params: schema.UserParams,
      body: schema.ChangeUserBody,
      responses: { 200: response },
      errors: [...changeErrors, ERRORS.LAST_ADMIN],
      handle: async ({ params, body, credential }) => ({
        status: 200,
        json: schema.renderUser(await changeUser(host, credential, params.id, body)),
      }),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/users/:id/link",
      tag: OPENAPI_TAG,
      summary: "Create a link to enrol a passkey",
      description:
        "It replaces an earlier link. The first person who opens it can sign in as this user. Users cannot create links for themselves, neither in a session nor with their keys.",
      scope: "users:manage",
      params: schema.UserParams,
      responses: { 201: { description: "The link, this once.", schema: schema.InvitedUser } },
      errors: [...changeErrors, ERRORS.INSECURE, ERRORS.OWN_LINK],
      async handle({ params, credential }) {
        const { origin } = requireSite(host);
        const { user, token } = await createEnrolmentLink(host, credential, params.id);
        return { status: 201, json: renderInvitation(user, token, origin) };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/users/:id/end",
      tag: OPENAPI_TAG,
      summary: "Deactivate a user, and end their sessions and keys",
      description:
        "Takes effect in every process before the response is sent. Revokes the keys that the user created or owns, and cancels what was submitted with them and has not started.",
      scope: "users:manage",
      params: schema.UserParams,
      body: schema.EndUserBody,
      responses: { 200: { description: "The user and the revoked keys.", schema: schema.EndedUser } },
      errors: [...changeErrors, ERRORS.LAST_ADMIN],
      async handle({ params, body, credential }) {
        const done = await deactivateUser(host, sessions, credential, params.id, body.reason ?? null);
        return { status: 200, json: { user: schema.renderUser(done.user), revoked_keys: done.revoked_keys } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/users/:id/resume",
      tag: OPENAPI_TAG,
      summary: "Reactivate a deactivated user",
      description: "Sessions and keys are not restored.",
      scope: "users:manage",
      params: schema.UserParams,
      responses: { 200: response },
      errors: [ERRORS.NOT_FOUND, ERRORS.NOT_ENDED, "SCOPE_ESCALATION"],
      handle: async ({ params, credential }) => ({
        status: 200,
        json: schema.renderUser(await reactivateUser(host, credential, params.id)),
      }),
    }),
  ];
}

async function describeUser(host: CoreHost, sessions: Sessions, user: User): Promise<object> {
  const memberOf = host.groups.of(principalOfUser(user.id), await host.state(userState));
  return schema.renderUserDetails(user, memberOf, await sessions.lastSignIn(user.id));
}

function rightsRoute(host: CoreHost) {
  return defineRoute({
    method: "GET",
    path: "/v1/users/:id/rights",
    tag: OPENAPI_TAG,
    summary: "Show what a user can approve now",
    description: "For the user, and for callers with `users:read` or `users:manage`.",
    scope: host.scopes,
    params: schema.UserParams,
    responses: { 200: { description: "The rights.", schema: RightsRecord } },
    errors: [ERRORS.NOT_FOUND],
    async handle({ params: { id }, credential }) {
      const isOwn = credential.session?.user.id === id;
      if (!isOwn && !credential.hasScope("users:read") && !credential.hasScope("users:manage"))
        throw new Refusal(
          "INSUFFICIENT_SCOPE",
          "this is another user; reading their rights needs the scope users:read",
        );
      const snapshot = await host.snapshot();
      requireUser(snapshot.state(userState), id);
      const reader = rightsReader(host, snapshot);
      return {
        status: 200,
        json: {
          ...describeRights(await host.keys.rightsOf(reader, id)),
          delegators: await listDelegators(host, id),
        },
      };
    },
  });
}

function sessionListRoutes(host: CoreHost, sessions: Sessions) {
  const description = "For the user, and for callers with `users:manage`.";
  return [
    defineRoute({
      method: "GET",
      path: "/v1/users/:id/sessions",
      tag: OPENAPI_TAG,
      summary: "List a user's sessions",
      description: "For the user, and for callers with `users:read` or `users:manage`.",
      scope: host.scopes,
      params: schema.UserParams,
      responses: { 200: { description: "Sessions that have not ended.", schema: schema.SessionList } },
      errors: [ERRORS.NOT_FOUND],
      async handle({ params, credential }) {
        if (!credential.hasScope("users:read")) assertOwnOrManaged(credential, params.id);
        requireUser(await host.state(userState), params.id);
        const now = host.clock();
        const open = (await sessions.list(params.id)).filter((session) => !sessions.isExpired(session, now));
        const current = credential.session?.id ?? null;
        return { status: 200, json: { sessions: open.map((session) => schema.renderSession(session, current)) } };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/v1/users/:id/sessions",
      tag: OPENAPI_TAG,
      summary: "End all sessions of a user",
      description,
      scope: host.scopes,
      params: schema.UserParams,
      responses: { 204: { description: "They have ended, in every process." } },
      errors: [ERRORS.NOT_FOUND, "SCOPE_ESCALATION"],
      async handle({ params, credential }) {
        await host.ledger.transact(async (tx) => {
          const caller = await confirmOwnOrManaged(tx, credential, params.id);
          requireUser(tx.state(userState), params.id);
          await sessions.endAll(tx, params.id, toActor(caller.key, caller.principal), null);
        });
        return { status: 204 };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/v1/users/:id/sessions/:session_id",
      tag: OPENAPI_TAG,
      summary: "End a session",
      description,
      scope: host.scopes,
      params: schema.SessionParams,
      responses: { 204: { description: "It has ended, in every process." } },
      errors: [ERRORS.SESSION_NOT_FOUND, "SCOPE_ESCALATION"],
      async handle({ params, credential }) {
        await host.ledger.transact(async (tx) => {
          const caller = await confirmOwnOrManaged(tx, credential, params.id);
          const open = await sessions.list(params.id, host.documents.within(tx));
          const session = open.find(({ id }) => id === params.session_id);
          if (session === undefined)
            throw new Refusal(ERRORS.SESSION_NOT_FOUND, `there is no session ${params.session_id} of this user`);
          await sessions.end(tx, session, toActor(caller.key, caller.principal), null);
        });
        return { status: 204 };
      },
    }),
  ];
}

function assertOwnOrManaged(credential: Credential, id: string): void {
  if (credential.session?.user.id !== id && !credential.hasScope("users:manage"))
    throw new Refusal("INSUFFICIENT_SCOPE", "these are another user's sessions; this needs the scope users:manage");
}

async function confirmOwnOrManaged(
  tx: Parameters<typeof confirmCredential>[0],
  credential: Credential,
  id: string,
): Promise<Credential> {
  const caller = await tx.confirm(credential);
  assertOwnOrManaged(caller, id);
  if (caller.session?.user.id !== id) assertUnlimited(caller);
  return caller;
}

function renderInvitation(user: User, token: string, origin: string): object {
  // Browsers do not send the fragment to servers, so no proxy logs the token.
  const url = `${origin}/sign-in#enrol=${token}`;
  return { user: schema.renderUser(user), link: { url, expires_at: user.link?.expires_at } };
}

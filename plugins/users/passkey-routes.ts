/** Routes with which users change their own passkeys and recovery codes, in a session. */
import { type Credential, defineRoute } from "../../src/plugin.ts";
import { type CoreHost } from "../../src/core.ts";
import { type OwnSession, PasskeyChanges } from "./passkey-changes.ts";
import * as schema from "./schemas.ts";
import { OPENAPI_TAG } from "./session-routes.ts";
import type { Sessions } from "./sessions.ts";
import { requireSite } from "./site.ts";
import { requireOwnUser } from "./user-changes.ts";
import { ERRORS } from "./user-errors.ts";

const CONFIRMED =
  "Only the user can do this, in a session, and confirms it with one of their passkeys. A user of an identity provider who has no passkey for this address confirms it with a sign-in of the last five minutes.";
const START_ERRORS = [ERRORS.SESSION_REQUIRED, ERRORS.INSECURE, ERRORS.SIGN_IN_TOO_OLD];
const CHANGE_ERRORS = [...START_ERRORS, ERRORS.CHALLENGE_INVALID, ERRORS.PASSKEY_INVALID, ERRORS.PASSKEY_CLONED];

export function passkeyChangeRoutes(host: CoreHost, sessions: Sessions) {
  const changes = new PasskeyChanges(host, sessions);
  const findOwnSession = (credential: Credential, id: string): OwnSession => {
    requireOwnUser(credential, id);
    return { credential, site: requireSite(host) };
  };
  return [
    ...additionRoutes(host, changes, findOwnSession),
    ...removalRoutes(host, changes, findOwnSession),
    ...codeRoutes(host, changes, findOwnSession),
  ];
}

type FindOwn = (credential: Credential, id: string) => OwnSession;

function additionRoutes(host: CoreHost, changes: PasskeyChanges, findOwnSession: FindOwn) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/users/:id/passkeys/options",
      tag: OPENAPI_TAG,
      summary: "Start to add a passkey",
      description: `${CONFIRMED} The confirmation is valid for this addition only.`,
      scope: host.scopes,
      params: schema.UserParams,
      responses: {
        200: { description: "Options for `navigator.credentials.create`.", schema: schema.PasskeyCeremony },
      },
      errors: [...START_ERRORS, ERRORS.TOO_MANY_PASSKEYS],
      handle: async ({ params, credential }) => ({
        status: 200,
        json: await changes.additionOptions(findOwnSession(credential, params.id)),
      }),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/users/:id/passkeys",
      tag: OPENAPI_TAG,
      summary: "Add a passkey",
      description: CONFIRMED,
      scope: host.scopes,
      params: schema.UserParams,
      body: schema.PasskeyBody,
      responses: { 201: { description: "The user.", schema: schema.UserRecord } },
      errors: [...CHANGE_ERRORS, ERRORS.TOO_MANY_PASSKEYS],
      async handle({ params, body: { response, name = "Passkey", confirmation }, credential }) {
        const user = await changes.add(findOwnSession(credential, params.id), { response, name, confirmation });
        return { status: 201, json: schema.renderUser(user) };
      },
    }),
  ];
}

function removalRoutes(host: CoreHost, changes: PasskeyChanges, findOwnSession: FindOwn) {
  const errors = [ERRORS.PASSKEY_NOT_FOUND, ERRORS.LAST_PASSKEY];
  return [
    defineRoute({
      method: "POST",
      path: "/v1/users/:id/passkeys/:passkey_id/remove/options",
      tag: OPENAPI_TAG,
      summary: "Start to remove a passkey",
      description: `${CONFIRMED} The confirmation is valid for this passkey only.`,
      scope: host.scopes,
      params: schema.PasskeyParams,
      responses: { 200: { description: "What the user confirms with.", schema: schema.ConfirmationOptions } },
      errors: [...START_ERRORS, ...errors],
      async handle({ params, credential }) {
        const options = await changes.removalOptions(findOwnSession(credential, params.id), params.passkey_id);
        return { status: 200, json: { options } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/users/:id/passkeys/:passkey_id/remove",
      tag: OPENAPI_TAG,
      summary: "Remove a passkey",
      description: `${CONFIRMED} A user who signs in with passkeys cannot remove the last one for this address.`,
      scope: host.scopes,
      params: schema.PasskeyParams,
      body: schema.ConfirmedBody,
      responses: { 200: { description: "The user.", schema: schema.UserRecord } },
      errors: [...CHANGE_ERRORS, ...errors],
      async handle({ params: { id, passkey_id }, body, credential }) {
        const user = await changes.remove(findOwnSession(credential, id), passkey_id, body.confirmation);
        return { status: 200, json: schema.renderUser(user) };
      },
    }),
  ];
}

function codeRoutes(host: CoreHost, changes: PasskeyChanges, findOwnSession: FindOwn) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/users/:id/recovery-codes/options",
      tag: OPENAPI_TAG,
      summary: "Start to replace the recovery codes",
      description: CONFIRMED,
      scope: host.scopes,
      params: schema.UserParams,
      responses: { 200: { description: "What the user confirms with.", schema: schema.ConfirmationOptions } },
      errors: [...START_ERRORS, ERRORS.MANAGED],
      handle: async ({ params, credential }) => ({
        status: 200,
        json: { options: await changes.recoveryCodeOptions(findOwnSession(credential, params.id)) },
      }),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/users/:id/recovery-codes",
      tag: OPENAPI_TAG,
      summary: "Replace the recovery codes",
      description: `${CONFIRMED} A recovery code adds a passkey, once.`,
      scope: host.scopes,
      params: schema.UserParams,
      body: schema.ConfirmedBody,
      responses: { 201: { description: "The codes, this once.", schema: schema.RecoveryCodes } },
      errors: [...CHANGE_ERRORS, ERRORS.MANAGED],
      handle: async ({ params, body, credential }) => ({
        status: 201,
        json: {
          recovery_codes: await changes.replaceRecoveryCodes(findOwnSession(credential, params.id), body.confirmation),
        },
      }),
    }),
  ];
}

/** Schemas of the requests and responses of the user and session routes. */
import { PAGE_QUERY, type Static, toRfc3339, Type } from "../../src/plugin.ts";
import { closed, type Role, ROLE_NAMES, scopesOfRoles, type User } from "../../src/core.ts";
import type { StoredSession } from "./sessions.ts";
import type { SignInResult } from "./sign-in.ts";

const Nullable = Type.Union([Type.String(), Type.Null()]);
const Time = Type.String({ format: "date-time" });

const Name = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: "^[^\\u0000-\\u001f\\u007f]*\\S[^\\u0000-\\u001f\\u007f]*$",
  description: "Display name. It does not identify a user: two users can have the same name.",
});
const Roles = Type.Array(Type.Union(ROLE_NAMES.map((name) => Type.Literal(name as Role))), {
  uniqueItems: true,
  maxItems: ROLE_NAMES.length,
  description: "The user has the scopes of all of these roles.",
});
const Groups = Type.Array(Type.String({ minLength: 1, maxLength: 100, pattern: "^[^\\u0000-\\u001f\\u007f]*$" }), {
  uniqueItems: true,
  maxItems: 200,
});

export const CreateUserBody = Type.Object(
  { name: Name, roles: Type.Optional(Roles), groups: Type.Optional(Groups) },
  { ...closed, examples: [{ name: "Ada Lovelace", roles: ["approver"] }] },
);
export const ChangeUserBody = Type.Object(
  { name: Type.Optional(Name), roles: Type.Optional(Roles), groups: Type.Optional(Groups) },
  { ...closed, minProperties: 1 },
);
export const EndUserBody = Type.Object(
  { reason: Type.Optional(Type.String({ minLength: 1, maxLength: 1000, description: "Recorded in the ledger." })) },
  closed,
);
export const UserParams = Type.Object({ id: Type.String() }, closed);
export const SessionParams = Type.Object({ id: Type.String(), session_id: Type.String() }, closed);
export const PasskeyParams = Type.Object({ id: Type.String(), passkey_id: Type.String() }, closed);
export const ProviderParams = Type.Object({ provider: Type.String() }, closed);
export const SignInQuery = Type.Object(
  {
    return_to: Type.Optional(
      Type.String({ description: "Path of this service to open after the sign-in. Any other value means `/`." }),
    ),
  },
  closed,
);
/** Accepts unknown parameters, because providers add their own parameters. */
export const CallbackQuery = Type.Object(
  {
    code: Type.Optional(Type.String()),
    state: Type.Optional(Type.String()),
    iss: Type.Optional(Type.String()),
    error: Type.Optional(Type.String()),
  },
  { additionalProperties: true },
);
export const ListQuery = Type.Object(
  {
    status: Type.Optional(Type.Union([Type.Literal("live"), Type.Literal("ended")])),
    ...PAGE_QUERY,
  },
  closed,
);

const userFields = {
  id: Type.String({ format: "uuid" }),
  name: Type.String(),
  principal: Type.String({ description: "Principal of the user in records: `user:<id>`." }),
  roles: Type.Array(Type.String()),
  groups: Type.Array(Type.String()),
  identities: Type.Array(Type.Object({ issuer: Type.String(), subject: Type.String() }, closed)),
  passkeys: Type.Array(Type.Object({ id: Type.String(), name: Type.String(), added_at: Time }, closed)),
  recovery_codes: Type.Integer({ minimum: 0, description: "Unused recovery codes." }),
  link_expires_at: Type.Union([Time, Type.Null()], { description: "Expiry of the open enrolment link." }),
  managed_by: Nullable,
  ended_at: Nullable,
};
export const UserRecord = Type.Object(userFields, { title: "User", ...closed });
export type UserRecord = Static<typeof UserRecord>;
export const UserDetails = Type.Object(
  {
    ...userFields,
    configured_groups: Type.Array(Type.String(), {
      description: "Groups that the configuration gives the user, in addition to `groups`.",
    }),
    last_sign_in_at: Type.Union([Time, Type.Null()], {
      description: "Last sign-in, even if its session has ended; null if there was none.",
    }),
  },
  { title: "UserDetails", ...closed },
);
export const UserList = Type.Object({ users: Type.Array(UserDetails), next_cursor: Nullable }, closed);
const Link = Type.Object(
  {
    url: Type.String({ description: "Give it only to this person. It is shown only once, and works only once." }),
    expires_at: Time,
  },
  closed,
);
export const InvitedUser = Type.Object({ user: UserRecord, link: Link }, closed);
export const EndedUser = Type.Object(
  {
    user: UserRecord,
    revoked_keys: Type.Array(Type.String(), { description: "Ids of keys that the user created or owned." }),
  },
  closed,
);

const SessionRecord = Type.Object(
  {
    id: Type.String({ format: "uuid" }),
    method: Type.String({ description: "`passkey`, `link`, `recovery_code`, `terminal` or `oidc:<provider>`." }),
    browser: Type.String(),
    started_at: Time,
    seen_at: Type.String({ format: "date-time", description: "Precise to a minute." }),
    current: Type.Boolean({ description: "Whether the request came with this session." }),
  },
  { title: "Session", ...closed },
);
export const SessionList = Type.Object({ sessions: Type.Array(SessionRecord) }, closed);
export const CurrentSession = Type.Object(
  {
    user: UserRecord,
    scopes: Type.Array(Type.String(), { description: "All scopes that the user has now." }),
    session: SessionRecord,
  },
  closed,
);
export type CurrentSession = Static<typeof CurrentSession>;
const SIGNED_IN = {
  user: UserRecord,
  session_id: Type.String(),
  page_token: Type.String({
    description: "For the header `Assent-Session` of every request with the session's cookie.",
  }),
};
export const SignedIn = Type.Object(SIGNED_IN, closed);
export type SignedIn = Static<typeof SignedIn>;
export const Enrolled = Type.Object(
  {
    ...SIGNED_IN,
    recovery_codes: Type.Union([Type.Array(Type.String()), Type.Null()], {
      description: "Shown only once; null if earlier codes are left.",
    }),
  },
  closed,
);
export type Enrolled = Static<typeof Enrolled>;
export const RecoveryCodes = Type.Object({ recovery_codes: Type.Array(Type.String()) }, closed);
export type RecoveryCodes = Static<typeof RecoveryCodes>;

/** An example of 32 bytes, base64url. */
const RANDOM = "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg";
const TerminalVerifier = Type.String({
  pattern: "^[A-Za-z0-9_-]{43}$",
  examples: [RANDOM],
  description: "32 random bytes of the terminal, base64url.",
});
export const TerminalSignInBody = Type.Object({ verifier: TerminalVerifier }, closed);
const TERMINAL_CODE = {
  challenge: Type.String({
    pattern: "^[A-Za-z0-9_-]{43}$",
    examples: [RANDOM],
    description: "SHA-256 of the terminal's verifier, base64url. The terminal's link has it.",
  }),
  code: Type.String({ minLength: 1, maxLength: 20, description: "What the terminal shows, typed by the user." }),
};
export const TerminalCode = Type.Object(TERMINAL_CODE, closed);
export type TerminalCode = Static<typeof TerminalCode>;
export const ConfirmedTerminal = Type.Object(
  { expires_at: Type.String({ format: "date-time", description: "Time until which the terminal can sign in, once." }) },
  closed,
);
export type ConfirmedTerminal = Static<typeof ConfirmedTerminal>;

export const SignInMethods = Type.Object(
  {
    origin: Type.Union([Type.String(), Type.Null()], {
      description: "Scheme, host and port where people sign in; null if no one can sign in.",
    }),
    passkey: Type.Object(
      {
        available: Type.Boolean(),
        reason: Type.Union([Type.String(), Type.Null()], {
          description: "Why passkeys cannot be used; null if they can.",
        }),
      },
      closed,
    ),
    providers: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          name: Type.String(),
          url: Type.String({ description: "Path that starts the sign-in; takes `return_to`." }),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type SignInMethods = Static<typeof SignInMethods>;

/** The options and results have the JSON form of WebAuthn Level 3, which browsers extend. */
const CeremonyOptions = Type.Record(Type.String(), Type.Unknown());
export type CeremonyOptions = Static<typeof CeremonyOptions>;
export const Ceremony = Type.Object({ options: CeremonyOptions }, closed);
export type Ceremony = Static<typeof Ceremony>;
const OptionalCeremony = Type.Union([CeremonyOptions, Type.Null()], {
  description: "Options for `navigator.credentials.get`; null if the user has no passkey for this address.",
});
export const ConfirmationOptions = Type.Object({ options: OptionalCeremony }, closed);
export type ConfirmationOptions = Static<typeof ConfirmationOptions>;
export const PasskeyCeremony = Type.Object({ options: CeremonyOptions, confirmation: OptionalCeremony }, closed);
export type PasskeyCeremony = Static<typeof PasskeyCeremony>;
const Base64Url = Type.String({ maxLength: 20_000, pattern: "^[A-Za-z0-9_-]*$" });
const open = { additionalProperties: true } as const;
const AttestationResponse = Type.Object(
  {
    id: Base64Url,
    rawId: Base64Url,
    type: Type.Literal("public-key"),
    response: Type.Object({ clientDataJSON: Base64Url, attestationObject: Base64Url }, open),
    clientExtensionResults: Type.Record(Type.String(), Type.Unknown()),
  },
  { ...open, description: "`PublicKeyCredential.toJSON()` of `navigator.credentials.create`." },
);
export type AttestationResponse = Static<typeof AttestationResponse>;
const AssertionResponse = Type.Object(
  {
    id: Base64Url,
    rawId: Base64Url,
    type: Type.Literal("public-key"),
    response: Type.Object({ clientDataJSON: Base64Url, authenticatorData: Base64Url, signature: Base64Url }, open),
    clientExtensionResults: Type.Record(Type.String(), Type.Unknown()),
  },
  { ...open, description: "`PublicKeyCredential.toJSON()` of `navigator.credentials.get`." },
);
export type AssertionResponse = Static<typeof AssertionResponse>;
/** A WebAuthn assertion by one of the user's passkeys, which confirms the change that the request makes. */
const OptionalAnswer = Type.Optional(
  Type.Unsafe<AssertionResponse>({
    ...AssertionResponse,
    description: "Required if the user has a passkey for this address.",
  }),
);
const Token = Type.String({
  minLength: 10,
  maxLength: 100,
  examples: [RANDOM],
  description: "Token of an enrolment link, or a recovery code.",
});
const PasskeyName = Type.Optional(
  Type.String({ minLength: 1, maxLength: 60, default: "Passkey", description: "For lists, e.g. `YubiKey`." }),
);
export const SignInBody = Type.Object({ response: AssertionResponse }, closed);
export type SignInBody = Static<typeof SignInBody>;
export const TerminalConfirmBody = Type.Object(
  {
    ...TERMINAL_CODE,
    response: OptionalAnswer,
  },
  closed,
);
export type TerminalConfirmBody = Static<typeof TerminalConfirmBody>;
export const EnrolmentStartBody = Type.Object({ token: Token }, closed);
export type EnrolmentStartBody = Static<typeof EnrolmentStartBody>;
export const EnrolmentCeremony = Type.Object(
  { user: Type.String({ description: "Name of the user." }), options: CeremonyOptions },
  closed,
);
export type EnrolmentCeremony = Static<typeof EnrolmentCeremony>;
export const EnrolmentBody = Type.Object({ token: Token, response: AttestationResponse, name: PasskeyName }, closed);
export type EnrolmentBody = Static<typeof EnrolmentBody>;
export const PasskeyBody = Type.Object(
  { response: AttestationResponse, name: PasskeyName, confirmation: OptionalAnswer },
  closed,
);
export type PasskeyBody = Static<typeof PasskeyBody>;
export const ConfirmedBody = Type.Object({ confirmation: OptionalAnswer }, closed);
export type ConfirmedBody = Static<typeof ConfirmedBody>;

export function renderUser(user: User): UserRecord {
  const { id, name, roles, groups, identities, passkeys, recovery_codes, link, managed_by, ended_at } = user;
  return {
    id,
    name,
    principal: `user:${id}`,
    roles,
    groups,
    identities,
    passkeys: passkeys.map((passkey) => ({ id: passkey.id, name: passkey.name, added_at: passkey.added_at })),
    recovery_codes: recovery_codes.length,
    link_expires_at: link?.expires_at ?? null,
    managed_by,
    ended_at,
  };
}

export function renderSignedIn({ user, session_id, page_token }: SignInResult): SignedIn {
  return { user: renderUser(user), session_id, page_token };
}

/**
 * @param memberOf all groups of the user
 * @param last time of the last sign-in, in milliseconds
 */
export function renderUserDetails(
  user: User,
  memberOf: readonly string[],
  last: number | null,
): Static<typeof UserDetails> {
  return {
    ...renderUser(user),
    configured_groups: memberOf.filter((group) => !user.groups.includes(group)),
    last_sign_in_at: last === null ? null : toRfc3339(last),
  };
}

export function renderSession(session: StoredSession, current: string | null): Static<typeof SessionRecord> {
  const { id, method, browser, started_at, seen_at } = session;
  return {
    id,
    method,
    browser,
    started_at: toRfc3339(started_at),
    seen_at: toRfc3339(seen_at),
    current: id === current,
  };
}

/**
 * Returns the scopes of a user's roles, for `GET /v1/session`.
 * @param all every scope of the service, which admins have
 */
export function listScopes(user: User, all: readonly string[]): string[] {
  const scopes = scopesOfRoles(user.roles);
  return scopes.includes("admin") ? [...all] : scopes;
}

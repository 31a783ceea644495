/**
 * The sign-in at a provider. Nothing is stored between the two requests of the browser. The state is a challenge over
 * the provider and a cookie of this browser. The nonce and the PKCE verifier are derived from the state and the
 * service's secret.
 */
import { randomBytes } from "node:crypto";
import {
  userState,
  type CoreHost,
  findUserByIdentity,
  type LedgerTransaction,
  newUser,
  sha256Hex,
  toBase64Url,
  type User,
  utf8,
} from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import { assertChallenge, createChallenge, useChallenge } from "./challenges.ts";
import { recordUser } from "./user-changes.ts";
import { type Claims, lacksGroups, type Profile, readProfile } from "./claims.ts";
import { readCookies, setCookie, cookieName } from "./cookies.ts";
import { ERRORS } from "./user-errors.ts";
import type { CallbackBinding, Provider } from "./provider.ts";
import type { Sessions } from "./sessions.ts";
import type { SignInResult } from "./sign-in.ts";
import type { Site } from "./site.ts";

const COOKIE = "assent_sign_in";
/** Lifetime of the state. Seconds. */
const COOKIE_SECONDS = 600;
const MAX_PATH = 1000;

/** Returns the URL to redirect the browser to, and the cookie that binds the callback to this browser. */
export async function startProviderSignIn(
  host: CoreHost,
  provider: Provider,
  site: Site,
  returnTo: string,
): Promise<{ url: string; cookie: string }> {
  const value = `${randomBytes(32).toString("base64url")}.${toBase64Url(utf8(localPath(returnTo)))}`;
  const state = toBase64Url(createChallenge(host, purposeOf(provider, value)));
  const url = await provider.authorizationUrl(site.origin, bindingOf(host, state));
  // SameSite must be Lax, because the provider redirects from another site.
  return { url, cookie: setCookie(COOKIE, value, site, COOKIE_SECONDS, "Lax") };
}

/** Returns the `Set-Cookie` value that removes the sign-in's cookie. */
export function clearSignInCookie(site: Site): string {
  return setCookie(COOKIE, "", site, 0, "Lax");
}

/**
 * Signs in the person in a callback. Creates the user at the first sign-in. Updates name, groups and roles at later
 * sign-ins.
 */
export async function finishProviderSignIn(
  host: CoreHost,
  sessions: Sessions,
  { provider, site, request, browser }: { provider: Provider; site: Site; request: Request; browser: string },
): Promise<SignInResult & { return_to: string }> {
  const { search, searchParams } = new URL(request.url);
  const state = searchParams.get("state") ?? "";
  const value = findSignInCookie(host, provider, readCookies(request, cookieName(COOKIE, site)), state);
  const { claims, sid, refresh_token } = await provider.finish(site.origin, search, bindingOf(host, state));
  const profile = readProfile(provider.options, claims);
  if (lacksGroups(provider.options, claims))
    host.log.warn("a provider did not send the groups of a person, who therefore has no rights", {
      provider: provider.options.id,
      claim: provider.options.groups_claim,
      subject: String(claims["sub"]).slice(0, 100),
    });
  const id = host.newId();
  return host.ledger.transact(async (tx) => {
    await useChallenge(host, tx, state);
    const user = refreshUser(tx, provider, { id, claims, profile });
    const at = { id: provider.options.id, sub: String(claims["sub"]), sid, refresh_token };
    const session = await sessions.start(tx, user, { method: `oidc:${provider.options.id}`, browser }, site, at);
    return { user, ...session, return_to: pathIn(value) };
  });
}

/** Returns the cookie of the sign-in with this state. Throws USERS_CHALLENGE_INVALID if there is none. */
function findSignInCookie(host: CoreHost, provider: Provider, values: readonly string[], state: string): string {
  let fault = new Refusal(
    ERRORS.CHALLENGE_INVALID,
    "this browser did not start the sign-in, or did so more than ten minutes ago; start again",
  );
  for (const value of values)
    try {
      assertChallenge(host, purposeOf(provider, value), state);
      return value;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      fault = error;
    }
  throw fault;
}

function refreshUser(
  tx: LedgerTransaction,
  provider: Provider,
  { id, claims, profile }: { id: string; claims: Claims; profile: Profile },
): User {
  const { scim, subject_claim } = provider.options;
  const identity = { issuer: String(claims["iss"]), subject: subjectIn(provider, claims) };
  const managed_by = `${scim ? "scim" : "oidc"}:${provider.options.id}`;
  const before = findUserByIdentity(tx.state(userState), identity.issuer, identity.subject);
  if (scim && before?.managed_by !== managed_by)
    throw new Refusal(
      ERRORS.NOT_PROVISIONED,
      `${provider.options.name} has not created a user with this ${subject_claim} here; assign the application to the person there`,
    );
  if (before === null)
    return recordUser(tx, "created", newUser(id, tx.now, { ...profile, identities: [identity], managed_by }), null);
  if (before.ended_at !== null)
    throw new Refusal(ERRORS.SIGN_IN_ENDED, `the user ${before.id} is deactivated; an admin can reactivate them`);
  const user = scim ? { ...before, email: profile.email } : { ...before, ...profile, managed_by };
  return JSON.stringify(user) === JSON.stringify(before) ? before : recordUser(tx, "updated", user, null);
}

/** Returns the subject of the ID token. Throws USERS_PROVIDER_INVALID if the token lacks the claim. */
function subjectIn({ options: { name, subject_claim } }: Provider, claims: Claims): string {
  const subject = claims[subject_claim];
  if (typeof subject === "string" && subject !== "") return subject;
  throw new Refusal(ERRORS.PROVIDER_INVALID, `the ID token of ${name} has no claim "${subject_claim}"`);
}

function purposeOf({ options: { id, issuer, client_id } }: Provider, cookie: string): string {
  return `oidc:${sha256Hex(utf8(JSON.stringify([id, issuer, client_id, cookie])))}`;
}

function bindingOf(host: CoreHost, state: string): CallbackBinding {
  const derive = (purpose: string): string => toBase64Url(host.vault.mac(`users/oidc-${purpose}`, utf8(state)));
  return { state, nonce: derive("nonce"), verifier: derive("verifier") };
}

/**
 * Returns the path if it is a path of this service; `/` for anything that a browser could interpret as another site.
 */
function localPath(path: string): string {
  const base = "http://service.invalid";
  if (!/^\/(?![/\\])[\x21-\x7e]*$/.test(path) || path.includes("\\") || path.length > MAX_PATH) return "/";
  const url = URL.canParse(path, base) ? new URL(path, base) : null;
  const isLocal = url?.origin === base && !url.pathname.startsWith("//");
  return isLocal ? url.pathname + url.search + url.hash : "/";
}

function pathIn(cookie: string): string {
  return localPath(Buffer.from(cookie.slice(cookie.indexOf(".") + 1), "base64url").toString("utf8"));
}

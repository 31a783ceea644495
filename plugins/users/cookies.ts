/** The session cookie. */
import type { Site } from "./site.ts";

const PATTERN = /^([0-9a-f-]{36})\.([0-9a-f-]{36})\.([A-Za-z0-9_-]{43})$/;

export interface SessionCookie {
  user_id: string;
  session_id: string;
  /** Secret of the session: 32 random bytes, base64url. */
  secret: string;
}

/**
 * Returns the cookie's name. With HTTPS it has the prefix `__Host-`, which browsers accept only with Secure, `Path=/`
 * and no Domain. The name ends with the port, because browsers send the cookies of a host to each of its ports.
 */
export function cookieName(name: string, { secure, origin }: Site): string {
  const { port } = new URL(origin);
  return `${secure ? "__Host-" : ""}${name}${port === "" ? "" : `_${port}`}`;
}

const NAME = "assent_session";

/**
 * Returns the values of all cookies of the request with this name. There can be several: a program on another port of
 * the host or of its subdomains can set a cookie with any name.
 */
export function readCookies(request: Request, name: string): string[] {
  return (request.headers.get("cookie") ?? "").split(";").flatMap((part) => {
    const [key, ...value] = part.trim().split("=");
    return key === name ? [value.join("=")] : [];
  });
}

/** Returns true if the request carries a session cookie of this site, even an invalid one. */
export function hasSessionCookie(request: Request, site: Site): boolean {
  return readCookies(request, cookieName(NAME, site)).length > 0;
}

/** Returns the session cookies that are not malformed. */
export function readSessionCookies(request: Request, site: Site): SessionCookie[] {
  return readCookies(request, cookieName(NAME, site)).flatMap((text) => {
    const [, user_id = "", session_id = "", secret = ""] = PATTERN.exec(text) ?? [];
    return user_id === "" ? [] : [{ user_id, session_id, secret }];
  });
}

/**
 * Returns the `Set-Cookie` value of a session.
 * @param seconds lifetime of the cookie
 */
export function sessionCookie({ user_id, session_id, secret }: SessionCookie, site: Site, seconds: number): string {
  return setCookie(NAME, `${user_id}.${session_id}.${secret}`, site, seconds, "Strict");
}

/** Returns the `Set-Cookie` value that removes the session cookie. */
export function clearSessionCookie(site: Site): string {
  return setCookie(NAME, "", site, 0, "Strict");
}

export function setCookie(
  name: string,
  value: string,
  site: Site,
  seconds: number,
  sameSite: "Strict" | "Lax",
): string {
  const secure = site.secure ? "; Secure" : "";
  return `${cookieName(name, site)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=${sameSite}${secure}`;
}

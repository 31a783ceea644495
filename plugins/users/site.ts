/** The origin at which people use the service. Passkeys and cookies are bound to this origin. */
import { isSecureOrigin, type CoreHost } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import { ERRORS } from "./user-errors.ts";

export interface Site {
  /** Scheme, host and port, in the form that browsers send in `Origin`. */
  origin: string;
  /** Relying party id of passkeys: the host name. */
  rpId: string;
  /** Whether the origin is HTTPS, so that cookies can be Secure. */
  secure: boolean;
}

/**
 * Returns the site at which people sign in. It never depends on a request. Returns null if it is unknown, or if
 * browsers do not offer passkeys there.
 */
export function findSite(host: Pick<CoreHost, "origin">): Site | null {
  const origin = host.origin();
  if (origin === null || !isSecureOrigin(origin)) return null;
  const { hostname, protocol } = new URL(origin);
  return { origin, rpId: hostname, secure: protocol === "https:" };
}

/** Returns the site at which people sign in. Throws USERS_INSECURE with the reason if there is none. */
export function requireSite(host: Pick<CoreHost, "origin">): Site {
  const site = findSite(host);
  if (site !== null) return site;
  const origin = host.origin();
  if (origin === null)
    throw new Refusal(
      ERRORS.INSECURE,
      "people cannot sign in, because the service does not know the address at which they reach it; set server.public_url (ASSENT_PUBLIC_URL) to that https address",
    );
  throw new Refusal(
    ERRORS.INSECURE,
    `people can sign in only over HTTPS, and server.public_url is at ${origin}; put a proxy with TLS in front and set server.public_url (ASSENT_PUBLIC_URL) to its https address`,
  );
}

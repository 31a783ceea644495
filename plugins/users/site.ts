/** The origin at which people use the service. Passkeys and cookies are bound to this origin. */
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

const LOOPBACK = "localhost";

/**
 * Returns the origin of `server.public_url`, or else `http://localhost:<port>` if the request was sent there. Throws
 * USERS_INSECURE for other addresses, because browsers offer passkeys only on HTTPS and on localhost.
 * @param publicUrl `server.public_url`
 */
export function requireSecureSite(publicUrl: string | null, request: Request): Site {
  if (publicUrl !== null) {
    const { origin, hostname, protocol } = new URL(publicUrl);
    if (protocol === "https:" || hostname === LOOPBACK)
      return { origin, rpId: hostname, secure: protocol === "https:" };
    throw new Refusal(
      ERRORS.INSECURE,
      `people can sign in only over HTTPS, and server.public_url is ${publicUrl}; put a proxy with TLS in front and set server.public_url (ASSENT_PUBLIC_URL) to its https address`,
    );
  }
  const host = request.headers.get("host") ?? new URL(request.url).host;
  if (/^localhost(?::\d{1,5})?$/.test(host)) return { origin: `http://${host}`, rpId: LOOPBACK, secure: false };
  const port = /:(\d{1,5})$/.exec(host)?.[0] ?? "";
  throw new Refusal(
    ERRORS.INSECURE,
    `people can sign in at http://localhost${port} on this machine, not at ${host.slice(0, 100)}; for other machines, set server.public_url (ASSENT_PUBLIC_URL) to an https address`,
  );
}

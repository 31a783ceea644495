/** The names and addresses of this machine, and the name at which people open a service that runs on it. */

/**
 * Name of the console on a loopback address. Browsers resolve it to this machine. Cookies, storage and passkeys at
 * `localhost` are shared by everything that this machine serves on any port.
 */
const CONSOLE_NAME = "assent.localhost";

/** Returns true for a host to listen on that means both loopback addresses. */
export function isLoopbackHost(host: string): boolean {
  return ["localhost", "127.0.0.1", "::1"].includes(host);
}

/** Returns true for the host name of a URL that browsers resolve to a loopback address without DNS. */
function isLoopbackName(hostname: string): boolean {
  return ["localhost", "127.0.0.1", "[::1]"].includes(hostname) || hostname.endsWith(".localhost");
}

/**
 * Returns true if another local program could receive what a browser sends to the URL. That is so if the URL has a
 * loopback address and the port of the service, but the service does not listen on loopback.
 */
export function isOpenToOthers(url: string, { host, port }: { host: string; port: number }): boolean {
  const { protocol, hostname, port: urlPort } = new URL(url);
  const listens = isLoopbackHost(host) || host === "0.0.0.0" || host === "::";
  return protocol === "http:" && isLoopbackName(hostname) && Number(urlPort || 80) === port && !listens;
}

/** Returns true if browsers offer passkeys to pages of this origin: HTTPS, or HTTP at a name of this machine. */
export function isSecureOrigin(origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, hostname } = new URL(origin);
  return (
    protocol === "https:" || (protocol === "http:" && (hostname === "localhost" || hostname.endsWith(".localhost")))
  );
}

/**
 * Returns the origin at which people use the service in a browser. It never depends on a request, because every program
 * can send any `Host` header. Null if the service listens on other addresses and has no `public_url`.
 * @param port the port on which the service listens; 0 if it is not known yet
 * @example
 * siteOrigin({ host: "127.0.0.1", public_url: null }, 8000); // "http://assent.localhost:8000"
 */
export function siteOrigin(
  { public_url, host }: { readonly public_url: string | null; readonly host: string },
  port: number,
): string | null {
  if (public_url !== null) return new URL(public_url).origin;
  return isLoopbackHost(host) && port !== 0 ? new URL(`http://${CONSOLE_NAME}:${port}`).origin : null;
}

/**
 * Returns the address at `origin` of a page that a browser requested under another name of this machine, such as
 * `http://127.0.0.1:8000/`. Returns null if no redirect is needed.
 */
export function addressAtSite(origin: string | null, request: Request): string | null {
  if (origin === null || !/\btext\/html\b/.test(request.headers.get("accept") ?? "")) return null;
  const site = new URL(origin);
  const { pathname, search } = new URL(request.url);
  const requested = `http://${request.headers.get("host") ?? new URL(request.url).host}`;
  if (site.protocol !== "http:" || !isLoopbackName(site.hostname) || !URL.canParse(requested)) return null;
  const { hostname, port } = new URL(requested);
  const isElsewhere = hostname !== site.hostname && isLoopbackName(hostname) && port === site.port;
  return isElsewhere ? `${origin}${pathname}${search}` : null;
}

/**
 * Returns true if a request to the URL reaches the service at `origin`: the same origin, or another name of this machine.
 * @example
 * reachesSite("http://127.0.0.1:8000", "http://localhost:8000"); // true
 */
export function reachesSite(url: string, origin: string): boolean {
  const [requested, site] = [new URL(url), new URL(origin)];
  const areLocal = [requested, site].every(
    ({ protocol, hostname }) => protocol === "http:" && isLoopbackName(hostname),
  );
  return requested.origin === site.origin || (areLocal && requested.port === site.port);
}

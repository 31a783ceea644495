/**
 * Resolves the names of upstream servers. A name is resolved once for each connection, and the connection is made to an
 * address that was checked, so that a name cannot change to an internal address in between.
 */
import { lookup, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { isPublicAddress as isPublic } from "../../src/webhook/address.ts";

export type Resolve = (host: string) => Promise<LookupAddress[]>;

/**
 * Returns false for loopback, private, link-local, multicast and other special addresses, and for translated ones.
 * @example
 * isPublicAddress("169.254.169.254"); // false
 */
export const isPublicAddress = (address: string): boolean => isPublic(address, { nat64: false });

/** Returns true for every spelling of an IP address that a resolver accepts, such as `127.1` or `0x7f000001`. */
export function isAddressLiteral(host: string): boolean {
  if (isIP(host.replace(/^\[|\]$/g, "")) !== 0) return true;
  const last = host.split(".").at(-1) ?? "";
  return /^(?:\d+|0x[0-9a-f]*)$/i.test(last);
}

export const resolveWithSystem: Resolve = (host) =>
  new Promise((resolve, reject) =>
    // IPv4 first, because many containers have no route for IPv6.
    lookup(host, { all: true, verbatim: false }, (error, found) => (error === null ? resolve(found) : reject(error))),
  );

/** Thrown if a name resolves to an address that the configuration does not permit. The message names no address. */
export class InternalAddress extends Error {}

/** Returns the `lookup` of a connection. Fails if one of the addresses is internal, unless `isPrivate` permits these. */
export function createLookup(resolve: Resolve, isPrivate: boolean): LookupFunction {
  return (host, options, done) => {
    resolve(host).then(
      (found) => {
        const [first] = found;
        if (first === undefined) return done(new Error(`${host} has no address`), []);
        if (!isPrivate && !found.every(({ address }) => isPublicAddress(address)))
          return done(new InternalAddress(`${host} resolves to an internal address`), []);
        if (options.all === true) done(null, found);
        else done(null, first.address, first.family);
      },
      (error: unknown) => done(error as NodeJS.ErrnoException, []),
    );
  };
}

/**
 * Resolves the names of upstream servers. A name is resolved once for each connection, and the connection is made to an
 * address that was checked, so that a name cannot change to an internal address in between.
 */
import { lookup, type LookupAddress } from "node:dns";
import { BlockList, isIP, isIPv6, type LookupFunction } from "node:net";

export type Resolve = (host: string) => Promise<LookupAddress[]>;

/** Addresses that are not on the public internet: special-purpose registries of IANA. */
const INTERNAL = new BlockList();
for (const [net, bits] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const)
  INTERNAL.addSubnet(net, bits, "ipv4");
/** Of IPv6, only global unicast is public, without the ranges that embed an IPv4 address or are for documentation. */
const GLOBAL = new BlockList();
GLOBAL.addSubnet("2000::", 3, "ipv6");
for (const [net, bits] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const)
  INTERNAL.addSubnet(net, bits, "ipv6");

/**
 * Returns false for loopback, private, link-local, multicast and other special addresses.
 * @example
 * isPublicAddress("169.254.169.254"); // false
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !INTERNAL.check(address, "ipv4");
  return isIPv6(address) && GLOBAL.check(address, "ipv6") && !INTERNAL.check(address, "ipv6");
}

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

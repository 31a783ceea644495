/** Checks whether an IP address is public, so that a request cannot reach an internal network. */
import { isIP } from "node:net";

/** IPv4 networks that are not globally reachable (IANA special-purpose registry), and multicast. */
const CLOSED_V4: readonly [network: string, bits: number][] = [
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
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

/**
 * Networks within global unicast (2000::/3) that are not public: Teredo and other protocol assignments, documentation,
 * 6to4.
 */
const CLOSED_V6: readonly [network: string, bits: number][] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

/**
 * Returns true for a public IP address. Returns false for invalid addresses, zones, and addresses that contain an IPv4
 * address (mapped, compatible, 6to4, Teredo).
 * @param options.nat64 whether an address with NAT64's well-known prefix is as public as the IPv4 address that it
 * contains; otherwise it is not public
 * @example
 * isPublicAddress("64:ff9b::8.8.8.8"); // true
 */
export function isPublicAddress(address: string, { nat64 = true }: { nat64?: boolean } = {}): boolean {
  const family = isIP(address);
  if (family === 4) return isPublicV4(v4(address));
  if (family !== 6 || address.includes("%")) return false;
  const value = v6(address);
  if (isInNetwork(value, v6("64:ff9b::"), 96, 128)) return nat64 && isPublicV4(value & 0xffff_ffffn);
  return (
    isInNetwork(value, v6("2000::"), 3, 128) &&
    !CLOSED_V6.some(([network, bits]) => isInNetwork(value, v6(network), bits, 128))
  );
}

function isPublicV4(value: bigint): boolean {
  return !CLOSED_V4.some(([network, bits]) => isInNetwork(value, v4(network), bits, 32));
}

function isInNetwork(value: bigint, network: bigint, bits: number, width: number): boolean {
  const rest = BigInt(width - bits);
  return value >> rest === network >> rest;
}

function v4(address: string): bigint {
  return address.split(".").reduce((value, part) => (value << 8n) | BigInt(part), 0n);
}

/** Parses an IPv6 address that `isIP` has validated. */
function v6(address: string): bigint {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(address);
  const tail = dotted === null ? 0n : v4(dotted[2] as string);
  const text =
    dotted === null ? address : `${dotted[1] as string}${(tail >> 16n).toString(16)}:${(tail & 0xffffn).toString(16)}`;
  const [head = "", end] = text.split("::");
  const groups = (part: string): string[] => (part === "" ? [] : part.split(":"));
  const [before, after] = [groups(head), groups(end ?? "")];
  const all =
    end === undefined ? before : [...before, ...Array<string>(8 - before.length - after.length).fill("0"), ...after];
  return all.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}

/** Which addresses are of the public internet: a webhook must not become a way into the network that the service stands in. */
import { isIP } from "node:net";

/** IANA special-purpose registry (IPv4): what is not globally reachable, and multicast. */
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

/** Inside global unicast (2000::/3): Teredo and other protocol assignments, documentation, 6to4. */
const CLOSED_V6: readonly [network: string, bits: number][] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

/**
 * Whether an IP address in text is public. False for anything that is no address, for zones, and for every form that
 * carries an IPv4 address inside (mapped, compatible, 6to4, Teredo), but for NAT64's well-known prefix, where the
 * carried address decides.
 */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return isPublicV4(v4(address));
  if (family !== 6 || address.includes("%")) return false;
  const value = v6(address);
  if (within(value, v6("64:ff9b::"), 96, 128)) return isPublicV4(value & 0xffff_ffffn);
  return (
    within(value, v6("2000::"), 3, 128) && !CLOSED_V6.some(([network, bits]) => within(value, v6(network), bits, 128))
  );
}

function isPublicV4(value: bigint): boolean {
  return !CLOSED_V4.some(([network, bits]) => within(value, v4(network), bits, 32));
}

function within(value: bigint, network: bigint, bits: number, width: number): boolean {
  const rest = BigInt(width - bits);
  return value >> rest === network >> rest;
}

function v4(address: string): bigint {
  return address.split(".").reduce((value, part) => (value << 8n) | BigInt(part), 0n);
}

/** Of an address that isIP has taken for 6. */
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

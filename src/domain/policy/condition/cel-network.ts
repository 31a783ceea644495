/**
 * Functions on IP addresses, networks, URLs, paths and semantic versions, with the names of Kubernetes' CEL library
 * where it has such a function. Addresses, networks, URLs and versions are strings in canonical form. A string that two
 * programs could interpret differently is an error, so the policy denies.
 */
import { celFunc, celList, celMap, celMethod, CelScalar, listType, mapType } from "@bufbuild/cel";
import { chargeSteps } from "./cel-meter.ts";

const { BOOL, INT, STRING } = CelScalar;

/** Maximum number of characters of an address, network or version. */
const MAX_SHORT = 256;
const MAX_URL = 8_192;

function bounded(text: string, most: number, steps: number): string {
  if (text.length > most) throw new Error("the text is too long");
  chargeSteps(steps + (text.length >> 2));
  return text;
}

/** An address as a number of 32 or 128 bits. */
interface Address {
  bits: 32 | 128;
  value: bigint;
}

/**
 * Parses an address. Throws for leading zeros, zones and IPv4 addresses within IPv6, which programs interpret
 * differently.
 */
function parseAddress(given: string): Address {
  const text = bounded(given, MAX_SHORT, 10);
  return text.includes(":") ? parseIpv6(text) : parseIpv4(text);
}

function parseIpv4(text: string): Address {
  if (!/^(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2})){3}$/.test(text)) throw new Error("no address");
  const bytes = text.split(".").map(Number);
  if (bytes.some((byte) => byte > 255)) throw new Error("no address");
  return { bits: 32, value: bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n) };
}

function parseIpv6(text: string): Address {
  const halves = text.split("::");
  if (halves.length > 2) throw new Error("no address");
  const [head, tail] = halves.map((half) => (half === "" ? [] : half.split(":"))) as [string[], string[] | undefined];
  const missing = 8 - head.length - (tail?.length ?? 0);
  if (tail === undefined ? missing !== 0 : missing < 1) throw new Error("no address");
  const groups = tail === undefined ? head : [...head, ...Array.from({ length: missing }, () => "0"), ...tail];
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) throw new Error("no address");
  const value = groups.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
  if (value >> 32n === 0xffffn) throw new Error("an IPv4 address within IPv6");
  return { bits: 128, value };
}

function formatAddress({ bits, value }: Address): string {
  const width = bits === 32 ? 8n : 16n;
  const groups = Array.from({ length: bits === 32 ? 4 : 8 }, (_, i, all = bits === 32 ? 4 : 8) =>
    Number((value >> (width * BigInt(all - 1 - i))) & ((1n << width) - 1n)),
  );
  if (bits === 32) return groups.join(".");
  const text = groups.map((group) => group.toString(16)).join(":");
  // RFC 5952: the longest run of at least two zero groups becomes "::"; of equally long runs, the first.
  const runs = [...text.matchAll(/(?:^|:)0(?::0)+(?=:|$)/g)].sort((a, b) => b[0].length - a[0].length);
  const [longest] = runs;
  if (longest === undefined) return text;
  return `${text.slice(0, longest.index)}::${text.slice(longest.index + longest[0].length + 1)}`;
}

interface Network {
  address: Address;
  prefix: number;
}

function parseNetwork(text: string): Network {
  const [, address, prefix] = /^([^/]+)\/(0|[1-9][0-9]{0,2})$/.exec(bounded(text, MAX_SHORT, 10)) ?? [];
  if (address === undefined) throw new Error("no network");
  const parsed = parseAddress(address);
  if (Number(prefix) > parsed.bits) throw new Error("no network");
  return { address: parsed, prefix: Number(prefix) };
}

/** Returns true if the network contains every address whose first `prefix` bits equal those of `address`. */
function contains(network: Network, { address, prefix }: Network): boolean {
  if (network.address.bits !== address.bits || prefix < network.prefix) return false;
  const ignored = BigInt(address.bits - network.prefix);
  return network.address.value >> ignored === address.value >> ignored;
}

const single = (address: Address): Network => ({ address, prefix: address.bits });
const LOOPBACK = ["127.0.0.0/8", "::1/128"];
const LINK_LOCAL = ["169.254.0.0/16", "fe80::/10"];
const UNSPECIFIED = ["0.0.0.0/32", "::/128"];
const MULTICAST = ["224.0.0.0/4", "ff00::/8"];
const LINK_LOCAL_MULTICAST = ["224.0.0.0/24", "ff02::/16"];
const BROADCAST = ["255.255.255.255/32"];
const NOT_GLOBAL = [...UNSPECIFIED, ...LOOPBACK, ...LINK_LOCAL, ...MULTICAST, ...BROADCAST];
const PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

const isWithin = (networks: readonly string[]) =>
  function (this: string): boolean {
    const address = single(parseAddress(this));
    return networks.some((network) => contains(parseNetwork(network), address));
  };

/** Returns a method that is true for an address in none of the networks. */
const isOutside = (networks: readonly string[]) => {
  const isInside = isWithin(networks);
  return function (this: string): boolean {
    return !isInside.call(this);
  };
};

const succeeds =
  (parse: (text: string) => unknown) =>
  (text: string): boolean => {
    // Charge outside of `try`, because `catch` would also catch the error of an exceeded step limit.
    chargeSteps(20 + (text.length >> 2));
    try {
      parse(text);
      return true;
    } catch {
      return false;
    }
  };

/**
 * Parses an absolute URL. Throws for a string with spaces, backslashes, control characters or non-ASCII characters,
 * which programs interpret differently.
 */
function parseUrl(given: string): URL {
  const text = bounded(given, MAX_URL, 40);
  if (!/^[a-zA-Z][a-zA-Z0-9+.-]*:\/\/[!-[\]-~]+$/.test(text)) throw new Error("no absolute URL");
  return new URL(text);
}

function queryOf(url: URL): unknown {
  const values = new Map<string, string[]>();
  for (const [name, value] of url.searchParams) values.set(name, [...(values.get(name) ?? []), value]);
  return celMap(new Map([...values].map(([name, texts]) => [name, celList(texts)])) as never);
}

/** Removes `.`, empty segments, and `..` together with the preceding segment, like Go's `path.Clean`. */
function cleanPath(given: string): string {
  const text = bounded(given, MAX_URL, 5);
  const rooted = text.startsWith("/");
  const segments: string[] = [];
  for (const segment of text.split("/")) {
    if (segment === "" || segment === ".") continue;
    if (segment === ".." && segments.length > 0 && segments.at(-1) !== "..") segments.pop();
    else if (segment !== ".." || !rooted) segments.push(segment);
  }
  chargeSteps(segments.length);
  return `${rooted ? "/" : ""}${segments.join("/")}` || ".";
}

interface Version {
  numbers: bigint[];
  prerelease: string[];
  text: string;
}

const NUMBER = "(0|[1-9][0-9]{0,17})";
const IDENTIFIERS = "[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*";
const VERSION = new RegExp(`^${NUMBER}\\.${NUMBER}\\.${NUMBER}(?:-(${IDENTIFIERS}))?(?:\\+${IDENTIFIERS})?$`);

/** Parses a version. Source: Semantic Versioning 2.0.0, items 2 and 9. */
function parseVersion(given: string): Version {
  const text = bounded(given, MAX_SHORT, 10);
  const [, major = "", minor = "", patch = "", prerelease] = VERSION.exec(text) ?? [];
  const identifiers = prerelease?.split(".") ?? [];
  if (major === "" || identifiers.some((part) => /^0[0-9]+$/.test(part))) throw new Error("no version");
  return { numbers: [major, minor, patch].map(BigInt), prerelease: identifiers, text };
}

/** Compares two versions by precedence. Source: Semantic Versioning 2.0.0, item 11. */
function compareVersions(left: string, right: string): bigint {
  const [a, b] = [parseVersion(left), parseVersion(right)];
  for (const [i, number] of a.numbers.entries()) {
    const other = b.numbers[i] as bigint;
    if (number !== other) return number < other ? -1n : 1n;
  }
  if (a.prerelease.length === 0 || b.prerelease.length === 0)
    return BigInt(Math.sign(b.prerelease.length - a.prerelease.length));
  for (const [i, part] of a.prerelease.entries()) {
    const other = b.prerelease[i];
    if (other === undefined) return 1n;
    if (part !== other) return compareIdentifiers(part, other);
  }
  return a.prerelease.length === b.prerelease.length ? 0n : -1n;
}

function compareIdentifiers(a: string, b: string): bigint {
  const [x, y] = [a, b].map((part) => (/^[0-9]+$/.test(part) ? BigInt(part) : null)) as [bigint | null, bigint | null];
  if (x !== null && y !== null) return x < y ? -1n : 1n;
  if (x !== null || y !== null) return x !== null ? -1n : 1n;
  return a < b ? -1n : 1n;
}

const method = (name: string, result: typeof STRING | typeof BOOL | typeof INT, read: (text: string) => unknown) =>
  celMethod(name, STRING, [], result, function () {
    return read(this) as never;
  });
const compare = (name: string, result: typeof BOOL | typeof INT, read: (a: string, b: string) => unknown) =>
  celMethod(name, STRING, [STRING], result, function (other) {
    return read(this, other) as never;
  });

export const NETWORK_FUNCTIONS: readonly unknown[] = [
  celFunc("isIP", [STRING], BOOL, succeeds(parseAddress)),
  celFunc("ip", [STRING], STRING, (text) => formatAddress(parseAddress(text))),
  method("family", INT, (text) => (parseAddress(text).bits === 32 ? 4n : 6n)),
  celMethod("isLoopback", STRING, [], BOOL, isWithin(LOOPBACK)),
  celMethod("isLinkLocalUnicast", STRING, [], BOOL, isWithin(LINK_LOCAL)),
  celMethod("isPrivate", STRING, [], BOOL, isWithin(PRIVATE)),
  celMethod("isUnspecified", STRING, [], BOOL, isWithin(UNSPECIFIED)),
  celMethod("isLinkLocalMulticast", STRING, [], BOOL, isWithin(LINK_LOCAL_MULTICAST)),
  celMethod("isGlobalUnicast", STRING, [], BOOL, isOutside(NOT_GLOBAL)),
  celFunc("isCIDR", [STRING], BOOL, succeeds(parseNetwork)),
  celFunc("cidr", [STRING], STRING, (text) => {
    const { address, prefix } = parseNetwork(text);
    return `${formatAddress(address)}/${prefix}`;
  }),
  compare("containsIP", BOOL, (network, address) => contains(parseNetwork(network), single(parseAddress(address)))),
  compare("containsCIDR", BOOL, (network, other) => contains(parseNetwork(network), parseNetwork(other))),
  method("prefixLength", INT, (text) => BigInt(parseNetwork(text).prefix)),
  method("masked", STRING, (text) => {
    const { address, prefix } = parseNetwork(text);
    const ignored = BigInt(address.bits - prefix);
    return `${formatAddress({ ...address, value: (address.value >> ignored) << ignored })}/${prefix}`;
  }),
  method("ip", STRING, (text) => formatAddress(parseNetwork(text).address)),
  celFunc("isURL", [STRING], BOOL, succeeds(parseUrl)),
  celFunc("url", [STRING], STRING, (text) => parseUrl(text).href),
  method("getScheme", STRING, (text) => parseUrl(text).protocol.slice(0, -1)),
  method("getHost", STRING, (text) => parseUrl(text).host),
  method("getHostname", STRING, (text) => parseUrl(text).hostname.replace(/^\[(.*)\]$/, "$1")),
  method("getPort", STRING, (text) => parseUrl(text).port),
  method("getEscapedPath", STRING, (text) => parseUrl(text).pathname),
  celMethod("getQuery", STRING, [], mapType(STRING, listType(STRING)), function () {
    return queryOf(parseUrl(this)) as never;
  }),
  celFunc("path.clean", [STRING], STRING, cleanPath),
  celFunc("isSemver", [STRING], BOOL, succeeds(parseVersion)),
  celFunc("semver", [STRING], STRING, (text) => parseVersion(text).text),
  method("major", INT, (text) => parseVersion(text).numbers[0]),
  method("minor", INT, (text) => parseVersion(text).numbers[1]),
  method("patch", INT, (text) => parseVersion(text).numbers[2]),
  compare("compareTo", INT, compareVersions),
  compare("isLessThan", BOOL, (a, b) => compareVersions(a, b) < 0n),
  compare("isGreaterThan", BOOL, (a, b) => compareVersions(a, b) > 0n),
];

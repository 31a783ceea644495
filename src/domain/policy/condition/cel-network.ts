/**
 * Functions on IP addresses, networks, URLs, paths and semantic versions, with the names of Kubernetes' CEL library
 * where it has such a function. Addresses and networks have the types `net.IP` and `net.CIDR`, as in cel-go; URLs and
 * versions are strings in canonical form. A string that two programs could interpret differently is an error, so the
 * policy denies.
 */
import { celFunc, celList, celMap, celMethod, CelScalar, listType, mapType, objectType } from "@bufbuild/cel";
import { chargeSteps } from "./cel-meter.ts";
import { CelCidr, CelIp } from "./cel-values.ts";

const { BOOL, INT, STRING } = CelScalar;

/** The types of addresses and networks. */
export const IP: ReturnType<typeof objectType> = objectType("net.IP");
export const CIDR: ReturnType<typeof objectType> = objectType("net.CIDR");

/** Maximum number of characters of an address, network or version. */
const MAX_SHORT = 256;
const MAX_URL = 8_192;

function assertLength(text: string, most: number, steps: number): string {
  if (text.length > most) throw new Error("the text is too long");
  chargeSteps(steps + (text.length >> 2));
  return text;
}

/**
 * Parses an address. Throws for leading zeros, zones and IPv4 addresses within IPv6, which programs interpret
 * differently.
 */
function parseAddress(input: string): CelIp {
  const text = assertLength(input, MAX_SHORT, 10);
  return text.includes(":") ? parseIpv6(text) : parseIpv4(text);
}

function parseIpv4(text: string): CelIp {
  if (!/^(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2})){3}$/.test(text)) throw new Error("no address");
  const bytes = text.split(".").map(Number);
  if (bytes.some((byte) => byte > 255)) throw new Error("no address");
  return new CelIp(
    32,
    bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n),
  );
}

function parseIpv6(text: string): CelIp {
  const halves = text.split("::");
  if (halves.length > 2) throw new Error("no address");
  const [head, tail] = halves.map((half) => (half === "" ? [] : half.split(":"))) as [string[], string[] | undefined];
  const missing = 8 - head.length - (tail?.length ?? 0);
  if (tail === undefined ? missing !== 0 : missing < 1) throw new Error("no address");
  const groups = tail === undefined ? head : [...head, ...Array.from({ length: missing }, () => "0"), ...tail];
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) throw new Error("no address");
  const value = groups.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
  if (value >> 32n === 0xffffn) throw new Error("an IPv4 address within IPv6");
  return new CelIp(128, value);
}

function parseNetwork(text: string): CelCidr {
  const [, address, prefix] = /^([^/]+)\/(0|[1-9][0-9]{0,2})$/.exec(assertLength(text, MAX_SHORT, 10)) ?? [];
  if (address === undefined) throw new Error("no network");
  const parsed = parseAddress(address);
  if (Number(prefix) > parsed.bits) throw new Error("no network");
  return new CelCidr(parsed, Number(prefix));
}

/** Returns true if the network contains every address whose first `prefix` bits equal those of `address`. */
function contains(network: CelCidr, { address, prefix }: CelCidr): boolean {
  if (network.address.bits !== address.bits || prefix < network.prefix) return false;
  const ignored = BigInt(address.bits - network.prefix);
  return network.address.value >> ignored === address.value >> ignored;
}

/** Returns the network with zeros after its prefix. */
function maskNetwork({ address, prefix }: CelCidr): CelCidr {
  const ignored = BigInt(address.bits - prefix);
  return new CelCidr(new CelIp(address.bits, (address.value >> ignored) << ignored), prefix);
}

const toSingleAddressNetwork = (address: CelIp): CelCidr => new CelCidr(address, address.bits);
const LOOPBACK = ["127.0.0.0/8", "::1/128"];
const LINK_LOCAL = ["169.254.0.0/16", "fe80::/10"];
const UNSPECIFIED = ["0.0.0.0/32", "::/128"];
const MULTICAST = ["224.0.0.0/4", "ff00::/8"];
const LINK_LOCAL_MULTICAST = ["224.0.0.0/24", "ff02::/16"];
const BROADCAST = ["255.255.255.255/32"];
const NOT_GLOBAL = [...UNSPECIFIED, ...LOOPBACK, ...LINK_LOCAL, ...MULTICAST, ...BROADCAST];
const PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

const isWithin =
  (networks: readonly string[]) =>
  (address: CelIp): boolean => {
    const one = toSingleAddressNetwork(address);
    return networks.some((network) => contains(parseNetwork(network), one));
  };

const isNotGlobal = isWithin(NOT_GLOBAL);

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
function parseUrl(input: string): URL {
  const text = assertLength(input, MAX_URL, 40);
  if (!/^[a-zA-Z][a-zA-Z0-9+.-]*:\/\/[!-[\]-~]+$/.test(text)) throw new Error("no absolute URL");
  return new URL(text);
}

function queryOf(url: URL): unknown {
  const values = new Map<string, string[]>();
  for (const [name, value] of url.searchParams) values.set(name, [...(values.get(name) ?? []), value]);
  return celMap(new Map([...values].map(([name, texts]) => [name, celList(texts)])) as never);
}

/** Removes `.`, empty segments, and `..` together with the preceding segment, like Go's `path.Clean`. */
function cleanPath(input: string): string {
  const text = assertLength(input, MAX_URL, 5);
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
function parseVersion(input: string): Version {
  const text = assertLength(input, MAX_SHORT, 10);
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

/** Declares a method of addresses or of networks. */
const methodOf = (type: typeof IP, name: string, args: readonly unknown[], result: unknown, call: unknown): unknown =>
  celMethod(
    name,
    type,
    args as never,
    result as never,
    function (this: unknown, ...rest: unknown[]) {
      return (call as (...operands: unknown[]) => never)(this, ...rest);
    } as never,
  );

export const NETWORK_FUNCTIONS: readonly unknown[] = [
  celFunc("isIP", [STRING], BOOL, succeeds(parseAddress)),
  celFunc("ip", [STRING], IP, parseAddress as never),
  celFunc("ip.isCanonical", [STRING], BOOL, (text) => parseAddress(text).text === text),
  celFunc("string", [IP], STRING, (({ text }: CelIp) => text) as never),
  methodOf(IP, "family", [], INT, ({ bits }: CelIp) => (bits === 32 ? 4n : 6n)),
  methodOf(IP, "isLoopback", [], BOOL, isWithin(LOOPBACK)),
  methodOf(IP, "isLinkLocalUnicast", [], BOOL, isWithin(LINK_LOCAL)),
  methodOf(IP, "isPrivate", [], BOOL, isWithin(PRIVATE)),
  methodOf(IP, "isUnspecified", [], BOOL, isWithin(UNSPECIFIED)),
  methodOf(IP, "isLinkLocalMulticast", [], BOOL, isWithin(LINK_LOCAL_MULTICAST)),
  methodOf(IP, "isGlobalUnicast", [], BOOL, (address: CelIp) => !isNotGlobal(address)),
  celFunc("isCIDR", [STRING], BOOL, succeeds(parseNetwork)),
  celFunc("cidr", [STRING], CIDR, parseNetwork as never),
  celFunc("string", [CIDR], STRING, (({ text }: CelCidr) => text) as never),
  methodOf(CIDR, "containsIP", [IP], BOOL, (network: CelCidr, address: CelIp) =>
    contains(network, toSingleAddressNetwork(address)),
  ),
  methodOf(CIDR, "containsIP", [STRING], BOOL, (network: CelCidr, address: string) =>
    contains(network, toSingleAddressNetwork(parseAddress(address))),
  ),
  methodOf(CIDR, "containsCIDR", [CIDR], BOOL, contains),
  methodOf(CIDR, "containsCIDR", [STRING], BOOL, (network: CelCidr, other: string) =>
    contains(network, parseNetwork(other)),
  ),
  methodOf(CIDR, "prefixLength", [], INT, ({ prefix }: CelCidr) => BigInt(prefix)),
  methodOf(CIDR, "masked", [], CIDR, maskNetwork),
  methodOf(CIDR, "isMask", [], BOOL, (network: CelCidr) => maskNetwork(network).text === network.text),
  methodOf(CIDR, "ip", [], IP, ({ address }: CelCidr) => address),
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

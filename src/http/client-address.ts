/** Determines the address of a client, for rate limits. */
import type { RequestInfo } from "./request-info.ts";

/**
 * Returns the address under which a client is counted: an IPv4 address, an IPv6 /64, or "unknown".
 * @param proxies the number of trusted proxies, each of which appends an entry to X-Forwarded-For. Clients can forge
 * all earlier entries
 */
export function clientAddress(request: Request, info: RequestInfo, proxies: number): string {
  let address = info.ip?.() ?? "";
  if (proxies > 0) {
    const hops = (request.headers.get("x-forwarded-for") ?? "")
      .split(",")
      .map((hop) => hop.trim())
      .filter((hop) => hop !== "");
    address = hops[Math.max(0, hops.length - proxies)] ?? address;
  }
  return networkOf(address);
}

/** Shortens IPv6 addresses to their /64 network, because one client usually has 2^64 addresses. */
function networkOf(address: string): string {
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(address);
  if (mapped !== null) return mapped[1] as string;
  if (!address.includes(":")) return address === "" || address.length > 64 ? "unknown" : address;
  const [head = "", tail] = (address.split("%")[0] as string).toLowerCase().split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const missing = Math.max(0, 8 - left.length - right.length);
  const groups = [...left, ...Array.from({ length: tail === undefined ? 0 : missing }, () => "0"), ...right];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":")}::/64`;
}

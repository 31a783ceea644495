/**
 * Where the others on the store reach this process, as it says it in the name under which it holds a lease. A configured
 * address is for everybody. Without one, processes that have the same loopback reach each other there: the same kernel
 * since the same boot, and the same network namespace of it. Only Linux tells that. The name ends in a MAC under
 * the secret that they share: whoever else writes to the database has nobody's messages sent to an address of his.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { timingSafeEqual } from "node:crypto";
import { isPeerUrl } from "../../config/peer-url.ts";
import type { Vault } from "../../contract/host.ts";
import { toHex, utf8 } from "../../domain/hash.ts";

export interface Place {
  url: string;
  /** Who can reach it there; null for everybody. */
  loopback: string | null;
}

export interface Peer extends Place {
  instance: string;
}

/** Null where this machine does not tell. */
export function loopbackHere(): string | null {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const network = /^net:\[(\d+)\]$/.exec(readlinkSync("/proc/self/ns/net"))?.[1];
    return /^[0-9a-f-]{36}$/.test(boot) && network !== undefined ? `${boot}/${network}` : null;
  } catch {
    return null;
  }
}

/** Where a process that listens at `listening` is reached on its own machine. Null where that is not by loopback. */
export function loopbackUrl(listening: string): string | null {
  const url = new URL(listening);
  const host = url.hostname;
  if (host === "0.0.0.0" || host === "localhost" || host.startsWith("127."))
    return `http://127.0.0.1:${url.port || 80}`;
  return host === "[::]" || host === "[::1]" ? `http://[::1]:${url.port || 80}` : null;
}

/** @param configured `server.peer_url` */
export function placeOf(configured: string, listening: string, here: string | null): Place | null {
  if (configured === "off") return null;
  // Where many are started alike, each has the name that the others find it by.
  if (configured !== "auto")
    return { url: configured.replace("{hostname}", () => hostname()).replace(/\/+$/, ""), loopback: null };
  const url = loopbackUrl(listening);
  return url === null || here === null ? null : { url, loopback: here };
}

/** @param vault bound to the log */
export function holderOf(instance: string, { url, loopback }: Place, vault: Pick<Vault, "mac">): string {
  const place = [instance, url, loopback ?? "*"];
  return [...place, macOf(place, vault)].join(" ");
}

const macOf = (place: readonly string[], vault: Pick<Vault, "mac">): string =>
  toHex(vault.mac("peer-place", utf8(place.join("\n"))));

/** Null for a name that no process with this secret and log has written, and for one who is not reached from here. */
export function peerOf(holder: string, here: string | null, vault: Pick<Vault, "mac">): Peer | null {
  const [instance, url, loopback, mac, ...rest] = holder.split(" ");
  if (instance === undefined || url === undefined || loopback === undefined || mac === undefined) return null;
  if (rest.length > 0 || !/^[0-9a-f]{64}$/.test(mac)) return null;
  if (!timingSafeEqual(utf8(mac), utf8(macOf([instance, url, loopback], vault)))) return null;
  if (!isPeerUrl(url) || (loopback !== "*" && loopback !== here)) return null;
  return { instance, url, loopback: loopback === "*" ? null : loopback };
}

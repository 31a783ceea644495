/**
 * Which process leads: the one that holds a lease, which the database times. Nothing is safe because of it: who leads
 * takes the ledger's lock like everybody. Two that both lead take turns, and one that leads no more does its work twice
 * as slowly and not twice.
 */
import type { Logger, Vault } from "../../contract/host.ts";
import type { Storage } from "../../contract/storage.ts";
import { PROCESS_PREFIX, PROCESS_TERM } from "../processes.ts";
import { holderOf, peerOf, type Peer, type Place } from "./place.ts";

export const LEASE = "sequencer";
/** How long a leader that is gone is missed. Milliseconds. */
const TERM = 4_000;
const EVERY = 1_300;
/** The same while nobody else is there. */
const ALONE = 5_000;

export interface Election {
  leader(): Peer | "me" | null;
  /** Why there is none, in words. */
  why(): string;
  start(): void;
  /** Lets another lead at once. */
  stop(): Promise<void>;
}

export interface ElectionOptions {
  storage: Pick<Storage, "lease" | "leases" | "release">;
  instance: string;
  place: Place;
  /** Bound to the log. */
  vault: Pick<Vault, "mac">;
  /** Why this process must not lead, nor be led, in words. */
  unfit(): string | null;
  /** This machine's loopback, by which a peer without an address is reached. */
  here: string | null;
  log: Logger;
}

export function createElection(options: ElectionOptions): Election {
  const { storage, instance, vault, here, log } = options;
  const holder = holderOf(instance, options.place, vault);
  let leader: Peer | "me" | null = null;
  let why = "nobody leads yet";
  let timer: ReturnType<typeof setTimeout> | null = null;
  let looking: Promise<void> | null = null;
  let stopped = false;

  /** Answers after how long to look again. */
  async function look(): Promise<number> {
    const unfit = options.unfit();
    if (unfit !== null) {
      if (leader === "me") await storage.release(LEASE, holder);
      lead(null, unfit);
      return EVERY;
    }
    const held = await storage.leases(PROCESS_TERM);
    const others = held.some(({ name, holder: by }) => name.startsWith(PROCESS_PREFIX) && by !== instance);
    if (!others) {
      if (leader === "me") await storage.release(LEASE, holder);
      lead(null, "this process has the store to itself");
      return ALONE;
    }
    const leads = held.find(({ name }) => name === LEASE)?.holder ?? holder;
    if (leads !== holder) {
      const peer = peerOf(leads, here, vault);
      lead(
        peer,
        peer === null
          ? "the process that leads has no address that reaches it from here, or another secret or log"
          : "",
      );
    } else if (!stopped && (await storage.lease(LEASE, holder, TERM))) lead("me", "");
    else lead(null, "another process is about to lead");
    return leader === null && leads === holder ? 0 : EVERY;
  }

  function lead(next: Peer | "me" | null, because: string): void {
    const named = (one: Peer | "me" | null): string | null => (one === null || one === "me" ? one : one.instance);
    if (named(next) !== named(leader))
      log.info("who does the ledger's work for all has changed", {
        leads: next === null ? "nobody" : next === "me" ? "this process" : next.instance,
        ...(because === "" ? {} : { why: because }),
      });
    leader = next;
    why = because;
  }

  function plan(ms: number): void {
    if (stopped) return;
    timer = setTimeout(() => {
      looking = look()
        .catch((error: unknown) => {
          lead(null, "the store does not tell who leads");
          log.debug("who leads could not be found out", { error: String(error) });
          return EVERY;
        })
        .then((wait) => plan(Math.max(wait, 100)));
    }, ms);
    timer.unref?.();
  }

  return {
    leader: () => leader,
    why: () => why,
    start: () => plan(0),
    async stop() {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      await looking;
      leader = null;
      why = "the service is stopping";
      await storage.release(LEASE, holder).catch(() => undefined);
    },
  };
}

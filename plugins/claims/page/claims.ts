/** The claims that the console displays, updated by the ledger's events. */
import { type Api, followLiveEvents, request, serviceNow, useEffect, useState } from "../../console/app/kit.ts";

export type Claim = Api["GET /v1/claims"]["response"]["claims"][number];

/** Events that arrive within this time cause one read. Milliseconds. */
const COLLECT_MS = 200;
/** Interval after which ended claims disappear, and poll interval if the event stream is refused. Milliseconds. */
const POLL_MS = 5000;

let claims: ReadonlyMap<string, Claim> = new Map();
const watchers = new Set<() => void>();
let following: AbortController | null = null;

/** Reads the claims again, after a change. */
export async function readClaims(signal?: AbortSignal): Promise<void> {
  const read = await request("GET /v1/claims", { query: { limit: 1000 }, signal });
  claims = new Map(read.claims.map((claim) => [claim.action_id, claim]));
  for (const watcher of watchers) watcher();
}

/** Returns the claim of an action; null if there is none. All components share one list. */
export function useClaim(actionId: string): Claim | null {
  const [, redraw] = useState(0);
  useEffect(() => {
    const watcher = (): void => redraw((n) => n + 1);
    watchers.add(watcher);
    following ??= follow();
    return () => {
      watchers.delete(watcher);
      if (watchers.size > 0) return;
      following?.abort();
      following = null;
    };
  }, []);
  const claim = claims.get(actionId);
  return claim === undefined || Date.parse(claim.until) <= serviceNow() ? null : claim;
}

function follow(): AbortController {
  const controller = new AbortController();
  const { signal } = controller;
  let soon: ReturnType<typeof setTimeout> | undefined;
  let isRefused = false;
  // Ignore failures: claims are only informative, and other parts of the page report an unreachable service.
  const read = (): void => void readClaims(signal).catch(() => undefined);
  const readSoon = (): void => {
    soon ??= setTimeout(() => {
      soon = undefined;
      read();
    }, COLLECT_MS);
  };
  const timer = setInterval(() => {
    if (isRefused) read();
    else for (const watcher of watchers) watcher();
  }, POLL_MS);
  read();
  followLiveEvents({
    filters: { type: "claims:change,approval" },
    signal,
    onEvent({ type, entry }) {
      // Most votes are on requests without a claim. They change no claim, and a busy queue has many of them.
      if (type !== "approval" || claims.has(entry["action_id"] as string)) readSoon();
    },
    onState(state) {
      isRefused = state === "refused";
      // The stream does not deliver events from before its start.
      if (state === "live") readSoon();
    },
  });
  signal.addEventListener("abort", () => {
    clearInterval(timer);
    clearTimeout(soon);
  });
  return controller;
}

/** Polls whether the service can decide. */
import { useEffect, useState } from "preact/hooks";
import { serviceNow, checkReachability } from "../core/api.ts";
import { TEXTS } from "./strings.ts";

/** Poll interval, which is also the timeout. Milliseconds. */
export const POLL_MS = 5000;

export interface ReadinessCheck {
  ok: boolean;
  detail: string;
  /** Other values that the check reports, keyed by name. The page displays the numbers. */
  [figure: string]: unknown;
}

/**
 * The latest revision that a policy source offered, and the revision that is applied. The commits are null if the
 * source is not a repository.
 */
export interface OfferedPolicies {
  source: string;
  commit: string | null;
  taken: boolean;
  applied_commit: string | null;
  baseline: boolean;
  unread_since: string | null;
}

interface PolicyCheck extends ReadinessCheck {
  policy_set: string | null;
  offers: OfferedPolicies[];
  stale_since: string | null;
  faults: { file: string; line: number | null }[];
}

/** Response of `GET /readyz`. The OpenAPI document has no type for it, because 200 and 503 have the same body. */
export type ReadinessReport = { ready: boolean; policies: PolicyCheck } & Record<string, ReadinessCheck | boolean>;

interface Readiness {
  ready: ReadinessReport | null;
  error: Error | null;
  /** Time of the response. */
  at: string | null;
}

/** Reads whether the service can decide. A 503 is also a valid response: it reports what is missing. */
export async function readReadiness(signal: AbortSignal): Promise<ReadinessReport> {
  const response = await fetch("/readyz", { cache: "no-store", credentials: "omit", signal });
  if (response.status !== 200 && response.status !== 503) throw new Error(`/readyz responds with ${response.status}`);
  return (await response.json()) as ReadinessReport;
}

export function useReadiness(): Readiness {
  const [state, setState] = useState<Readiness>({ ready: null, error: null, at: null });
  useEffect(() => {
    const over = new AbortController();
    const check = async (): Promise<void> => {
      try {
        const signal = AbortSignal.any([over.signal, AbortSignal.timeout(POLL_MS)]);
        const ready = await readReadiness(signal);
        setState({ ready, error: null, at: new Date(serviceNow()).toISOString() });
      } catch {
        if (over.signal.aborted) return;
        void checkReachability();
        setState((old) => ({ ...old, error: new Error(TEXTS.unreachable) }));
      }
    };
    void check();
    const timer = setInterval(() => void check(), POLL_MS);
    return () => {
      clearInterval(timer);
      over.abort();
    };
  }, []);
  return state;
}

/** Returns the checks with their names, in the service's order. */
export function listChecks(ready: ReadinessReport): [string, ReadinessCheck][] {
  return Object.entries(ready).filter((entry): entry is [string, ReadinessCheck] => typeof entry[1] === "object");
}

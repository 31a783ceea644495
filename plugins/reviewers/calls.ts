/** Calls machine reviewers, with a timeout per call. Limits the number of calls that still run after their timeout. */
import { clipText, REVIEW_ANSWERS, type ReviewFault } from "../../src/core.ts";
import type { ReviewAnswer, Reviewer, ReviewRequest } from "../../src/plugin.ts";

/**
 * Maximum number of calls of one reviewer that timed out and are still running. The reviewer is not called again until
 * one of them ends.
 */
const MAX_HANGING = 20;
/** Default and maximum timeout of one call. Milliseconds. */
const DEFAULT_TIMEOUT_MS = 15_000;
const MAX_TIMEOUT_MS = 45_000;

/** How a call ended. */
export interface ReviewOutcome {
  answer: ReviewAnswer | null;
  fault: ReviewFault | null;
  reason: string | null;
  version: string | null;
  latencyMs: number;
  /** The error message, for the service's log. */
  error: string | null;
}

interface ReviewCalls {
  /** Calls the reviewer once. Never rejects: a late or invalid answer is an outcome with a fault. */
  call(reviewer: Reviewer | null, request: ReviewRequest, stopping: AbortSignal): Promise<ReviewOutcome>;
}

export function createReviewCalls(): ReviewCalls {
  const hanging = new Map<string, number>();

  return {
    async call(reviewer, request, stopping) {
      const started = performance.now();
      const outcome = (fields: Partial<ReviewOutcome>): ReviewOutcome => ({
        answer: null,
        fault: null,
        reason: null,
        version: reviewer?.version ?? null,
        error: null,
        ...fields,
        latencyMs: Math.round(performance.now() - started),
      });
      if (reviewer === null) return outcome({ fault: "not_configured" });
      if ((hanging.get(reviewer.name) ?? 0) >= MAX_HANGING)
        return outcome({ fault: "error", error: `${MAX_HANGING} earlier calls of the reviewer have not ended` });
      const timeoutMs = Math.min(reviewer.timeoutMs ?? DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS);
      const aborter = new AbortController();
      const stop = (): void => aborter.abort(new Error("the service is stopping"));
      stopping.addEventListener("abort", stop, { once: true });
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        aborter.abort(new Error(`the reviewer did not answer within ${timeoutMs / 1000} s`));
      }, timeoutMs);
      // Async, so that a synchronous throw becomes a rejection.
      const calling = (async () => reviewer.review(request, aborter.signal))();
      let ended = false;
      const done = calling.then(
        () => void (ended = true),
        () => void (ended = true),
      );
      try {
        const parsed = parseReviewAnswer(await Promise.race([calling, whenAborted(aborter.signal)]));
        if (parsed === null)
          return outcome({ fault: "malformed", error: "the answer does not have the form that the contract requires" });
        const { answer, reason, version } = parsed;
        return outcome({ answer, reason, ...(version === null ? {} : { version }) });
      } catch (error) {
        return outcome({ fault: isLate ? "timeout" : "error", error: String(error) });
      } finally {
        clearTimeout(timer);
        stopping.removeEventListener("abort", stop);
        if (!ended) {
          hanging.set(reviewer.name, (hanging.get(reviewer.name) ?? 0) + 1);
          void done.then(() => hanging.set(reviewer.name, (hanging.get(reviewer.name) ?? 1) - 1));
        }
      }
    },
  };
}

function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
  );
}

const MAX_VERSION = 100;

/** A valid answer of a reviewer. */
interface ParsedAnswer {
  answer: (typeof REVIEW_ANSWERS)[number];
  reason: string | null;
  version: string | null;
}

/**
 * Parses the answer of a reviewer. Returns null unless it is an object with a known `answer`, and with no other members
 * except the strings `reason` and `version`. Anything else could be misread as an approval.
 * @example parseReviewAnswer({ answer: "deny", reason: "sends customer data outside" })
 */
export function parseReviewAnswer(value: unknown): ParsedAnswer | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const { answer, reason = null, version = null, ...others } = value as Record<string, unknown>;
  if (Object.keys(others).length > 0 || !isText(reason) || !isText(version)) return null;
  const knownAnswer = REVIEW_ANSWERS.find((each) => each === answer);
  if (knownAnswer === undefined) return null;
  return { answer: knownAnswer, reason, version: version === null ? null : clipText(version, MAX_VERSION) };
}

const isText = (value: unknown): value is string | null => value === null || typeof value === "string";

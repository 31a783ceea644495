/**
 * Errors of the client. Each class requires a different reaction: retry, replace the key, or change the request. An
 * aborted call throws its signal's reason instead.
 */

/** An RFC 9457 problem document from the service; empty if the response was not a problem document. */
export interface Problem {
  type?: string;
  title?: string;
  status?: number;
  detail?: string;
  code?: string;
  request_id?: string;
  errors?: { pointer?: string; parameter?: string; detail: string }[];
}

interface Facts {
  /** HTTP status; 0 if there was no response. */
  status: number;
  /**
   * A code of docs/errors.md, UNKNOWN if the response has no code, or a code of the client: UNREACHABLE, TIMEOUT,
   * UNREADABLE_ANSWER or NO_TOKEN.
   */
  code: string;
  /** Seconds from Retry-After; null if the response has no valid Retry-After, or if there was no response. */
  retryAfter?: number | null;
  problem?: Problem;
  cause?: unknown;
}

/** Base class of the errors of API calls. If submitting or starting an action fails, the action must not run. */
export abstract class AssentError extends Error {
  readonly status: number;
  readonly code: string;
  readonly retryAfter: number | null;
  readonly problem: Problem;

  constructor(message: string, { status, code, retryAfter = null, problem = {}, cause }: Facts) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
    this.problem = problem;
  }
}

/**
 * Thrown if there is no usable response: no response, a timeout, an unreadable response, 429 or 5xx. A retry can
 * succeed. The service may have carried out the call although the response is missing.
 */
export class ServiceUnavailable extends AssentError {}

/** Thrown if the API key is missing, invalid or not authorized: 401, and 403 if the key is the reason. */
export class Unauthorized extends AssentError {}

/**
 * Thrown if the service rejected the request: every other 4xx. A retry usually gets the same response. The client also
 * throws it for a missing approval token (`NO_TOKEN`) and for a key without an agent (`AGENT_UNBOUND`).
 */
export class RequestRefused extends AssentError {}

/** Thrown if a proof cannot be verified with the log's pinned key. */
export class ProofInvalid extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(`not proven: ${message}`, options);
    this.name = "ProofInvalid";
  }
}

const ABOUT_THE_KEY = new Set(["INSUFFICIENT_SCOPE", "AGENT_MISMATCH", "AGENT_UNBOUND"]);

export function errorFromResponse(status: number, problem: Problem, retryAfter: number | null): AssentError {
  const code = typeof problem.code === "string" ? problem.code : "UNKNOWN";
  const message = typeof problem.detail === "string" ? problem.detail : `the service responded with status ${status}`;
  const facts = { status, code, retryAfter, problem };
  if (status === 429 || status >= 500) return new ServiceUnavailable(message, facts);
  if (status === 401 || (status === 403 && ABOUT_THE_KEY.has(code))) return new Unauthorized(message, facts);
  if (status >= 400) return new RequestRefused(message, facts);
  return unreadableResponse(status, "its status is neither a success nor an error");
}

export function unreadableResponse(status: number, reason: string): ServiceUnavailable {
  return new ServiceUnavailable(
    `the response (status ${status}) is not from Assent: ${reason}; check the service's URL`,
    {
      status,
      code: "UNREADABLE_ANSWER",
    },
  );
}

export function timeoutError(message: string): ServiceUnavailable {
  return new ServiceUnavailable(message, { status: 0, code: "TIMEOUT" });
}

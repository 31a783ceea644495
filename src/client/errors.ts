/** What the client throws, by what a caller can do about it. An aborted call throws its signal's reason instead. */

/** An RFC 9457 problem document as the service sends it; empty when the answer was none. */
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
  /** HTTP status; 0 when there was no answer. */
  status: number;
  /** Of docs/errors.md, or UNREACHABLE, TIMEOUT, UNREADABLE_ANSWER, which the client gives itself. */
  code: string;
  /** Seconds after which the service would like to be asked again; null when it said nothing. */
  retryAfter?: number | null;
  problem?: Problem;
  cause?: unknown;
}

/** Every failure of a call. Nothing may run because of one, whatever it says. */
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
 * The service could not say: no answer, none in time, one that cannot be read, 429 or 5xx. The same call may do better
 * later. It may also have been carried out: only its answer is missing.
 */
export class ServiceUnavailable extends AssentError {}

/** The API key is missing, not valid, or may not do this: 401, and 403 where the key is the reason. */
export class Unauthorized extends AssentError {}

/** The service read the request and said no: every other 4xx. The same call gets the same answer. */
export class RequestRefused extends AssentError {}

/** What the service says is not what the log's pinned key signed. */
export class ProofInvalid extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(`not proven: ${message}`, options);
    this.name = "ProofInvalid";
  }
}

const ABOUT_THE_KEY = new Set(["INSUFFICIENT_SCOPE", "AGENT_MISMATCH", "AGENT_UNBOUND"]);

export function errorFromResponse(status: number, problem: Problem, retryAfter: number | null): AssentError {
  const code = typeof problem.code === "string" ? problem.code : "UNKNOWN";
  const message = typeof problem.detail === "string" ? problem.detail : `the service answered ${status}`;
  const facts = { status, code, retryAfter, problem };
  if (status === 429 || status >= 500) return new ServiceUnavailable(message, facts);
  if (status === 401 || (status === 403 && ABOUT_THE_KEY.has(code))) return new Unauthorized(message, facts);
  if (status >= 400) return new RequestRefused(message, facts);
  return unreadableAnswer(status, "it is neither a success nor a refusal");
}

export function unreadableAnswer(status: number, why: string): ServiceUnavailable {
  return new ServiceUnavailable(
    `the answer (${status}) cannot be read as the service's: ${why}; does something else answer at this address?`,
    { status, code: "UNREADABLE_ANSWER" },
  );
}

export function timeoutError(message: string): ServiceUnavailable {
  return new ServiceUnavailable(message, { status: 0, code: "TIMEOUT" });
}

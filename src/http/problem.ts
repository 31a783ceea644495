/** RFC 9457 problem details: what a refusal and a fault look like on the wire. */
import { ERRORS, Refusal, type ErrorCode, type FieldError } from "../contract/errors.ts";
import type { Logger } from "../contract/host.ts";
import { StorageError } from "../contract/storage.ts";

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: ErrorCode;
  request_id: string;
  errors?: FieldError[];
}

export interface ProblemAnswer {
  status: number;
  body: Problem;
  headers: Record<string, string>;
}

/** A fault is written to the log whole and said to the client only by its code. */
export function problemOf(error: unknown, requestId: string, log: Logger): ProblemAnswer {
  if (error instanceof Refusal) return answer(error.code, error.message, requestId, error.errors, error.headers);
  if (error instanceof StorageError && error.kind !== "invalid") {
    log.error("the store failed a request", { request_id: requestId, kind: error.kind, error: error.message });
    return answer("STORAGE_UNAVAILABLE", "nothing was answered because nothing could be recorded; send the request again, with the same Idempotency-Key if it had one", requestId, [], { "Retry-After": "1" });
  }
  log.error("a request failed", { request_id: requestId, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  return answer("INTERNAL", "the fault is in the service's log under this request id", requestId, [], {});
}

function answer(code: ErrorCode, detail: string, requestId: string, errors: FieldError[], headers: Record<string, string>): ProblemAnswer {
  const [status, title] = ERRORS[code];
  const body: Problem = { type: `/docs/errors#${code.toLowerCase().replaceAll("_", "-")}`, title, status, detail, code, request_id: requestId };
  if (errors.length > 0) body.errors = errors;
  return { status, body, headers };
}

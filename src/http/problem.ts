/** Renders errors as RFC 9457 problem details. */
import { ERRORS, resolveErrorKind, Refusal, type ErrorKind, type FieldError } from "../contract/errors.ts";
import type { Logger } from "../contract/host.ts";
import { StorageError } from "../contract/storage.ts";

interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  request_id: string;
  errors?: FieldError[];
}

interface ProblemResponse {
  status: number;
  body: Problem;
  headers: Record<string, string>;
}

/**
 * Renders an error. Logs an internal error in full; the client gets only its code.
 * @param declared the error codes of plugins; any other unknown code is an internal error
 */
export function toProblem(
  error: unknown,
  requestId: string,
  log: Logger,
  declared: ReadonlySet<string>,
): ProblemResponse {
  if (error instanceof Refusal && (Object.hasOwn(ERRORS, error.code) || declared.has(error.code)))
    return answer(error.kind, error.message, requestId, error.errors, error.headers);
  if (error instanceof StorageError && error.kind !== "invalid") {
    log.error("the store failed a request", { request_id: requestId, kind: error.kind, error: error.message });
    return answer(
      resolveErrorKind("STORAGE_UNAVAILABLE"),
      "the store is unavailable, and the request might have been recorded; send it again, with the same Idempotency-Key if it had one",
      requestId,
      [],
      { "Retry-After": "1" },
    );
  }
  log.error("a request failed", {
    request_id: requestId,
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  return answer(
    resolveErrorKind("INTERNAL"),
    "an internal error occurred; the service logged it with this request id",
    requestId,
    [],
    {},
  );
}

function answer(
  { code, status, title }: ErrorKind,
  detail: string,
  requestId: string,
  errors: FieldError[],
  headers: Record<string, string>,
): ProblemResponse {
  const body: Problem = {
    type: `/docs/errors#${code.toLowerCase().replaceAll("_", "-")}`,
    title,
    status,
    detail,
    code,
    request_id: requestId,
  };
  if (errors.length > 0) body.errors = errors;
  return { status, body, headers };
}

/**
 * All error codes of the API. Codes are stable, because clients match on them. `docs/errors.md` contains the same
 * table; a test compares the two.
 */
export const ERRORS = {
  // requests and credentials
  MALFORMED_JSON: [400, "The body is not valid JSON"],
  INVALID_UTF8: [400, "The body is not valid UTF-8"],
  DUPLICATE_KEY: [400, "An object has a duplicate key"],
  LONE_SURROGATE: [400, "A string contains a lone surrogate"],
  UNSAFE_INTEGER: [400, "A number cannot be represented exactly"],
  TOO_DEEP: [400, "The body is nested too deeply"],
  TOO_MANY_VALUES: [400, "The body has too many values"],
  BAD_REQUEST: [400, "The request is malformed"],
  MISSING_CREDENTIAL: [401, "No API key was sent"],
  INVALID_CREDENTIAL: [401, "The API key is not valid"],
  KEY_ALTERED: [409, "The stored API key does not match the ledger"],
  STORE_ALTERED: [409, "A row in the store was changed outside the service"],
  INSUFFICIENT_SCOPE: [403, "The API key lacks a required scope"],
  RIGHTS_CHANGED: [409, "The rights of the caller changed during the request"],
  AGENT_MISMATCH: [403, "The API key is bound to an agent that cannot make this request"],
  AGENT_UNBOUND: [403, "The API key is not bound to an agent"],
  INVALID_SESSION_TOKEN: [403, "The session token is not valid"],
  NOT_FOUND: [404, "No such route"],
  METHOD_NOT_ALLOWED: [405, "The route does not support this method"],
  NOT_ACCEPTABLE: [406, "None of the accepted media types is available"],
  PRECONDITION_FAILED: [412, "The resource has changed since it was read"],
  BODY_TOO_LARGE: [413, "The body is too large"],
  UNSUPPORTED_MEDIA_TYPE: [415, "The content type is not supported"],
  VALIDATION_FAILED: [422, "The request is not valid"],
  INVALID_CURSOR: [422, "The cursor is not valid"],
  RATE_LIMITED: [429, "Too many requests"],
  TOO_MANY_BAD_KEYS: [429, "Too many invalid API keys"],
  TOO_MANY_BYTES: [429, "Too many response bytes are in flight"],
  TOO_MANY_PENDING: [429, "Too many actions are pending approval"],
  TOO_MANY_STREAMS: [429, "Too many open event streams"],
  TOO_MANY_WAITS: [429, "Too many requests are waiting for an action"],
  TOO_MANY_BACKTESTS: [429, "Too many concurrent backtests"],
  TOO_MANY_TRIALS: [429, "Too many policies are being compiled or tested"],

  // actions and approvals
  ACTION_NOT_FOUND: [404, "No such action"],
  ACTION_NOT_PENDING: [409, "The action is not pending approval"],
  REJECTION_NOT_HELD: [409, "No rejection of the action is in force"],
  ACTION_NOT_STARTABLE: [409, "The action cannot be started"],
  NO_LONGER_ALLOWED: [409, "The action is no longer allowed"],
  MORE_APPROVALS_NEEDED: [409, "The action now needs more approvals"],
  FACTS_CHANGED: [409, "Pinned facts of the action have changed"],
  START_EXPIRED: [410, "The time to start the action has passed"],
  REQUEST_EDITED: [409, "An approver or a policy changed the request"],
  ACTION_NOT_STARTED: [409, "The action has not started"],
  OUTCOME_NOT_UNKNOWN: [409, "The outcome of the action is not unknown"],
  ACTION_ERASED: [410, "The action was erased"],
  RECORD_ALTERED: [409, "The stored action does not match the ledger"],
  IDEMPOTENCY_CONFLICT: [409, "The idempotency key was used with another body"],
  ALREADY_VOTED: [409, "This approver has already voted"],
  SELF_APPROVAL: [403, "The submitter cannot approve the action"],
  VOTE_SIGNATURE_REQUIRED: [403, "The vote needs a passkey's signature"],
  VOTE_SIGNATURE_INVALID: [403, "The signature of the votes is not valid"],
  APPROVER_NOT_ELIGIBLE: [403, "This approver's vote would not count"],
  TOKEN_MALFORMED: [403, "The approval token is malformed"],
  TOKEN_INVALID: [403, "The approval token is not valid"],
  TOKEN_OTHER_ACTION: [403, "The approval token belongs to another action"],
  TOKEN_OTHER_APPROVER: [403, "The approval token belongs to another approver"],
  APPROVAL_EXPIRED: [410, "The time to approve has passed"],
  APPROVAL_NOT_WITHDRAWN: [409, "The approval cannot be withdrawn"],
  PERMIT_INVALID: [403, "The permit is not valid for this action"],
  PERMIT_EXPIRED: [410, "The permit has expired"],
  PERMIT_REQUIRED: [403, "Starting this action requires a permit"],
  TOO_MANY_PERMITS: [409, "The action has reached its limit of permits"],
  CREDENTIAL_NOT_ISSUED: [502, "No credential could be issued for the action"],
  NOT_THE_EXECUTOR: [403, "Another key or attempt started this action"],
  NOT_THE_SUBMITTER: [403, "Another key submitted this action"],

  // keys, policies, ledger, replay
  KEY_NOT_FOUND: [404, "No such API key"],
  KEY_NAME_TAKEN: [409, "A live API key already has this name"],
  LAST_ADMIN_KEY: [409, "This is the last admin key without an expiry"],
  SCOPE_ESCALATION: [403, "A key cannot grant scopes that it does not have"],
  POLICY_NOT_FOUND: [404, "No such policy"],
  POLICY_VERSION_NOT_FOUND: [404, "No such version of the policy"],
  POLICY_NAME_TAKEN: [409, "A policy already has this name"],
  POLICY_MANAGED: [409, "A policy source manages this policy"],
  SIGNATURE_INVALID: [403, "The webhook signature is not valid"],
  POLICY_INVALID: [422, "The policy does not compile"],
  TRIAL_TOO_LONG: [422, "Compiling or testing the policies took too long"],
  AGENT_NOT_FOUND: [404, "No such agent"],
  AGENT_ID_TAKEN: [409, "An agent with this id is already registered"],
  DELIVERY_NOT_FOUND: [404, "No such delivery"],
  DELIVERY_NOT_DEAD: [409, "The delivery cannot be retried"],
  ENTRY_NOT_FOUND: [404, "No ledger entry has this hash"],
  TILE_NOT_FOUND: [404, "The log has no such tile"],
  INVALID_RANGE: [422, "The range is not valid"],
  NOT_REPLAYABLE: [409, "This entry is not a decision"],

  // faults
  INTERNAL: [500, "Internal error"],
  FACTS_UNAVAILABLE: [503, "A fact source did not answer"],
  STORAGE_UNAVAILABLE: [503, "The store is unavailable"],
  OVERLOADED: [503, "The service is overloaded"],
  PERMIT_KEY_RETIRED: [503, "This process has a retired permit key"],
  TRIAL_LOST: [503, "The thread that tests policies failed"],
  NOT_READY: [503, "The service is not ready"],
  SHUTTING_DOWN: [503, "The service is shutting down"],
} as const satisfies Record<string, readonly [status: number, title: string]>;

export type ErrorCode = keyof typeof ERRORS;

/** An error code with its status and title, from the table above or from a plugin. */
export interface ErrorKind {
  readonly code: string;
  /** HTTP status from 400 to 599. */
  readonly status: number;
  readonly title: string;
}

export function resolveErrorKind(error: ErrorCode | ErrorKind): ErrorKind {
  if (typeof error !== "string") return error;
  const [status, title] = ERRORS[error];
  return { code: error, status, title };
}

/**
 * Defines one error of a feature whose codes have no prefix. Unlike `defineErrors`, it keeps the code in the type.
 * @example
 * const ERRORS = { full: errorKind("NOTEBOOK_FULL", 409, "No room for another note") };
 */
export function errorKind<const Code extends string>(
  code: Code,
  status: number,
  title: string,
): ErrorKind & { readonly code: Code } {
  return { code, status, title };
}

/** Returns the prefix of a plugin's error codes, such as `MY_PLUGIN_` for `my-plugin`. */
export function errorCodePrefix(plugin: string): string {
  return `${plugin.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}_`;
}

/**
 * Defines a plugin's own errors. To return such an error, add it to the route's `errors` and throw a `Refusal` with it.
 * @example
 * const errors = defineErrors("notes", { FULL: [409, "No room for another note"] });
 * throw new Refusal(errors.FULL, "the action has 50 notes; remove one first"); // code NOTES_FULL
 */
export function defineErrors<const Name extends string>(
  plugin: string,
  errors: Readonly<Record<Name, readonly [status: number, title: string]>>,
): { readonly [Each in Name]: ErrorKind } {
  const prefix = errorCodePrefix(plugin);
  const kinds = Object.entries<readonly [number, string]>(errors).map(([name, [status, title]]) => [
    name,
    { code: `${prefix}${name}`, status, title },
  ]);
  return Object.fromEntries(kinds) as { [Each in Name]: ErrorKind };
}

/**
 * One fault in a body, a query or a path. `pointer` is an RFC 6901 JSON pointer into the body; `parameter` is the name
 * of a query or path parameter or of a header.
 */
export interface FieldError {
  pointer?: string;
  parameter?: string;
  detail: string;
  /** Line of the fault in a body that is not JSON (YAML), starting at 1. */
  line?: number;
  column?: number;
}

/** A deliberate error response. The core returns it as problem+json; any other error becomes a 500 or 503. */
export class Refusal extends Error {
  readonly kind: ErrorKind;
  readonly errors: FieldError[];
  readonly headers: Record<string, string>;

  /** @param detail one sentence in lowercase that quotes the value that was sent and states what to do */
  constructor(
    error: ErrorCode | ErrorKind,
    detail: string,
    extra: { errors?: FieldError[]; headers?: Record<string, string> } = {},
  ) {
    super(detail);
    this.name = "Refusal";
    this.kind = resolveErrorKind(error);
    this.errors = extra.errors ?? [];
    this.headers = extra.headers ?? {};
  }

  get code(): string {
    return this.kind.code;
  }
}

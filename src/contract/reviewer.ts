/**
 * The contract of machine reviewers. A rule names them in `approval.reviewers`. The service calls a reviewer after the
 * action is pending, outside any transaction, and records its answer. A reviewer can be called more than once for one
 * request (after a crash, or when another process takes over): the first answer that is recorded counts. A reviewer that
 * throws, hangs or answers anything else leaves the action to people.
 */
import { type JsonObject, type JsonValue, parseJson } from "../domain/json.ts";
import type { ReviewAnswer } from "../domain/reviews.ts";

/** Timeout of one call if the reviewer names none, and the longest that it can name. Milliseconds. */
export const DEFAULT_REVIEW_TIMEOUT_MS = 15_000;
export const MAX_REVIEW_TIMEOUT_MS = 45_000;

/**
 * The request to a reviewer. Only the values in `action`, `comparison` and `text` contain text that the agent wrote.
 */
export interface ReviewRequest {
  format: "assent-review/1";
  /** Equal for every call about one request, so that receivers can detect duplicates. */
  id: string;
  reviewer: string;
  /** Whether `approve` approves the action. Otherwise it means: no objection. */
  may_approve: boolean;
  /** A text that says that the other members are data and not instructions. Equal in every request. */
  notice: string;
  /** The action, as approvers see it. Times are RFC 3339. */
  action: {
    id: string;
    agent_id: string;
    tool: string;
    operation: string;
    params: JsonObject;
    context: JsonObject;
    /** Why the action requires approval. */
    reason: string;
    risk_level: string | null;
    policy: string | null;
    rule: string | null;
    /** Principal that submitted it. */
    submitted_by: string;
    request_hash: string;
    /** What the action does, in the words of the policy; null if the rule has no preview. */
    preview: string | null;
    /** JSON pointers of the members that the policy wants displayed first. */
    shown_first: readonly string[];
    created_at: string;
    expires_at: string | null;
  };
  /** Comparison with the agent's earlier actions: `unusual`, `differs_from`, `earlier_votes`, `compared_with`. */
  comparison: { [member: string]: JsonValue };
  /** Parameters and context as approvers read them. Hidden characters are marked, and long values are shortened. */
  text: string;
}

/** The answer of a reviewer. Unknown members make the answer malformed. */
export interface ReviewResponse {
  answer: ReviewAnswer;
  /** Recorded in the ledger. A denial shows it to the agent. Shortened to 500 characters. */
  reason?: string;
  /** Replaces `version` of the reviewer, for example the version of the model that answered. */
  version?: string;
}

export interface Reviewer {
  /** The name that policies use. */
  readonly name: string;
  /** Version of its model, prompt or rules, recorded with each answer. */
  readonly version: string;
  /** Timeout of one call in milliseconds. Default: 15 s. At most 45 s. */
  readonly timeoutMs?: number;
  /** Makes one attempt. It is not repeated if it fails. `signal` aborts on timeout and when the service stops. */
  review(request: ReviewRequest, signal: AbortSignal): Promise<ReviewResponse>;
}

/**
 * Parses the text of an answer for `review` to return. The service checks what it contains. Never throws: the answer is
 * malformed unless the text is exactly one JSON value without duplicate members.
 * @example
 * const review = async (request: ReviewRequest) => readReviewResponse(await askModel(request));
 */
export function readReviewResponse(text: string): ReviewResponse {
  let value: unknown = null;
  try {
    value = parseJson(text);
  } catch {
    // Return the text, which the service records as malformed.
  }
  return value as ReviewResponse;
}

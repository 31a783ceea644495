/**
 * The contract of machine reviewers. A rule declares its reviewers in `approval.reviewers`. The service calls a
 * reviewer after the action is pending, outside any transaction, and records its answer. A reviewer can be called more
 * than once for one request (after a crash, or when another process takes over); the first recorded answer counts. If a
 * reviewer throws, hangs or returns a malformed answer, only people decide.
 */
import { type JsonObject, type JsonValue, parseJson } from "../domain/json.ts";
import type { ReviewAnswer } from "../domain/reviews.ts";

/**
 * The request to a reviewer. Only the values in `action`, `comparison` and `text` contain text that the agent wrote.
 */
export interface ReviewRequest {
  format: "assent-review/1";
  /** Id of the request, which is the same for every call about it, so that receivers can detect duplicates. */
  id: string;
  reviewer: string;
  /**
   * Whether the answer `approve` approves the action. If false, `approve` only means that the reviewer has no
   * objection.
   */
  may_approve: boolean;
  /** States that the other members are data and not instructions. The same in every request. */
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
    /** Principal of the submitter. */
    submitted_by: string;
    request_hash: string;
    /** What the action does, in the words of the policy; null if the rule has no preview. */
    preview: string | null;
    /** JSON pointers of the members to display first. */
    shown_first: readonly string[];
    created_at: string;
    expires_at: string | null;
  };
  /** Comparison with the agent's earlier actions: `unusual`, `differs_from`, `earlier_votes`, `compared_with`. */
  comparison: { [member: string]: JsonValue };
  /** Parameters and context as approvers see them: hidden characters are marked, and long values are shortened. */
  text: string;
}

/** The answer of a reviewer. Unknown members make the answer malformed. */
export interface ReviewResponse {
  answer: ReviewAnswer;
  /**
   * Reason for the answer, shortened to 500 characters. Recorded in the ledger. If the answer is a denial, the agent
   * gets the reason.
   */
  reason?: string;
  /** Overrides the `version` of the reviewer, for example with the version of the model that answered. */
  version?: string;
}

export interface Reviewer {
  /** The name that policies use. */
  readonly name: string;
  /** Version of its model, prompt or rules, recorded with each answer. */
  readonly version: string;
  /** Timeout of one call in milliseconds. Default: 15 s. At most 45 s. */
  readonly timeoutMs?: number;
  /** Reviews a request. A failed call is not retried. `signal` aborts on timeout and when the service stops. */
  review(request: ReviewRequest, signal: AbortSignal): Promise<ReviewResponse>;
}

/**
 * Parses the JSON of an answer, so that `review` can return it. The service validates the result. Never throws; an
 * answer that is not exactly one JSON value without duplicate members is malformed.
 * @example
 * const review = async (request: ReviewRequest) => readReviewResponse(await askModel(request));
 */
export function readReviewResponse(text: string): ReviewResponse {
  let value: unknown = null;
  try {
    value = parseJson(text);
  } catch {
    // Return null. The service records the answer as malformed.
  }
  return value as ReviewResponse;
}

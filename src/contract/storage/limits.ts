/** Recorded uses of policy limits. */

/** One action that counted against a policy's limit. Unique by limit, subject and action. */
export interface LimitUseRow {
  policy: string;
  /** Name of the limit inside the policy. */
  limit_name: string;
  /** Value of the limit's `per`, such as the agent. */
  subject: string;
  action_id: string;
  at: number;
  /** Amount of the use in millionths, zero or more. */
  amount: number;
  /** Expiry of the use, after which it no longer counts. */
  until: number;
}

/** Selects the uses of one limit and subject since a time. */
export interface LimitSpan {
  policy: string;
  limit_name: string;
  subject: string;
  /** Inclusive start. */
  since: number;
}

export interface LimitReads {
  /** Counts the uses with `at >= since` and sums their amounts, up to 2^53 - 1. */
  limitUsed(policy: string, limitName: string, subject: string, since: number): Promise<{ count: number; sum: number }>;
  /** Like `limitUsed`, for several limits and subjects at once. Returns the results in the order of `spans`. */
  limitsUsed(spans: readonly LimitSpan[]): Promise<{ count: number; sum: number }[]>;
  /** Lists the uses with `at >= since`, newest first. */
  limitUses(span: LimitSpan, limit: number): Promise<LimitUseRow[]>;
}

export interface LimitWrites {
  insertLimitUse(row: LimitUseRow): Promise<void>;
  /** Removes all uses of an action. */
  releaseLimitUses(actionId: string): Promise<void>;
  /** Deletes up to `max` uses with `until <= now`. Resolves to the number of deleted uses. */
  pruneLimitUses(now: number, max: number): Promise<number>;
}

/** What counts against the limits of policies. */
/** One action that counted against a policy's limit. Unique by limit, subject and action. */
export interface LimitUseRow {
  policy: string;
  /** Name of the limit inside the policy. */
  limit_name: string;
  /** What it is counted for. */
  subject: string;
  action_id: string;
  at: number;
  /** Millionths; not negative. */
  amount: number;
  /** When it no longer counts. */
  until: number;
}

/** Whose uses are counted, and from when on. */
export interface LimitSpan {
  policy: string;
  limit_name: string;
  subject: string;
  /** Inclusive. */
  since: number;
}

export interface LimitReads {
  /** How many uses with `at >= since`, and the sum of their amounts, at most 2^53 - 1. */
  limitUsed(policy: string, limitName: string, subject: string, since: number): Promise<{ count: number; sum: number }>;
  /** The same for several at once, in their order. */
  limitsUsed(spans: readonly LimitSpan[]): Promise<{ count: number; sum: number }[]>;
}

export interface LimitWrites {
  insertLimitUse(row: LimitUseRow): Promise<void>;
  /** Removes what an action counted. */
  releaseLimitUses(actionId: string): Promise<void>;
  /** Removes up to `max` uses with `until <= now`. Returns how many. */
  pruneLimitUses(now: number, max: number): Promise<number>;
}

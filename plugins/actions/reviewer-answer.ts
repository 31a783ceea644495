/** The answers of reviewers, and the principals that represent them. */
import { clipText, REVIEW_ANSWERS } from "../../src/core.ts";

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
  const known = REVIEW_ANSWERS.find((each) => each === answer);
  if (known === undefined) return null;
  return { answer: known, reason, version: version === null ? null : clipText(version, MAX_VERSION) };
}

const isText = (value: unknown): value is string | null => value === null || typeof value === "string";

/** Returns the principal that represents a reviewer instead of a person, for example in an earlier rejection. */
export function principalOfReviewer(name: string): string {
  return `reviewer:${name}`;
}

/** The values of the buttons and the form with which a person votes in Slack. Slack returns them as they were sent. */

/** `action_id`s of the buttons. */
export const VOTE_ACTIONS = { approve: "vote_approve", deny: "vote_deny" } as const;
/** Slack's limit for the value of a button, in characters. */
const MAX_VALUE = 2000;
/** A link whose token votes as a person. */
const PERSONAL_LINK = /#(apl1_[\w.-]+)$/;
/** A user, whose direct messages no one else reads. */
const USER_ID = /^[UW][A-Z0-9]+$/;

/** The value of a button. */
export interface VoteButton {
  /** Slack user to whom the button was sent, who alone can use it. */
  to: string;
  /** The person's approval link, which the message contains anyway. */
  link: string;
}

/** What the form keeps until it is submitted. */
export interface VoteForm extends VoteButton {
  approve: boolean;
  /** Digest of what the form shows, which the vote names. */
  shown: string;
}

/** Returns the value of the buttons of a message; null if its link votes for no one, or its address is not a user. */
export function encodeVoteButton(to: string, link: string): string | null {
  if (!PERSONAL_LINK.test(link) || !USER_ID.test(to)) return null;
  const value = JSON.stringify({ to, link } satisfies VoteButton);
  return value.length > MAX_VALUE ? null : value;
}

/** Reads the value of a button; null if it is not one. */
export function readVoteButton(value: unknown): VoteButton | null {
  const { to, link } = parse(value);
  return typeof to === "string" && typeof link === "string" ? { to, link } : null;
}

/** Returns the token of a personal link. */
export function tokenOf({ link }: VoteButton): string {
  return PERSONAL_LINK.exec(link)?.[1] ?? "";
}

/** Reads what a form keeps; null if it is not one. */
export function readVoteForm(value: unknown): VoteForm | null {
  const { approve, shown } = parse(value);
  const button = readVoteButton(value);
  if (button === null || typeof approve !== "boolean" || typeof shown !== "string") return null;
  return { ...button, approve, shown };
}

function parse(value: unknown): Record<string, unknown> {
  try {
    const parsed = typeof value === "string" ? (JSON.parse(value) as unknown) : null;
    return typeof parsed === "object" && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The values of the buttons and of the form with which a person votes in Slack. Slack returns them unchanged. */
import { linkToken } from "../actions/api.ts";

/** `action_id`s of the two vote buttons. */
export const VOTE_ACTIONS = { approve: "vote_approve", deny: "vote_deny" } as const;
/** Slack's limit for the value of a button, in characters. */
const MAX_VALUE = 2000;
/** Matches the id of a Slack user. Buttons are sent only to users, because no one else can read a direct message. */
const USER_ID = /^[UW][A-Z0-9]+$/;

/** The value of a button. */
export interface VoteButton {
  /** Slack user to whom the button was sent. Only this user can use it. */
  to: string;
  /** The person's approval link, which the message also contains. */
  link: string;
}

/** The hidden value of a form, which Slack returns when the form is submitted. */
export interface VoteForm extends VoteButton {
  approve: boolean;
  /** Digest of what the form displays. The vote contains it. */
  shown: string;
  /** The scopes that the form offers, in CEL. */
  scopes: readonly string[];
}

/** Returns the value of a message's buttons; null if the link is not personal or the message is not for one user. */
export function encodeVoteButton(to: string, link: string): string | null {
  if (linkToken(link) === null || !USER_ID.test(to)) return null;
  const value = JSON.stringify({ to, link } satisfies VoteButton);
  return value.length > MAX_VALUE ? null : value;
}

/** Returns a button's decoded value; null if the value is malformed. */
export function readVoteButton(value: unknown): VoteButton | null {
  const { to, link } = parse(value);
  return typeof to === "string" && typeof link === "string" ? { to, link } : null;
}

/** Returns the token of a personal link. */
export function tokenOf({ link }: VoteButton): string {
  return linkToken(link) ?? "";
}

/** Returns a form's decoded value; null if the value is malformed. */
export function readVoteForm(value: unknown): VoteForm | null {
  const { approve, shown, scopes } = parse(value);
  const button = readVoteButton(value);
  if (button === null || typeof approve !== "boolean" || typeof shown !== "string") return null;
  return { ...button, approve, shown, scopes: Array.isArray(scopes) ? scopes.filter(isText) : [] };
}

const isText = (value: unknown): value is string => typeof value === "string";

function parse(value: unknown): Record<string, unknown> {
  try {
    const parsed = typeof value === "string" ? (JSON.parse(value) as unknown) : null;
    return typeof parsed === "object" && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/**
 * Votes that wait a few seconds before they are cast, so that they can be undone, and so that one gesture signs those
 * that were given in a row. They belong to the tab, not to a page: leaving the inbox casts them.
 */
import { signal } from "@preact/signals";
import type { Action } from "../core/api-types.ts";
import { serviceNow } from "../core/api.ts";
import { currentCredential, watchSession } from "../core/session.ts";
import { writeDraft } from "./drafts.ts";
import { castVotes, type VoteResult } from "./vote.ts";

/** Time from the last vote until the held votes are cast. Milliseconds. */
const HOLD_MS = 5000;
/** Maximum number of held votes. One more casts them. */
export const MAX_HELD = 50;
/** A request that expires sooner is voted on at once. Milliseconds. */
const TOO_LATE_MS = 60_000;

/** Identifies the draft of the reason for a vote on several requests of a group. */
export const groupDraft = (group: string): string => `group.${group}`;

const UNKNOWN = "this page failed; the vote may have been recorded";
const OTHER_CREDENTIAL =
  "someone signed in again in another tab after this vote was given, so it was not sent; undo it and vote again";
const LATE = "the request was settled, or expired, before this vote arrived";

export interface HeldVote {
  /** The request as the page displayed it to the voter. */
  action: Action;
  approve: boolean;
  reason: string;
  /** The credential of the person who gave the vote. No other credential casts it. */
  credential: string | null;
  /** Votes that were given together have the same number, and are undone together. */
  batch: number;
  /** The draft that the reason returns to if votes that were given together are undone. */
  draft: string;
  state: "held" | "casting" | "failed" | "late";
  /** Why the vote is not recorded; null unless `state` is `failed` or `late`. */
  fault: string | null;
}

/** The votes, in the order in which they were given. */
export const heldVotes = signal<readonly HeldVote[]>([]);
/** Number of votes that were dropped when the person was signed out. The next sign-in sets it to 0. */
export const droppedVotes = signal(0);
/** Time at which the held votes are cast, by the browser's clock. Milliseconds; null if no cast is scheduled. */
export const castAt = signal<number | null>(null);

/** Called with the result of each vote that was cast. The inbox sets it while it is displayed. */
let report: (id: string, result: VoteResult) => void = () => undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let batches = 0;

/** Whether a vote on the request can wait. A critical request is approved by itself, and one that soon expires at once. */
export function canHold(action: Action, approve: boolean): boolean {
  const isApprovable = action.risk_level !== "critical" && (action.approval_terms?.blocked ?? null) === null;
  return (!approve || isApprovable) && !expiresSoon(action);
}

function expiresSoon({ expires_at }: Action): boolean {
  return expires_at !== null && Date.parse(expires_at) <= serviceNow() + TOO_LATE_MS;
}

/**
 * Holds the same vote on each request, and postpones the held votes. Casts the held votes first if there would be too
 * many, or if one of them cannot wait. Casts all votes at once if one of the requests soon expires.
 * @param actions at most `MAX_HELD`
 * @param draft the draft of the reason. Default: that of the first request
 */
export function holdVotes(
  actions: readonly Action[],
  approve: boolean,
  reason: string,
  draft = actions[0]?.id ?? "",
): void {
  const held = heldVotes.value.filter(({ state }) => state === "held");
  if (held.length + actions.length > MAX_HELD || held.some((vote) => expiresSoon(vote.action))) void castHeldVotes();
  const others = heldVotes.value.filter((vote) => !actions.some(({ id }) => id === vote.action.id));
  const batch = ++batches;
  const credential = currentCredential();
  const votes = actions.map((action) => ({
    action,
    approve,
    reason,
    credential,
    batch,
    draft,
    state: "held" as const,
    fault: null,
  }));
  heldVotes.value = [...others, ...votes];
  restart();
  if (actions.some(expiresSoon)) void castHeldVotes();
}

/**
 * Takes votes back and keeps their reason as a draft. Returns none if there is no such vote, or if it is being cast.
 * @param id the action; if omitted, takes back the last vote
 * @param isWhole whether to also take back the votes that were given together with it and are in the same state, for
 *   the same reason
 */
export function undoVotes(id?: string, isWhole = id === undefined): readonly HeldVote[] {
  const vote = heldVotes.value.findLast(
    ({ action, state }) => state !== "casting" && (id === undefined || id === action.id),
  );
  if (vote === undefined) return [];
  const isUndone = (other: HeldVote): boolean =>
    other === vote ||
    (isWhole && other.batch === vote.batch && other.state === vote.state && other.fault === vote.fault);
  const undone = heldVotes.value.filter(isUndone);
  heldVotes.value = heldVotes.value.filter((other) => !isUndone(other));
  writeDraft(undone.length > 1 ? vote.draft : vote.action.id, vote.reason);
  restart();
  return undone;
}

/** Returns the vote on a request that is not recorded yet; null if there is none, or if it was late. */
export function findHeldVote(id: string): HeldVote | null {
  return heldVotes.value.find(({ action, state }) => action.id === id && state !== "late") ?? null;
}

/** Casts the failed votes again, together with the held ones. */
export function repeatFailedVotes(): Promise<void> {
  heldVotes.value = heldVotes.value.map((vote) =>
    vote.state === "failed" ? { ...vote, state: "held" as const, fault: null } : vote,
  );
  return castHeldVotes();
}

/** Casts the held votes now. A vote that is not recorded stays in `heldVotes`, with its `fault`. */
export async function castHeldVotes(): Promise<void> {
  clearTimeout(timer);
  castAt.value = null;
  // Cast one signature at a time: votes that are given meanwhile are cast after it.
  if (heldVotes.value.some(({ state }) => state === "casting")) return;
  // A user who signs in on the page `/sign-in` in another tab is also signed in here.
  const credential = currentCredential();
  heldVotes.value = heldVotes.value.map((vote) => {
    if (vote.state !== "held") return vote;
    if (vote.credential !== credential) return { ...vote, state: "failed" as const, fault: OTHER_CREDENTIAL };
    return { ...vote, state: "casting" as const };
  });
  const ballots = heldVotes.value
    .filter(({ state }) => state === "casting")
    .map(({ action, approve, reason }) => ({ shown: action, vote: { approve, reason } }));
  try {
    await castVotes(ballots, (id, result) => {
      const isDone = result.kind === "settled" || result.kind === "recorded";
      heldVotes.value = heldVotes.value.flatMap((vote) => {
        if (vote.action.id !== id) return [vote];
        if (isDone) return [];
        if (result.kind === "failed") return [{ ...vote, state: "failed" as const, fault: result.error.message }];
        writeDraft(id, vote.reason);
        return [{ ...vote, state: "late" as const, fault: LATE }];
      });
      report(id, result);
    });
  } finally {
    heldVotes.value = heldVotes.value.map((vote) =>
      vote.state === "casting" ? { ...vote, state: "failed" as const, fault: UNKNOWN } : vote,
    );
    restart();
  }
}

// The next person who signs in must not cast them.
watchSession((credential) => {
  droppedVotes.value = credential === null ? heldVotes.value.filter(({ state }) => state !== "late").length : 0;
  if (credential !== null) return;
  heldVotes.value = [];
  restart();
});

/**
 * Reports results to the inbox while it is displayed. Returns a function that casts the held votes; the inbox calls it
 * when the person opens another page.
 */
export function reportVotes(to: (id: string, result: VoteResult) => void): () => void {
  report = to;
  addEventListener("beforeunload", warn);
  return () => {
    // On other pages no one would see that a vote failed, so lead back to the inbox.
    report = (_, { kind }) => {
      if (kind === "failed" || kind === "late") location.hash = "#/approvals";
    };
    void castHeldVotes();
  };
}

function restart(): void {
  clearTimeout(timer);
  const isHeld = heldVotes.value.some(({ state }) => state === "held");
  castAt.value = isHeld ? Date.now() + HOLD_MS : null;
  if (isHeld) timer = setTimeout(() => void castHeldVotes(), HOLD_MS);
}

/** Lets the browser ask before the tab closes with votes that are not cast. */
function warn(event: BeforeUnloadEvent): void {
  if (heldVotes.value.length > 0) event.preventDefault();
}

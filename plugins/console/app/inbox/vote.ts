/** Casts votes. Each vote is bound to the request hash that the page displayed. Votes of signed-in users are signed. */
import type { Action } from "../core/api-types.ts";
import { ApiError, request } from "../core/api.ts";
import { isUserSession } from "../core/session.ts";
import { findOutcome, type RequestOutcome } from "./outcome.tsx";
import { listPins } from "./queue-state.ts";
import {
  type VoteToSign,
  MAX_SIGNED_VOTES,
  requestSignature,
  sendSignedVotes,
  type SignedResult,
  buildVoteBody,
} from "./signed-votes.ts";

export type VoteResult =
  /** The vote settled the request. */
  | { kind: "settled"; action: Action; outcome: RequestOutcome; isEmergency: boolean }
  /** The vote was recorded, but the request needs more votes. */
  | { kind: "recorded"; action: Action }
  /** The request was settled or expired before the vote arrived. */
  | { kind: "late"; action: Action | null; outcome: RequestOutcome }
  /** The vote was not recorded, or it is unknown whether it was. */
  | { kind: "failed"; error: Error };

const HASH_CHANGED =
  "the request's hash differs from the one that this page shows; no vote was recorded; report this to the service's operator";
const QUESTIONS_CHANGED =
  "a question was asked or answered since this page was read; no vote was recorded; read it and vote again";
const CHANGED = "the request has changed since this page was read; no vote was recorded; read it and vote again";
const NOT_ALLOWED =
  "you cannot vote on this request: you have already voted, or your vote would count as the requester's";

/** A request as a page displays it. Requests in lists have no approval token. */
type Shown = Pick<Action, "id" | "request_hash" | "questions" | "preview" | "pins" | "approval_token">;

/** A vote, and the request as the page displayed it to the voter. */
interface Ballot {
  shown: Shown;
  vote: VoteToSign;
}

/** Votes on one request. Rejects only for programming errors. */
export async function castVote(shown: Shown, vote: VoteToSign): Promise<VoteResult> {
  let result: VoteResult | undefined;
  await castVotes([{ shown, vote }], (_, only) => (result = only));
  return result as VoteResult;
}

/**
 * Casts votes, and reports the result of each. A user with a passkey signs up to `MAX_SIGNED_VOTES` votes with one
 * gesture. For users without a passkey and for API keys, casts each vote separately. Rejects only for programming
 * errors.
 */
export async function castVotes(
  ballots: readonly Ballot[],
  onResult: (id: string, result: VoteResult) => void,
): Promise<void> {
  const canSign = isUserSession();
  const size = canSign ? MAX_SIGNED_VOTES : 1;
  for (let from = 0; from < ballots.length; from += size) {
    const open = await readAll(ballots.slice(from, from + size), onResult);
    if (canSign && (await voteSigned(open, onResult))) continue;
    for (const { current, vote } of open) onResult(current.id, await voteUnsigned(current, vote));
  }
}

/** A vote on a request that has not changed since the page displayed it. */
interface Open extends Ballot {
  current: Action;
}

/** Reads the requests again. Returns the votes on those that still match what the page displays; reports the others. */
async function readAll(
  ballots: readonly Ballot[],
  onResult: (id: string, result: VoteResult) => void,
): Promise<Open[]> {
  const open: Open[] = [];
  for (const { shown, vote } of ballots) {
    const current = await readAgain(shown, onResult);
    if (current !== null) open.push({ shown, vote, current });
  }
  return open;
}

/**
 * Reads a request again and compares it with the displayed request. If no vote is possible, reports why and returns
 * null.
 */
async function readAgain(shown: Shown, onResult: (id: string, result: VoteResult) => void): Promise<Action | null> {
  const refuse = (error: Error): null => (onResult(shown.id, { kind: "failed", error }), null);
  try {
    const current = await request("GET /v1/actions/{id}", { path: [shown.id] });
    const outcome = findOutcome(current);
    if (outcome !== null) return (onResult(shown.id, { kind: "late", action: current, outcome }), null);
    if (current.request_hash !== shown.request_hash) return refuse(new Error(HASH_CHANGED));
    if (JSON.stringify(current.questions) !== JSON.stringify(shown.questions))
      return refuse(new Error(QUESTIONS_CHANGED));
    if (current.approval_token === undefined) return refuse(new Error(NOT_ALLOWED));
    const isChanged =
      differs(shown.preview, current.preview) ||
      differs(shown.approval_token, current.approval_token) ||
      listPins(shown) !== listPins(current);
    if (isChanged) return refuse(new Error(CHANGED));
    return current;
  } catch (error) {
    return refuse(asApiError(error));
  }
}

/** Whether a member has changed since the page displayed it. False if the page did not read the member. */
function differs(shown: string | null | undefined, current: string | null | undefined): boolean {
  return shown !== undefined && shown !== current;
}

async function voteUnsigned(action: Action, vote: VoteToSign): Promise<VoteResult> {
  try {
    const body = { token: action.approval_token as string, ...buildVoteBody(vote) };
    return resultOf(await request("POST /v1/actions/{id}/approval", { path: [action.id], body }), vote);
  } catch (error) {
    return refusedResult(action.id, asApiError(error));
  }
}

/**
 * Signs all votes with one gesture and reports the result of each vote. Returns false if the user has no passkey.
 * Requests the challenge first and then reads the requests again, so that the signature covers only what the page
 * displays.
 */
async function voteSigned(
  given: readonly Open[],
  onResult: (id: string, result: VoteResult) => void,
): Promise<boolean> {
  let open = given;
  try {
    while (open.length > 0) {
      const signatureRequest = await requestSignature(open);
      if (signatureRequest === null) return false;
      const same = await readAll(open, onResult);
      const isSame = same.length === open.length;
      open = same;
      if (!isSame) continue;
      const results = await sendSignedVotes(signatureRequest);
      for (const [i, { current, vote }] of open.entries())
        onResult(current.id, await signedResult(current.id, results[i], vote));
      return true;
    }
  } catch (problem) {
    if (!(problem instanceof Error)) throw problem;
    for (const { current } of open)
      onResult(
        current.id,
        problem instanceof ApiError ? await refusedResult(current.id, problem) : { kind: "failed", error: problem },
      );
  }
  return true;
}

async function signedResult(id: string, result: SignedResult | undefined, vote: VoteToSign): Promise<VoteResult> {
  if (result === undefined)
    return { kind: "failed", error: new Error("the service did not report the result of this vote") };
  if (result.error !== null) return refusedResult(id, new ApiError({ status: 409, ...result.error }));
  try {
    return resultOf(await request("GET /v1/actions/{id}", { path: [id] }), vote);
  } catch (error) {
    return { kind: "failed", error: asApiError(error) };
  }
}

function resultOf(action: Action, { approve, break_glass = false }: VoteToSign): VoteResult {
  if (action.status === "pending_approval") return { kind: "recorded", action };
  const text = break_glass
    ? "You approved it without other approvers."
    : approve
      ? "You approved it."
      : "You denied it.";
  return {
    kind: "settled",
    action,
    outcome: { kind: approve ? "good" : "bad", text, isMine: true },
    isEmergency: break_glass,
  };
}

/** Returns the result of a refused vote: the request had already been settled or had expired, or the vote failed. */
async function refusedResult(id: string, error: ApiError): Promise<VoteResult> {
  if (error.status !== 409 && error.status !== 410) return { kind: "failed", error };
  const current = await request("GET /v1/actions/{id}", { path: [id] }).catch(() => null);
  const outcome = current === null ? null : findOutcome(current);
  // The request still waits, so the vote was refused for another reason, such as a stop.
  if (current !== null && outcome === null) return { kind: "failed", error };
  return { kind: "late", action: current, outcome: outcome ?? { kind: "busy", text: error.message } };
}

function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  throw error;
}

/** Casts votes. Each vote is bound to the request hash that the page showed. */
import type { Action } from "../core/api-types.ts";
import { ApiError, request } from "../core/api.ts";
import { outcomeOf, type Outcome } from "./outcome.tsx";

export type VoteResult =
  /** The vote settled the request. */
  | { kind: "settled"; action: Action; outcome: Outcome }
  /** The vote is recorded, and the request needs more. */
  | { kind: "recorded"; action: Action }
  /** The request was settled or expired before the vote arrived. */
  | { kind: "late"; action: Action | null; outcome: Outcome }
  /** The vote is not recorded, or it is unknown whether it is. */
  | { kind: "failed"; error: Error };

const HASH_CHANGED =
  "the request has another hash than the one that this page shows; no vote was recorded; report this to the service's operator";
const NOT_ALLOWED = "this key cannot vote on it: it has voted already, or it belongs to the requester";

/** Reads the request again, compares its hash with the one shown, and votes. Rejects only for programming errors. */
export async function castVote(shown: Action, approve: boolean, reason: string): Promise<VoteResult> {
  try {
    const current = await request("GET /v1/actions/{id}", { path: [shown.id] });
    const before = outcomeOf(current);
    if (before !== null) return { kind: "late", action: current, outcome: before };
    if (current.request_hash !== shown.request_hash) return { kind: "failed", error: new Error(HASH_CHANGED) };
    const token = current.approval_token;
    if (token === undefined) return { kind: "failed", error: new Error(NOT_ALLOWED) };
    const body = { token, approve, ...(reason === "" ? {} : { reason }) };
    const action = await request("POST /v1/actions/{id}/approval", { path: [shown.id], body });
    if (action.status === "pending_approval") return { kind: "recorded", action };
    const text = approve ? "You approved it." : "You denied it.";
    return { kind: "settled", action, outcome: { kind: approve ? "good" : "bad", text, isMine: true } };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // Settled, or expired.
    if (error.status !== 409 && error.status !== 410) return { kind: "failed", error };
    const current = await request("GET /v1/actions/{id}", { path: [shown.id] }).catch(() => null);
    const outcome = (current === null ? null : outcomeOf(current)) ?? { kind: "busy", text: error.message };
    return { kind: "late", action: current, outcome };
  }
}

export interface Counts {
  settled: number;
  recorded: number;
  late: number;
  failed: number;
}

/** Returns what became of several votes: "3 approved; 1 was settled by someone else or expired." */
export function summarize({ settled, recorded, late, failed }: Counts, approve: boolean): string {
  const parts = [
    settled === 0 && recorded > 0 ? "" : `${settled} ${approve ? "approved" : "denied"}`,
    recorded === 0 ? "" : `${recorded} approved by you and waiting for others`,
    late === 0 ? "" : `${late} not recorded: settled by someone else, or expired`,
    failed === 0 ? "" : `${failed} failed`,
  ];
  return `${parts.filter((part) => part !== "").join("; ")}.`;
}

/**
 * Votes by link as the approval page does: it reads the request, then sends the digest of the displayed request with
 * the vote.
 */
import type { Answer, Service } from "./service.ts";

/** A digest that matches no request, for votes that are rejected before the digest is compared. */
export const UNKNOWN_DIGEST = "0".repeat(64);

/** Reads the request that a link refers to, and votes on it. */
export async function voteByLink(
  { call }: Pick<Service, "call">,
  token: string,
  approve: boolean,
  reason?: string,
): Promise<Answer> {
  const { body: seen } = await call("POST", "/v1/approval-link", { key: null, body: { token } });
  const body = { token, shown: seen.shown ?? UNKNOWN_DIGEST, approve, ...(reason === undefined ? {} : { reason }) };
  return call("POST", "/v1/approval-link/verdict", { key: null, body });
}

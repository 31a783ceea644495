/** Votes by link as the approval page does: it reads the request, and votes on what it was shown. */
import type { Answer, Service } from "./service.ts";

/** A digest that no request has, for votes that are refused before it is compared. */
export const NOTHING_SHOWN = "0".repeat(64);

/** Reads the request of the link and votes on it. */
export async function voteByLink(
  { call }: Pick<Service, "call">,
  token: string,
  approve: boolean,
  reason?: string,
): Promise<Answer> {
  const { body: seen } = await call("POST", "/v1/approval-link", { key: null, body: { token } });
  const body = { token, shown: seen.shown ?? NOTHING_SHOWN, approve, ...(reason === undefined ? {} : { reason }) };
  return call("POST", "/v1/approval-link/verdict", { key: null, body });
}

/** Displays a request before a vote, and votes on exactly the displayed request. */
import type { ActionRecord, ApproveOptions, Assent } from "../../../clients/typescript/index.ts";
import { CommandError, type Output, withServiceErrors } from "../../../src/command.ts";
import { printAction } from "./print-action.ts";

/** A pending request as the approver saw it, with the token that binds the vote to it. */
export type ShownRequest = ActionRecord & { approval_token: string };

/**
 * Reads a pending request and prints who requests what and why, on standard error. Prints all of its lines, because the
 * vote covers all of them. Throws CommandError if the caller cannot vote on it.
 */
export async function showForVote(service: Assent, id: string, io: Output): Promise<ShownRequest> {
  const action = await withServiceErrors(() => service.action(id));
  printAction({ ...io, out: (line) => io.err(line) }, action, false, true);
  const { approval_token: token, approval_terms: terms, status } = action;
  if (token !== undefined) return { ...action, approval_token: token };
  const reason =
    status === "pending_approval"
      ? (terms?.blocked?.detail ?? "this credential may not vote, or has voted already")
      : `it is ${status}`;
  throw new CommandError(`NO_TOKEN: you cannot vote on ${id}: ${reason}`);
}

/** Votes. The service rejects the vote if the request has changed since it was shown. */
export function voteOnShown(
  service: Assent,
  { id, approval_token: token }: ShownRequest,
  approve: boolean,
  options: Pick<ApproveOptions, "reason" | "grant">,
): Promise<ActionRecord> {
  return withServiceErrors(() => service.vote(id, approve, { ...options, token }));
}

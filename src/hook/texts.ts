/** What the agent is told: three things that must not sound alike (refused, waits, could not be asked). */
import { AssentError, Unauthorized, type ActionRecord } from "../client/index.ts";

export function refusedText({ id, status, reason, reason_code }: ActionRecord): string {
  if (status === "expired")
    return `Not run: nobody approved ${id} in time. Ask the user; the same call again asks for a new approval.`;
  if (status === "cancelled") return `Not run: ${id} was cancelled (${reason}). Ask the user before you try again.`;
  const by = reason_code === "POLICY_RULE" ? "policy" : reason_code;
  return `Not run: denied by ${by}: ${reason} (${id}). Do not look for another way to do the same.`;
}

export function waitsText({ id }: ActionRecord, seconds: number): string {
  return (
    `Not run: waits for approval ${id}. It is not refused. ` +
    `Tell the user, and repeat the same command, unchanged, after ${seconds} seconds or more: it runs once it is approved.`
  );
}

export function failedText(error: unknown): string {
  if (error instanceof Unauthorized)
    return `Not run: the service does not take this agent's key (${error.code}). Tell the user; "assent hook doctor" says more.`;
  if (error instanceof AssentError && error.status >= 400 && error.status < 500 && error.status !== 429)
    return `Not run: the service refused the question (${error.code}): ${error.message}`;
  if (error instanceof AssentError)
    return `Not run: the service could not be asked (${error.code}). Tell the user; try again later.`;
  return `Not run: the hook failed. Tell the user; "assent hook doctor" says more.`;
}

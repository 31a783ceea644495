/**
 * Messages for the agent. For each outcome (refused, pending, undecided), the message tells the agent what to do next.
 */
import { startCommandLine } from "./start-service.ts";
import type { HookConfig } from "./hook-config.ts";
import { AssentError, explainRefusal, questionText, Unauthorized, type ActionRecord } from "../typescript/index.ts";

export function refusalText(action: ActionRecord): string {
  const { why, next } = explainRefusal(action);
  return `Not run: ${why} (${action.id}). ${next}`;
}

export function pendingText(action: ActionRecord, seconds: number): string {
  const { id } = action;
  return (
    `Not run: waits for approval ${id}. It is not refused. ` +
    questionText(action, `with the command: assent answer ${id} "…"`) +
    `Tell the user, and repeat the same command, unchanged, after ${seconds} seconds or more: it runs once it is approved.`
  );
}

/** Tells the user what to do if no service responds, because the agent cannot fix it. */
export function unreachableText({ url, service }: HookConfig): string {
  return (
    `Not run: no service responds at ${url}. ` +
    (service === null
      ? `Tell the user to start the Assent service of that address ("npm start" in its folder, or "assent serve"), and then repeat the call; "assent hook doctor" finds the cause.`
      : `The hook could not start it. Tell the user to run this command, which reports the cause: ${startCommandLine()}`)
  );
}

export function serviceFailureText(error: unknown): string {
  if (error instanceof Unauthorized)
    return `Not run: the service does not accept this agent's key (${error.code}). Tell the user; "assent hook doctor" finds the cause.`;
  if (error instanceof AssentError && error.status >= 400 && error.status < 500 && error.status !== 429)
    return `Not run: the service rejected the request (${error.code}): ${error.message}`;
  if (error instanceof AssentError)
    return `Not run: the service gave no decision (${error.code}). Tell the user; try again later.`;
  return `Not run: the hook failed. Tell the user; "assent hook doctor" finds the cause.`;
}

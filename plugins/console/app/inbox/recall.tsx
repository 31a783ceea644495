/**
 * Commands that are still possible after a vote: withdraw an approval before the action starts, lift a rejection, or
 * cancel an action that someone else approved.
 */
import { useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { request, serviceNow } from "../core/api.ts";
import { hasScope } from "../core/me.ts";
import { ErrorNotice } from "../ui/elements.tsx";
import { findOwnVote } from "./vote-availability.ts";

const TEXTS = {
  withdraw: "Withdraw my approval",
  withdrawHelp:
    "The action has not started. Withdrawing cancels it, and ends a grant that you gave with the approval. The agent has to submit it again.",
  withdrawn: "You withdrew your approval, so the action is cancelled.",
  lift: "Lift the rejection",
  liftHelp: "The same request then requires approval again. This action stays denied.",
  lifted: "The rejection is lifted.",
  cancel: "Cancel the action",
  cancelHelp:
    "It was approved and has not started. A tool that already has a permit might still run it; stop the agent to prevent that.",
  cancelled: "You cancelled the action.",
} as const;

interface Props {
  action: Action;
  /** Receives the action after the vote was taken back, and the message to display. */
  onDone(action: Action, message: string): void;
}

/** Renders what is still possible; nothing if the vote has taken effect. */
export function Recall({ action, onDone }: Props) {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const kind = findPossible(action);
  if (kind === null) return null;
  const recall = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const options = { path: [action.id], body: {} } as const;
      if (kind === "withdraw") onDone(await request("POST /v1/actions/{id}/withdraw", options), TEXTS.withdrawn);
      else if (kind === "cancel") onDone(await request("POST /v1/actions/{id}/cancel", options), TEXTS.cancelled);
      else onDone(await request("POST /v1/actions/{id}/lift-rejection", options), TEXTS.lifted);
    } catch (fault) {
      setError(fault);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <p class="row">
        <button type="button" disabled={isBusy} onClick={() => void recall()}>
          {TEXTS[kind]}
        </button>
        <span class="quiet">{TEXTS[`${kind}Help`]}</span>
      </p>
      <ErrorNotice error={error} />
    </>
  );
}

function findPossible(action: Action): "withdraw" | "lift" | "cancel" | null {
  const isVoter = hasScope("approvals:decide");
  if (isVoter && canWithdraw(action)) return "withdraw";
  if (isVoter && canLift(action)) return "lift";
  return hasScope("admin") && mayStart(action) ? "cancel" : null;
}

/** Whether the action was approved and can still start. */
export function mayStart({ status, approved_until }: Action): boolean {
  return status === "approved" && approved_until !== null && Date.parse(approved_until) > serviceNow();
}

function canWithdraw(action: Action): boolean {
  // An action that was allowed at first may have a permit, which no entry records.
  const isOpen = action.status === "pending_approval" || (mayStart(action) && action.decision !== "allow");
  return isOpen && findOwnVote(action)?.approve === true;
}

function canLift({ id, rejection }: Action): boolean {
  return rejection !== null && rejection.action_id === id && rejection.holds_until !== null;
}

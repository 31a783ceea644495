/** Takes back the person's own settled vote: withdraws an approval before the action starts, or lifts a rejection. */
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
  const kind = canWithdraw(action) ? "withdraw" : canLift(action) ? "lift" : null;
  if (kind === null || !hasScope("approvals:decide")) return null;
  const recall = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const options = { path: [action.id], body: {} } as const;
      if (kind === "withdraw") onDone(await request("POST /v1/actions/{id}/withdraw", options), TEXTS.withdrawn);
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
        <span class="quiet">{kind === "withdraw" ? TEXTS.withdrawHelp : TEXTS.liftHelp}</span>
      </p>
      <ErrorNotice error={error} />
    </>
  );
}

function canWithdraw(action: Action): boolean {
  const { status, decision, approved_until } = action;
  const isOpen =
    status === "pending_approval" ||
    // An action that was allowed at first may have a permit, which no entry records.
    (status === "approved" &&
      decision !== "allow" &&
      approved_until !== null &&
      Date.parse(approved_until) > serviceNow());
  return isOpen && findOwnVote(action)?.approve === true;
}

function canLift({ id, rejection }: Action): boolean {
  return rejection !== null && rejection.action_id === id && rejection.holds_until !== null;
}

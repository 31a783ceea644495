/** The dialog that approves a request in an emergency. */
import { useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorNotice } from "../ui/elements.tsx";
import { FormButtons } from "../ui/forms.tsx";
import { castVote, type VoteResult } from "./vote.ts";

const TEXTS = {
  title: "Approve in an emergency, without other approvers?",
  meaning:
    "Your vote approves it immediately, without other approvers. This is announced, and the review stays open until another person closes it. Use it only if the approvers cannot be reached.",
  reason: "Why can it not wait?",
  reasonHelp: "Recorded in the ledger, announced, and read by the reviewer.",
} as const;

interface Props {
  action: Action;
  onVoted(result: VoteResult): void;
  onClose(): void;
}

export function EmergencyDialog({ action, onVoted, onClose }: Props) {
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    const result = await castVote(action, { approve: true, reason: reason.trim(), break_glass: true });
    setBusy(false);
    // The dialog keeps the reason if the vote is not recorded.
    if (result.kind === "failed") return setError(result.error);
    onClose();
    onVoted(result);
  };
  return (
    <Dialog title={TEXTS.title} onClose={onClose} hotkey={false}>
      <form onSubmit={(event) => void submit(event)}>
        <p>{TEXTS.meaning}</p>
        <div class="field">
          <label for="emergency-reason">{TEXTS.reason}</label>
          <textarea
            id="emergency-reason"
            rows={3}
            maxLength={2000}
            required
            data-focus=""
            value={reason}
            readOnly={isBusy}
            aria-describedby="emergency-reason-help"
            onInput={(event) => setReason(event.currentTarget.value)}
          />
          <span id="emergency-reason-help" class="quiet">
            {TEXTS.reasonHelp}
          </span>
        </div>
        <ErrorNotice error={error} />
        <FormButtons look="danger" isDisabled={isBusy || reason.trim() === ""} onClose={onClose}>
          {isBusy ? "Approving…" : "Approve now"}
        </FormButtons>
      </form>
    </Dialog>
  );
}

/** The button and the dialog that approve a request in an emergency. */
import { useState } from "preact/hooks";
import { type Action, countApprovals, Dialog, ErrorNotice, FormButtons, type Places } from "../../console/app/kit.ts";

const TEXTS = {
  button: "Emergency approval…",
  title: "Approve in an emergency, without other approvers?",
  meaning:
    "Your vote approves it immediately, without other approvers. This is announced, and the review stays open until another person closes it. Use it only if the approvers cannot be reached.",
  reason: "Why can it not wait?",
  reasonHelp: "Recorded in the ledger, announced, and read by the reviewer.",
} as const;

type Props = Places["other-votes"];

export function EmergencyApproval({ action, castVote }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      {isNeeded(action) ? (
        <p class="row">
          <button type="button" class="small danger" onClick={() => setOpen(true)}>
            {TEXTS.button}
          </button>
        </p>
      ) : null}
      {isOpen ? <EmergencyDialog castVote={castVote} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

/** Returns true if the person may approve in an emergency, and their ordinary vote is not enough. */
function isNeeded(action: Action): boolean {
  const { approval_terms: terms } = action;
  if (terms === undefined || !terms.may_break_glass) return false;
  return terms.blocked !== null || (action.approvals_needed ?? 1) - countApprovals(action) > 1;
}

function EmergencyDialog({ castVote, onClose }: Pick<Props, "castVote"> & { onClose(): void }) {
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    const failure = await castVote({ approve: true, reason: reason.trim(), break_glass: true });
    setBusy(false);
    // The dialog keeps the reason if the vote is not recorded.
    if (failure !== null) return setError(failure);
    onClose();
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

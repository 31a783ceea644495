/**
 * Shows if the person would vote on behalf of another user, or why the person cannot approve the open request. Also
 * offers the emergency approval.
 */
import { useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Notice, ErrorNotice, MarkedValue } from "../ui/elements.tsx";
import { PrincipalName } from "../ui/person.tsx";
import { countApprovals } from "./vote-availability.ts";
import { castVote, type VoteResult } from "./vote.ts";
import { FormButtons } from "../ui/forms.tsx";

const TEXTS = {
  button: "Emergency approval…",
  title: "Approve in an emergency, without other approvers?",
  meaning:
    "Your vote approves it immediately, without other approvers. This is announced, and the review stays open until another person closes it. Use it only if the approvers cannot be reached.",
  reason: "Why can it not wait?",
  reasonHelp: "Recorded in the ledger, announced, and read by the reviewer.",
} as const;

interface Props {
  action: Action;
  onVoted(result: VoteResult): void;
}

export function VotingCapacity({ action, onVoted }: Props) {
  const [isOpen, setOpen] = useState(false);
  const { approval_terms: terms } = action;
  if (terms === undefined) return null;
  const { blocked, on_behalf_of } = terms;
  return (
    <>
      {on_behalf_of === null ? null : (
        <Notice>
          You vote on behalf of <PrincipalName principal={on_behalf_of} />, who delegated to you.
        </Notice>
      )}
      {blocked === null ? null : (
        <Notice kind="busy">
          You cannot approve it: <MarkedValue value={blocked.detail} />. You can deny it.
        </Notice>
      )}
      {canBreakGlass(action) ? (
        <p class="row">
          <button type="button" class="small danger" onClick={() => setOpen(true)}>
            {TEXTS.button}
          </button>
        </p>
      ) : null}
      {isOpen ? <EmergencyDialog action={action} onVoted={onVoted} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

/** Whether to offer the emergency approval, because the person's ordinary vote is not enough. */
function canBreakGlass(action: Action): boolean {
  const { approval_terms: terms } = action;
  if (terms === undefined || !terms.may_break_glass) return false;
  return terms.blocked !== null || (action.approvals_needed ?? 1) - countApprovals(action) > 1;
}

function EmergencyDialog({ action, onVoted, onClose }: Props & { onClose(): void }) {
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

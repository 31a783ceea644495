/**
 * Shows if the person would vote on behalf of another user, or why the person cannot approve the open request. Also
 * offers the emergency approval.
 */
import { useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { Notice, MarkedValue } from "../ui/elements.tsx";
import { PrincipalName } from "../ui/person.tsx";
import { EmergencyDialog } from "./lazy-parts.tsx";
import { countApprovals } from "./vote-availability.ts";
import type { VoteResult } from "./vote.ts";

const BUTTON = "Emergency approval…";

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
            {BUTTON}
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

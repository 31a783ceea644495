/**
 * Shows if the person would vote on behalf of another user, or why the person cannot approve the open request.
 */
import { MarkedValue, Notice } from "../ui/elements.tsx";
import { Panels } from "../ui/panels.tsx";
import { PrincipalName } from "../ui/person.tsx";
import type { Action } from "../core/api-types.ts";
import { castVote, type VoteResult } from "./vote.ts";

interface Props {
  action: Action;
  onVoted(result: VoteResult): void;
}

export function VotingCapacity({ action, onVoted }: Props) {
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
      <Panels
        place="other-votes"
        action={action}
        castVote={async (vote) => {
          const result = await castVote(action, vote);
          if (result.kind === "failed") return result.error;
          onVoted(result);
          return null;
        }}
      />
    </>
  );
}

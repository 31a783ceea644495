/** The bar with the votes that are not recorded yet. Its buttons undo them, record them now, or try again. */
import { MarkedValue } from "../ui/elements.tsx";
import { formatCounted } from "../ui/format.ts";
import { useNow } from "../ui/hooks.ts";
import { castAt, castHeldVotes, heldVotes, repeatFailedVotes, undoVotes, type HeldVote } from "./held-votes.ts";
import { RequestHeadline } from "../ui/request-view.tsx";

/** @param onUndone called with the votes that were taken back */
export function HeldTray({ onUndone }: { onUndone(votes: readonly HeldVote[]): void }) {
  useNow();
  const votes = heldVotes.value;
  const failed = votes.filter(({ fault }) => fault !== null);
  const open = votes.filter(({ fault }) => fault === null);
  const canRepeat = votes.some(({ state }) => state === "failed");
  const isCasting = votes.some(({ state }) => state === "casting");
  const undo = (id?: string): void => {
    const undone = undoVotes(id, true);
    if (undone.length > 0) onUndone(undone);
  };
  return (
    <section class="held-tray" aria-label="Votes not recorded yet">
      {failed
        .map((vote) => failed.filter(({ batch, fault }) => batch === vote.batch && fault === vote.fault))
        .filter(([first], i) => first === failed[i])
        .map((together) => (
          <Failure key={together[0]?.action.id} votes={together} onOpen={undo} />
        ))}
      <div class="row">
        <span role="status">{open.length === 0 ? null : describeVotes(open, isCasting, castAt.value)}</span>
        {isCasting || open.length === 0 ? null : (
          <>
            <button type="button" class="small" onClick={() => undo()}>
              Undo <kbd>u</kbd>
            </button>
            <button type="button" class="small" onClick={() => void castHeldVotes()}>
              Record now
            </button>
          </>
        )}
        {isCasting || !canRepeat ? null : (
          <button type="button" class="small" onClick={() => void repeatFailedVotes()}>
            Try again
          </button>
        )}
      </div>
    </section>
  );
}

/** Renders why votes that were given together failed. */
function Failure({ votes: [first, ...others], onOpen }: { votes: readonly HeldVote[]; onOpen(id: string): void }) {
  if (first === undefined) return null;
  const { action, approve, fault } = first;
  return (
    <div class="held-failure" role="alert">
      <p>
        {approve ? "Approval" : "Denial"} of “<RequestHeadline action={action} />”
        {others.length === 0 ? "" : ` and ${formatCounted(others.length, "other request")}`} failed:{" "}
        <MarkedValue value={fault ?? ""} />.
      </p>
      <button type="button" class="small" onClick={() => onOpen(action.id)}>
        {others.length === 0 ? "Open the request" : "Open the group"}
      </button>
    </div>
  );
}

/** Returns a text such as "3 approvals and 1 denial, recorded in 4 s". */
function describeVotes(open: readonly HeldVote[], isCasting: boolean, at: number | null): string {
  const approvals = open.filter(({ approve }) => approve).length;
  const parts = [
    approvals === 0 ? "" : formatCounted(approvals, "approval"),
    approvals === open.length ? "" : formatCounted(open.length - approvals, "denial"),
  ];
  const text = parts.filter((part) => part !== "").join(" and ");
  if (isCasting || at === null) return `Recording ${text}…`;
  return `${text}, recorded in ${Math.max(1, Math.ceil((at - Date.now()) / 1000))} s`;
}

/** The right side of the inbox if a group is open and none of its requests: a vote on the requests that it lists. */
import type { Ref } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { hasScope } from "../core/me.ts";
import { Notice } from "../ui/elements.tsx";
import { formatCounted } from "../ui/format.ts";
import { Icon } from "../ui/icons.tsx";
import { RiskBadge } from "../ui/request-view.tsx";
import { GroupSentence } from "./list.tsx";
import { findGroup, type Group, type QueueItem } from "./queue-state.ts";
import { groupByShape } from "./group-requests.ts";
import { groupDraft, heldVotes, holdVotes } from "./held-votes.ts";
import { TEXTS } from "./strings.ts";
import { RequestGroupTable } from "./table.tsx";
import { VoteBar, type VoteBarHandle } from "./vote-bar.tsx";

interface Props {
  group: Group;
  /** The requests that a vote covers: the selected ones, or those of the group. At most `MAX_HELD`. */
  items: readonly QueueItem[];
  isSelection: boolean;
  /** Number of loaded requests of the group that can only be voted on together with other actions. */
  elsewhere: number;
  handle: Ref<VoteBarHandle>;
  /** Returns the address of a request. */
  addressOf(id: string): string;
  onClear(): void;
  /** Shows the list, if it has no room next to this pane. */
  onBack(): void;
  onVoted(): void;
}

/**
 * Renders the requests that a vote covers. Holds a separate vote on each request, so some votes may be recorded while
 * others fail.
 */
export function GroupPane({
  group,
  items,
  isSelection,
  elsewhere,
  handle,
  addressOf,
  onClear,
  onBack,
  onVoted,
}: Props) {
  const hasVoted = useRef(false);
  const draft = groupDraft(group.id);
  const { covered, others, update } = useCovered(items, isSelection, hasVoted);
  const key = covered.map(({ id, request_hash }) => `${id} ${request_hash}`).join();
  const shapes = useMemo(() => groupByShape(covered), [key]);
  // One gesture must not approve several requests that each need to be read.
  const approvable = covered.filter(({ risk_level }) => risk_level !== "critical");
  const critical = covered.length - approvable.length;
  const cast = (approve: boolean, reason: string): Promise<boolean> => {
    hasVoted.current = true;
    holdVotes(approve ? approvable : covered, approve, reason, draft);
    onVoted();
    return Promise.resolve(true);
  };
  return (
    <section class="pane batch" aria-label={TEXTS.group}>
      <div class="pane-scroll" tabIndex={0} role="region" aria-label="Requests to vote on">
        <button type="button" class="small back" onClick={onBack}>
          <Icon name="arrow-left" /> All requests
        </button>
        <p class="preview">
          <GroupSentence group={group} />
        </p>
        <p class="chips">
          <RiskBadge risk={group.risk_level} />
          <span class="quiet">{formatCounted(group.count, "request")}</span>
          {isSelection ? (
            <>
              <strong>{TEXTS.selected(covered.length)}</strong>
              <button type="button" class="small" onClick={onClear}>
                Select none
              </button>
            </>
          ) : null}
        </p>
        {covered.length === 0 ? (
          others > 0 ? null : (
            <p class="quiet">{TEXTS.groupDone}</p>
          )
        ) : (
          <p class="quiet">
            {TEXTS.covers(covered.length, isSelection ? covered.length : group.count - elsewhere - countHeld(group))}
          </p>
        )}
        {elsewhere === 0 ? null : <p class="quiet">{TEXTS.elsewhere(elsewhere)}</p>}
        {others === 0 ? null : (
          <button type="button" class="small held" onClick={update}>
            {TEXTS.listOthers(others)}
          </button>
        )}
        {shapes.map((shape, i) => (
          <RequestGroupTable key={shape.key} group={shape} position={i + 1} addressOf={addressOf} />
        ))}
      </div>
      {hasScope("approvals:decide") && covered.length > 0 ? (
        <div class="pane-foot">
          {critical === 0 ? null : <Notice kind="busy">{TEXTS.critical(critical, isSelection)}</Notice>}
          <VoteBar
            subject={draft}
            count={covered.length}
            approvable={approvable.length}
            isSelection={isSelection}
            cast={cast}
            handle={handle}
            onLeave={() => document.querySelector<HTMLElement>(".rows [data-id]")?.focus()}
          />
        </div>
      ) : null}
    </section>
  );
}

/** Returns the number of requests of the group with votes that are not recorded yet. */
export function countHeld(group: Group): number {
  return heldVotes.value.filter(({ action }) => findGroup([group], action) !== undefined).length;
}

/**
 * Returns the requests that a vote covers, as they are listed, and the number of the others. Others join only if the
 * person selects or requests them. Otherwise, new, changed and further requests could appear between reading and
 * voting, or under a second click.
 */
function useCovered(items: readonly QueueItem[], isSelection: boolean, hasVoted: { current: boolean }) {
  const [, redraw] = useState(0);
  const listed = useRef<readonly Action[]>([]);
  const wasSelection = useRef(isSelection);
  const waiting = new Map(items.map(({ action }) => [action.id, action]));
  const findListed = (id: string): Action | undefined => listed.current.find((action) => action.id === id);
  const isCleared = wasSelection.current && !isSelection && !hasVoted.current;
  wasSelection.current = isSelection;
  const list = (actions: readonly Action[]): void => {
    listed.current = actions;
    hasVoted.current = false;
  };
  const update = (): void => list([...waiting.values()]);
  const isChosen = isSelection && [...waiting.keys()].some((id) => findListed(id) === undefined);
  if (listed.current.length === 0 || isCleared) update();
  // A changed request stays listed in its earlier version, so that selecting another request does not replace it
  // unnoticed.
  else if (isChosen) list([...waiting].map(([id, action]) => findListed(id) ?? action));
  return {
    covered: listed.current.filter(({ id }) => waiting.has(id)),
    others: [...waiting.values()].filter(({ id, request_hash }) => findListed(id)?.request_hash !== request_hash)
      .length,
    update() {
      update();
      redraw((count) => count + 1);
    },
  };
}

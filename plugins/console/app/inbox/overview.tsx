/** The right side of the inbox if a group is open and none of its requests: a vote on the requests that it lists. */
import type { Ref } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { hasScope } from "../core/me.ts";
import { Notice } from "../ui/elements.tsx";
import { formatCounted } from "../ui/format.ts";
import { Icon } from "../ui/icons.tsx";
import { RiskBadge } from "../ui/request-view.tsx";
import { GroupSentence } from "./list.tsx";
import type { Group, QueueItem } from "./queue-state.ts";
import { groupByShape, type RequestGroup } from "./group-requests.ts";
import { TEXTS } from "./strings.ts";
import { RequestGroupTable } from "./table.tsx";
import { castVotes, summarizeVotes, type VoteCounts, type VoteResult } from "./vote.ts";
import { VoteBar, type VoteBarHandle } from "./vote-bar.tsx";

/** Maximum number of requests that one vote covers, because it lists all of them. */
export const MAX_COVERED = 50;

interface Props {
  group: Group;
  /** The requests that a vote covers: the selected ones, or those of the group. At most `MAX_COVERED`. */
  items: readonly QueueItem[];
  isSelection: boolean;
  handle: Ref<VoteBarHandle>;
  onClear(): void;
  /** Shows the list, if it has no room next to this pane. */
  onBack(): void;
  onVoted(id: string, result: VoteResult): void;
  onDone(summary: string): void;
}

/**
 * Renders the requests that a vote covers. Votes on each request separately, so some votes may be recorded while others
 * fail. The summary counts both.
 */
export function GroupPane({ group, items, isSelection, handle, onClear, onBack, onVoted, onDone }: Props) {
  const [done, setDone] = useState<number | null>(null);
  const shapes = useShapes(items, done !== null);
  // One gesture must not approve several requests that each need to be read.
  const approvable = items.filter(({ action }) => action.risk_level !== "critical");
  const critical = items.length - approvable.length;
  const cast = async (approve: boolean, reason: string): Promise<boolean> => {
    const counts: VoteCounts = { settled: 0, recorded: 0, late: 0, failed: 0 };
    let voted = 0;
    setDone(0);
    const ballots = (approve ? approvable : items).map(({ action }) => ({ shown: action, vote: { approve, reason } }));
    await castVotes(ballots, (id, result) => {
      setDone(++voted);
      counts[result.kind] += 1;
      onVoted(id, result);
    });
    setDone(null);
    onDone(`${summarizeVotes(counts, approve)}${approve && critical > 0 ? ` ${TEXTS.criticalLeft(critical)}` : ""}`);
    return counts.failed === 0;
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
              <strong>{TEXTS.selected(items.length)}</strong>
              <button type="button" class="small" onClick={onClear}>
                Select none
              </button>
            </>
          ) : null}
        </p>
        <p class="quiet">{TEXTS.covers(items.length, isSelection ? items.length : group.count)}</p>
        {shapes.map((shape, i) => (
          <RequestGroupTable key={shape.key} group={shape} position={i + 1} />
        ))}
      </div>
      {hasScope("approvals:decide") && items.length > 0 ? (
        <div class="pane-foot">
          {done === null ? null : (
            <Notice>
              {done} of {items.length} votes processed…
            </Notice>
          )}
          {critical === 0 ? null : <Notice kind="busy">{TEXTS.critical(critical, isSelection)}</Notice>}
          <VoteBar
            subject="selection"
            count={items.length}
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

/** Groups the requests by shape when they change. The tables do not change while votes are being recorded. */
function useShapes(items: readonly QueueItem[], isVoting: boolean): RequestGroup<Action>[] {
  const last = useRef<{ key: string; shapes: RequestGroup<Action>[] }>({ key: "", shapes: [] });
  const key = items.map(({ action }) => action.id).join();
  if (!isVoting && last.current.key !== key)
    last.current = { key, shapes: groupByShape(items.map(({ action }) => action)) };
  return last.current.shapes;
}

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
  const [progress, setProgress] = useState<{ done: number; of: number } | null>(null);
  const hasVoted = useRef(false);
  const { covered, others, update } = useCovered(items, isSelection, hasVoted);
  const shapes = useShapes(covered, progress !== null);
  // One gesture must not approve several requests that each need to be read.
  const approvable = covered.filter(({ risk_level }) => risk_level !== "critical");
  const critical = covered.length - approvable.length;
  const cast = async (approve: boolean, reason: string): Promise<boolean> => {
    const counts: VoteCounts = { settled: 0, recorded: 0, late: 0, failed: 0 };
    let done = 0;
    hasVoted.current = true;
    const ballots = (approve ? approvable : covered).map((action) => ({ shown: action, vote: { approve, reason } }));
    setProgress({ done, of: ballots.length });
    await castVotes(ballots, (id, result) => {
      setProgress({ done: ++done, of: ballots.length });
      counts[result.kind] += 1;
      onVoted(id, result);
    });
    setProgress(null);
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
              <strong>{TEXTS.selected(covered.length)}</strong>
              <button type="button" class="small" onClick={onClear}>
                Select none
              </button>
            </>
          ) : null}
        </p>
        {covered.length === 0 ? null : (
          <p class="quiet">{TEXTS.covers(covered.length, isSelection ? covered.length : group.count)}</p>
        )}
        {others === 0 || progress !== null ? null : (
          <button type="button" class="small held" onClick={update}>
            {TEXTS.listOthers(others)}
          </button>
        )}
        {shapes.map((shape, i) => (
          <RequestGroupTable key={shape.key} group={shape} position={i + 1} />
        ))}
      </div>
      {hasScope("approvals:decide") && covered.length > 0 ? (
        <div class="pane-foot">
          {progress === null ? null : (
            <Notice>
              {progress.done} of {progress.of} votes processed…
            </Notice>
          )}
          {critical === 0 ? null : <Notice kind="busy">{TEXTS.critical(critical, isSelection)}</Notice>}
          <VoteBar
            subject="selection"
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

/**
 * Returns the requests that a vote covers, as they are listed, and the number of the others. Others join only if the
 * person selects them or asks for them, because new, changed and further requests would otherwise appear between reading
 * and voting, or under a second click.
 */
function useCovered(items: readonly QueueItem[], isSelection: boolean, hasVoted: { current: boolean }) {
  const [, redraw] = useState(0);
  const listed = useRef<readonly Action[]>([]);
  const wasSelection = useRef(isSelection);
  const waiting = new Map(items.map(({ action }) => [action.id, action]));
  const findListed = (id: string): Action | undefined => listed.current.find((action) => action.id === id);
  const isCleared = wasSelection.current && !isSelection && !hasVoted.current;
  wasSelection.current = isSelection;
  const update = (): void => {
    listed.current = [...waiting.values()];
    hasVoted.current = false;
  };
  const isChosen = isSelection && [...waiting.keys()].some((id) => findListed(id) === undefined);
  if (listed.current.length === 0 || isChosen || isCleared) update();
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

/** Groups the requests by shape when they change. The tables do not change while votes are being recorded. */
function useShapes(actions: readonly Action[], isVoting: boolean): RequestGroup<Action>[] {
  const last = useRef<{ key: string; shapes: RequestGroup<Action>[] }>({ key: "", shapes: [] });
  const key = actions.map(({ id, request_hash }) => `${id} ${request_hash}`).join();
  if (!isVoting && last.current.key !== key) last.current = { key, shapes: groupByShape(actions) };
  return last.current.shapes;
}

/**
 * The right side of the inbox if no request is open: the pending requests, grouped by shape, or the selected requests
 * with a vote bar.
 */
import type { Ref } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { Notice } from "../ui/elements.tsx";
import { Icon } from "../ui/icons.tsx";
import { FirstSteps } from "./lazy-parts.tsx";
import type { QueueItem } from "./queue-state.ts";
import { groupByShape, type RequestGroup } from "./group-requests.ts";
import { findVoteAvailability } from "./vote-availability.ts";
import { TEXTS } from "./strings.ts";
import { RequestGroupTable } from "./table.tsx";
import { castVotes, summarizeVotes, type VoteCounts, type VoteResult } from "./vote.ts";
import { VoteBar, type VoteBarHandle } from "./vote-bar.tsx";

/** Maximum number of tables on the page. `MAX_GROUPED` is the maximum number of requests in all tables. */
const MAX_GROUPS = 6;
const MAX_GROUPED = 200;
/** Maximum number of tables of a selection. */
const MAX_BATCH_GROUPS = 20;

interface OverviewProps {
  rows: readonly QueueItem[];
  selected: ReadonlySet<string>;
  onSelect(ids: readonly string[], isSelected: boolean): void;
  canSelect: boolean;
}

export function QueueOverview({ rows, selected, onSelect, canSelect }: OverviewProps) {
  const [isSubmitting, setSubmitting] = useState(false);
  const open = rows.filter((item) => findVoteAvailability(item) === "open").slice(0, MAX_GROUPED);
  const groups = groupByShape(open.map(({ action }) => action)).filter((group) => group.rows.length > 1);
  return (
    <div class="pane overview">
      <div class="pane-scroll" tabIndex={0} role="region" aria-label="Similar requests">
        <p class="pick">
          <Icon name="inbox" /> {TEXTS.pickOne}
        </p>
        {groups.slice(0, MAX_GROUPS).map((group, i) => (
          <RequestGroupTable key={group.key} position={i + 1} {...{ group, selected, onSelect, canSelect }} />
        ))}
        <details class="drawer" onToggle={(event) => setSubmitting(event.currentTarget.open)}>
          <summary>{TEXTS.submit}</summary>
          {isSubmitting ? <FirstSteps text={TEXTS.submitHelp} /> : null}
        </details>
      </div>
    </div>
  );
}

interface BatchProps {
  items: readonly QueueItem[];
  handle: Ref<VoteBarHandle>;
  onSelect(ids: readonly string[], isSelected: boolean): void;
  onClear(): void;
  onBack(): void;
  onVoted(id: string, result: VoteResult): void;
  onDone(summary: string): void;
}

/**
 * Renders the selection. Votes on each request separately, so some votes may be recorded while others fail. The summary
 * counts both.
 */
export function SelectedRequests({ items, handle, onSelect, onClear, onBack, onVoted, onDone }: BatchProps) {
  const [done, setDone] = useState<number | null>(null);
  const groups = useGroups(items, done !== null);
  const selected = new Set(items.map(({ action }) => action.id));
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
    <section class="pane batch" aria-label="Selected requests">
      <div class="pane-scroll" tabIndex={0} role="region" aria-label="Requests to vote on">
        <button type="button" class="small back" onClick={onBack}>
          <Icon name="arrow-left" /> All requests
        </button>
        <p class="row">
          <strong>{TEXTS.selected(items.length)}</strong>
          <button type="button" class="small" onClick={onClear}>
            Select none
          </button>
        </p>
        <p class="quiet">Each request gets a separate vote. Open a request to see all of it.</p>
        {groups.slice(0, MAX_BATCH_GROUPS).map((group, i) => (
          <RequestGroupTable key={group.key} position={i + 1} {...{ group, selected, onSelect }} canSelect />
        ))}
        {groups.length > MAX_BATCH_GROUPS ? (
          <p class="quiet">{TEXTS.notGrouped(groups.length - MAX_BATCH_GROUPS)}</p>
        ) : null}
      </div>
      <div class="pane-foot">
        {done === null ? null : (
          <Notice>
            {done} of {items.length} votes processed…
          </Notice>
        )}
        {critical === 0 ? null : <Notice kind="busy">{TEXTS.critical(critical)}</Notice>}
        <VoteBar
          subject="selection"
          count={items.length}
          approvable={approvable.length}
          cast={cast}
          handle={handle}
          onLeave={() => document.querySelector<HTMLElement>(".rows [data-id]")?.focus()}
        />
      </div>
    </section>
  );
}

/** Groups the selection when it changes. The tables do not change while votes are being recorded. */
function useGroups(items: readonly QueueItem[], isVoting: boolean): RequestGroup<Action>[] {
  const last = useRef<{ key: string; groups: RequestGroup<Action>[] }>({ key: "", groups: [] });
  const key = items.map(({ action }) => action.id).join();
  if (!isVoting && last.current.key !== key)
    last.current = { key, groups: groupByShape(items.map(({ action }) => action)) };
  return last.current.groups;
}

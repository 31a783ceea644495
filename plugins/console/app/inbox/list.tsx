/** The list of requests. Renders only the rows in view, however many are loaded. */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { hasScope } from "../core/me.ts";
import { Age, MarkedValue, TimeLeft } from "../ui/elements.tsx";
import { Panels } from "../ui/panels.tsx";
import { RequestHeadline, RiskBadge } from "../ui/request-view.tsx";
import { findHeldVote } from "./held-votes.ts";
import { uniqueRequestLabel, OwnVoteBadge } from "./request-pane.tsx";
import type { RequestOutcome } from "./outcome.tsx";
import type { QueueItem } from "./queue-state.ts";
import { countApprovals, findVoteAvailability } from "./vote-availability.ts";

/** Height of a row in pixels, for a pointer and for a finger. The style sheet must have the same values. */
const [ROW, ONE_COLUMN_ROW] = [40, 60];
const OVERSCAN = 6;

/** Whether the layout has one column: either the list or the request. The same condition is in inbox.css. */
export const oneColumn = matchMedia("(max-width: 60rem), (max-height: 34rem)");

interface Props {
  rows: readonly QueueItem[];
  open: string | null;
  selected: ReadonlySet<string>;
  onOpen(id: string): void;
  /** @param isRange whether to select all rows from the last selected row to this row */
  onSelect(id: string, isRange: boolean): void;
  /** Called when the last loaded row is rendered, shortly before it comes into view. */
  onEnd(): void;
}

export function RequestList({ rows, open, selected, onOpen, onSelect, onEnd }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer(scroller, rows.length, (index) => rows[index]?.action.id ?? index);
  const items = virtual.getVirtualItems();
  const openIndex = rows.findIndex(({ action }) => action.id === open);
  // Id of an opened request whose row does not have the focus yet. The row gets the focus once it is rendered, unless
  // the person is typing or in a dialog.
  const unfocused = useRef<string | null>(null);
  useEffect(() => {
    if (openIndex < 0) return;
    unfocused.current = open;
    virtual.scrollToIndex(openIndex, { align: "auto" });
  }, [open, openIndex >= 0]);
  useEffect(() => {
    const row = scroller.current?.querySelector<HTMLElement>(`[data-id="${unfocused.current}"]`);
    if (unfocused.current === null || row === null || row === undefined) return;
    unfocused.current = null;
    if (!document.activeElement?.closest("textarea, input:not([type=checkbox]), dialog"))
      row.focus({ preventScroll: true });
  });
  const last = items.at(-1)?.index ?? -1;
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - 1) onEnd();
  }, [last, rows.length]);
  return (
    <div class="rows" ref={scroller}>
      <ul style={{ height: `${virtual.getTotalSize()}px` }} aria-label="Requests">
        {items.map(({ key, index, start }) => {
          const item = rows[index];
          if (item === undefined) return null;
          const { id } = item.action;
          return (
            <li
              key={key}
              style={{ transform: `translateY(${start}px)` }}
              aria-setsize={rows.length}
              aria-posinset={index + 1}
            >
              <Row
                item={item}
                isOpen={id === open}
                isSelected={selected.has(id)}
                onOpen={() => onOpen(id)}
                onSelect={(isRange) => onSelect(id, isRange)}
              />
            </li>
          );
        })}
      </ul>
    </div>
  );
}

interface RowProps {
  item: QueueItem;
  isOpen: boolean;
  isSelected: boolean;
  onOpen(): void;
  onSelect(isRange: boolean): void;
}

function Row({ item, isOpen, isSelected, onOpen, onSelect }: RowProps) {
  const { action, outcome } = item;
  const availability = findVoteAvailability(item);
  const held = findHeldVote(action.id);
  const label = uniqueRequestLabel(action);
  return (
    <div
      class={`row-item is-${availability.replace(" ", "-")} ${isOpen ? "current" : ""} ${isSelected ? "selected" : ""}`}
    >
      {hasScope("approvals:decide") ? (
        <input
          type="checkbox"
          aria-label={`Select ${label}`}
          checked={isSelected && availability === "open"}
          disabled={availability !== "open"}
          onClick={(event) => onSelect(event.shiftKey)}
        />
      ) : null}
      <button
        type="button"
        data-id={action.id}
        {...(isOpen ? { "aria-current": "true" as const } : {})}
        onClick={(event) => (event.shiftKey ? onSelect(true) : onOpen())}
      >
        <span class="row-line">
          <span class="row-title">
            <RequestHeadline action={action} />
          </span>
          <span class="row-side">
            {held !== null ? (
              <span class={`held-mark ${held.approve ? "good" : "bad"}`}>{held.approve ? "approving" : "denying"}</span>
            ) : outcome === null ? (
              action.expires_at === null ? null : (
                <TimeLeft at={action.expires_at} short />
              )
            ) : (
              <span class={`settled-mark ${outcome.kind}`}>{describeOutcome(outcome)}</span>
            )}
          </span>
        </span>
        <span class="row-line">
          <span class="row-who">
            <MarkedValue value={action.agent_id} />
            {outcome === null ? <Panels place="request-row" action={action} /> : null}
          </span>
          <span class="row-side">
            {outcome === null ? <OwnVoteBadge action={action} /> : null}
            {(action.approvals_needed ?? 1) > 1 ? (
              <span class="quiet">
                {countApprovals(action)}/{action.approvals_needed}
              </span>
            ) : null}
            <RiskBadge risk={action.risk_level} />
            <Age at={action.created_at} />
            <span class="visually-hidden">, {action.id.slice(-6)}</span>
          </span>
        </span>
      </button>
    </div>
  );
}

/** Returns how the request ended, in a few words. */
function describeOutcome({ kind, isMine }: RequestOutcome): string {
  const word = { good: "approved", bad: "denied", busy: "closed" }[kind];
  return isMine === true && kind !== "busy" ? `${word} by you` : word;
}

function useVirtualizer(
  scroller: { current: HTMLDivElement | null },
  count: number,
  keyOf: (index: number) => string | number,
): Virtualizer<HTMLDivElement, HTMLElement> {
  const [, redraw] = useState(0);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => (oneColumn.matches ? ONE_COLUMN_ROW : ROW),
    getItemKey: keyOf,
    overscan: OVERSCAN,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    initialRect: { width: 400, height: 800 },
    onChange: () => redraw((n) => n + 1),
  };
  const [virtual] = useState(() => new Virtualizer<HTMLDivElement, HTMLElement>(options));
  virtual.setOptions(options);
  useEffect(() => virtual._didMount(), []);
  useEffect(() => {
    const measure = (): void => virtual.measure();
    oneColumn.addEventListener("change", measure);
    return () => oneColumn.removeEventListener("change", measure);
  }, []);
  useLayoutEffect(() => virtual._willUpdate());
  return virtual;
}

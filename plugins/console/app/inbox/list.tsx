/** The list of groups, with the requests of the open one. Renders only the rows in view, however many are loaded. */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { hasScope } from "../core/me.ts";
import { MarkedValue, TimeLeft } from "../ui/elements.tsx";
import { formatCounted, renderPlain } from "../ui/format.ts";
import { Panels } from "../ui/panels.tsx";
import { PreviewText } from "../ui/preview-text.tsx";
import { describeRequest, RequestHeadline, RiskBadge } from "../ui/request-view.tsx";
import { findHeldVote } from "./held-votes.ts";
import { uniqueRequestLabel, OwnVoteBadge } from "./request-pane.tsx";
import type { RequestOutcome } from "./outcome.tsx";
import { mayStart } from "./recall.tsx";
import type { Group, QueueItem } from "./queue-state.ts";
import { TEXTS } from "./strings.ts";
import { countApprovals, findVoteAvailability } from "./vote-availability.ts";

/** Height of a row in pixels, for a pointer and for a finger. The style sheet must have the same values. */
const [ROW, ONE_COLUMN_ROW] = [40, 68];
const OVERSCAN = 6;

/** Whether the layout has one column: either the list or the request. The same condition is in inbox.css. */
export const oneColumn = matchMedia("(max-width: 60rem), (max-height: 34rem)");

/** A line of the list: a group, a request, or a button that loads more requests of the open group. */
export type Line =
  | { kind: "group"; group: Group; isOpen: boolean }
  | { kind: "request"; item: QueueItem; group: string | undefined; isInGroup: boolean }
  | { kind: "more"; left: number };

interface Props {
  lines: readonly Line[];
  /** Id of the open request. */
  open: string | null;
  selected: ReadonlySet<string>;
  onOpen(line: Extract<Line, { kind: "request" }>): void;
  onOpenGroup(group: Group): void;
  /** @param isRange whether to select all rows from the last selected row to this row */
  onSelect(id: string, isRange: boolean): void;
  onMore(): void;
}

export function RequestList({ lines, open, selected, onOpen, onOpenGroup, onSelect, onMore }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer(scroller, lines.length, (index) => keyOf(lines[index]));
  const openIndex = lines.findIndex((line) => line.kind === "request" && line.item.action.id === open);
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
  return (
    <div class="rows" ref={scroller}>
      <ul style={{ height: `${virtual.getTotalSize()}px` }} aria-label="Requests">
        {virtual.getVirtualItems().map(({ key, index, start }) => {
          const line = lines[index];
          if (line === undefined) return null;
          return (
            <li
              key={key}
              style={{ transform: `translateY(${start}px)` }}
              aria-setsize={lines.length}
              aria-posinset={index + 1}
            >
              {line.kind === "group" ? (
                <GroupRow {...line} onOpen={() => onOpenGroup(line.group)} />
              ) : line.kind === "more" ? (
                <div class="row-item">
                  <button type="button" class="quiet" onClick={onMore}>
                    {TEXTS.more(line.left)}
                  </button>
                </div>
              ) : (
                <Row
                  {...line}
                  isOpen={line.item.action.id === open}
                  isSelected={selected.has(line.item.action.id)}
                  onOpen={() => onOpen(line)}
                  onSelect={(isRange) => onSelect(line.item.action.id, isRange)}
                />
              )}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

const keyOf = (line: Line | undefined): string =>
  line?.kind === "group" ? line.group.id : line?.kind === "request" ? line.item.action.id : "more";

/** Renders what the requests of a group would do, in one sentence with the values of all of them. */
export function GroupSentence({ group: { tool, operation, preview, headline } }: { group: Group }) {
  if (preview !== null) return <PreviewText text={preview} />;
  return (
    <>
      <MarkedValue value={`${tool} ${operation}`} />
      {headline === null ? null : (
        <span class="row-value">
          {" "}
          <MarkedValue value={headline} />
        </span>
      )}
    </>
  );
}

/** Returns the sentence of a group as plain text. */
export const describeGroup = ({ tool, operation, preview, headline }: Group): string =>
  preview ?? renderPlain(`${tool} ${operation}${headline === null ? "" : `, ${headline}`}`);

/** Renders a group. A group of one request that is not loaded yet is that request's row. */
function GroupRow({ group, isOpen, onOpen }: { group: Group; isOpen: boolean; onOpen(): void }) {
  const { count, agents, agent_count, risk_level, expires_at, first } = group;
  return (
    <div class={`row-item is-group ${isOpen ? "is-expanded" : ""}`}>
      <button
        type="button"
        data-group={group.id}
        {...(count === 1 ? { "data-id": first } : { "aria-expanded": isOpen })}
        title={describeGroup(group)}
        onClick={onOpen}
      >
        <span class="row-title">
          <GroupSentence group={group} />
        </span>
        <span class="row-line">
          <span class="row-who">
            <RiskBadge risk={risk_level} />
            {agent_count === 1 ? <MarkedValue value={agents[0] ?? ""} /> : formatCounted(agent_count, "agent")}
          </span>
          <span class="row-side">
            {count === 1 ? null : <span class="badge">{formatCounted(count, "request")}</span>}
            {expires_at === null ? null : <TimeLeft at={expires_at} short />}
          </span>
        </span>
      </button>
    </div>
  );
}

interface RowProps {
  item: QueueItem;
  /** Whether the row is below its group's row, so that it can be selected. */
  isInGroup: boolean;
  isOpen: boolean;
  isSelected: boolean;
  onOpen(): void;
  onSelect(isRange: boolean): void;
}

function Row({ item, isInGroup, isOpen, isSelected, onOpen, onSelect }: RowProps) {
  const { action, outcome } = item;
  const availability = findVoteAvailability(item);
  const held = findHeldVote(action.id);
  return (
    <div
      class={`row-item is-${availability.replace(" ", "-")} ${isOpen ? "current" : ""} ${isSelected ? "selected" : ""}`}
    >
      {isInGroup && hasScope("approvals:decide") ? (
        <input
          type="checkbox"
          aria-label={`Select ${uniqueRequestLabel(action)}`}
          checked={isSelected && availability === "open"}
          disabled={availability !== "open"}
          onClick={(event) => onSelect(event.shiftKey)}
        />
      ) : null}
      <button
        type="button"
        data-id={action.id}
        {...(isOpen ? { "aria-current": "true" as const } : {})}
        title={describeRequest(action)}
        onClick={(event) => (event.shiftKey && isInGroup ? onSelect(true) : onOpen())}
      >
        <span class="row-title">
          <RequestHeadline action={action} />
        </span>
        <span class="row-line">
          <span class="row-who">
            <RiskBadge risk={action.risk_level} />
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
            {held !== null ? (
              <span class={`held-mark ${held.approve ? "good" : "bad"}`}>{held.approve ? "approving" : "denying"}</span>
            ) : outcome === null ? (
              action.expires_at === null ? null : (
                <TimeLeft at={action.expires_at} short />
              )
            ) : (
              <span class={`settled-mark ${outcome.kind}`}>{describeOutcome(outcome, action)}</span>
            )}
            <span class="visually-hidden">, {action.id.slice(-6)}</span>
          </span>
        </span>
      </button>
    </div>
  );
}

/** Returns how the request ended, in a few words: "approved by you, starts now". */
function describeOutcome({ kind, isMine }: RequestOutcome, action: QueueItem["action"]): string {
  const word = { good: "approved", bad: "denied", busy: "closed" }[kind];
  if (isMine !== true || kind === "busy") return word;
  return `${word} by you${kind === "good" && mayStart(action) ? ", starts now" : ""}`;
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

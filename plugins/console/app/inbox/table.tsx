/**
 * Renders requests of the same shape as a table. Its columns are the parameters that differ. Its first rows are the
 * outliers.
 */
import { useState } from "preact/hooks";
import { encodeSegment } from "../core/api.ts";
import type { Action } from "../core/api-types.ts";
import { Badge, MarkedValue, TimeLeft } from "../ui/elements.tsx";
import { formatCounted, renderPlain } from "../ui/format.ts";
import { describeRequest, RequestHeadline } from "../ui/request-view.tsx";
import { uniqueRequestLabel } from "./request-pane.tsx";
import type { RequestGroup } from "./group-requests.ts";

/**
 * Number of rows of a table that are rendered at first. Low, so that the tab stays responsive when all tables are open.
 */
const FIRST_ROWS = 20;
const MORE_ROWS = 50;
/** Maximum number of common members that are displayed. */
const MAX_COMMON = 8;

interface Props {
  group: RequestGroup<Action>;
  selected: ReadonlySet<string>;
  onSelect(ids: readonly string[], isSelected: boolean): void;
  canSelect: boolean;
  /**
   * Position of the group among the displayed groups, from 1. Distinguishes groups with the same tool and operation.
   */
  position: number;
}

export function RequestGroupTable({ group, selected, onSelect, canSelect, position }: Props) {
  const [count, setCount] = useState(FIRST_ROWS);
  const { tool, operation, columns, moreColumns, common, rows } = group;
  const ids = rows.map(({ action }) => action.id);
  const name = renderPlain(`${tool} ${operation}`);
  const isAll = ids.every((id) => selected.has(id));
  return (
    <section class="group">
      <h2>
        {canSelect ? (
          <input
            type="checkbox"
            aria-label={`Select all ${ids.length} of ${name}`}
            checked={isAll}
            onChange={() => onSelect(ids, !isAll)}
          />
        ) : null}
        <MarkedValue value={name} /> <span class="quiet">{formatCounted(rows.length, "request")}</span>
      </h2>
      <div class="scroll" role="region" aria-label={`Group ${position}: requests of ${name}`} tabIndex={0}>
        <table>
          <thead>
            <tr>
              {canSelect ? <th scope="col">Select</th> : null}
              <th scope="col">Risk</th>
              <th scope="col">What</th>
              <th scope="col">Agent</th>
              {columns.map((column) => (
                <th key={column} scope="col">
                  <MarkedValue value={column} />
                </th>
              ))}
              <th scope="col">Time left</th>
              <th scope="col">Request</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, count).map(({ action, cells }) => (
              <tr key={action.id}>
                {canSelect ? (
                  <td>
                    <input
                      type="checkbox"
                      aria-label={`Select ${uniqueRequestLabel(action)}`}
                      checked={selected.has(action.id)}
                      onChange={() => onSelect([action.id], !selected.has(action.id))}
                    />
                  </td>
                ) : null}
                <td>{action.risk_level === null ? "not rated" : <Badge value={action.risk_level} />}</td>
                <td class="headline" title={renderPlain(describeRequest(action))}>
                  <RequestHeadline action={action} />
                </td>
                <td>
                  <MarkedValue value={action.agent_id} />
                </td>
                {cells.map(({ text, isOutlier }, i) => (
                  <td
                    key={columns[i]}
                    class={isOutlier ? "outlier" : ""}
                    {...(isOutlier ? { title: "unusual among these requests" } : {})}
                  >
                    <MarkedValue value={text} />
                    {isOutlier ? <span class="visually-hidden"> (unusual)</span> : null}
                  </td>
                ))}
                <td>{action.expires_at === null ? null : <TimeLeft at={action.expires_at} short />}</td>
                <td>
                  <a href={`#/approvals/${encodeSegment(action.id)}`} aria-label={`Open ${uniqueRequestLabel(action)}`}>
                    Open
                  </a>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > count ? (
        <button type="button" class="fold" onClick={() => setCount(count + MORE_ROWS)}>
          … {formatCounted(rows.length - count, "more request")}
        </button>
      ) : null}
      <p class="quiet common">
        {moreColumns.length === 0 ? null : (
          <>
            Also different: <MarkedValue value={moreColumns.join(", ")} />.{" "}
          </>
        )}
        {common.length === 0 || rows.length < 2 ? null : "The same in all: "}
        {common.slice(0, MAX_COMMON).map(({ name: member, text }, i) => (
          <span key={member}>
            {i === 0 ? "" : "; "}
            <MarkedValue value={member} /> <MarkedValue value={text} />
          </span>
        ))}
        {common.length > MAX_COMMON ? `; and ${formatCounted(common.length - MAX_COMMON, "more member")}` : null}
      </p>
    </section>
  );
}

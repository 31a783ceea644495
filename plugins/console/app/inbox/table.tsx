/**
 * Renders requests of the same shape as a table. Its columns are the parameters that differ. Its first rows are the
 * outliers.
 */
import type { Action } from "../core/api-types.ts";
import { Badge, MarkedValue, TimeLeft } from "../ui/elements.tsx";
import { formatCounted, renderPlain } from "../ui/format.ts";
import { describeRequest, RequestHeadline } from "../ui/request-view.tsx";
import { uniqueRequestLabel } from "./request-pane.tsx";
import type { RequestGroup } from "./group-requests.ts";

/** Maximum number of common members that are displayed. */
const MAX_COMMON = 16;
/** Matches the text of a number, so that a column of numbers is aligned. */
const NUMBER = /^-?\d+(\.\d+)?$/;

interface Props {
  group: RequestGroup<Action>;
  /** Position of the table among those of the pane, from 1, for its label. */
  position: number;
  /** Returns the address of a request. */
  addressOf(id: string): string;
}

export function RequestGroupTable({ group, position, addressOf }: Props) {
  const { tool, operation, columns, moreColumns, common, rows } = group;
  const agent = rows[0]?.action.agent_id ?? "";
  const areNumbers = columns.map((_, i) => rows.every(({ cells }) => NUMBER.test(cells[i]?.text ?? "")));
  const hasAgents = rows.some(({ action }) => action.agent_id !== agent);
  return (
    <section class="group">
      <div
        class="scroll"
        role="region"
        aria-label={renderPlain(`Group ${position}: requests of ${tool} ${operation}`)}
        tabIndex={0}
      >
        <table>
          <thead>
            <tr>
              <th scope="col">Risk</th>
              <th scope="col">What</th>
              <th scope="col">Time left</th>
              {hasAgents ? <th scope="col">Agent</th> : null}
              {columns.map((column, i) => (
                <th key={column} scope="col" class={areNumbers[i] ? "number" : ""}>
                  <MarkedValue value={column} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ action, cells }) => (
              <tr key={action.id}>
                <td>{action.risk_level === null ? "not rated" : <Badge value={action.risk_level} />}</td>
                <td class="headline" title={describeRequest(action)}>
                  <a href={addressOf(action.id)} aria-label={`Open ${uniqueRequestLabel(action)}`}>
                    <RequestHeadline action={action} />
                  </a>
                </td>
                <td>{action.expires_at === null ? null : <TimeLeft at={action.expires_at} short />}</td>
                {hasAgents ? (
                  <td>
                    <MarkedValue value={action.agent_id} />
                  </td>
                ) : null}
                {cells.map(({ text, isOutlier }, i) => (
                  <td
                    key={columns[i]}
                    class={`${isOutlier ? "outlier" : ""} ${areNumbers[i] ? "number" : ""}`}
                    {...(isOutlier ? { title: "unusual among these requests" } : {})}
                  >
                    <MarkedValue value={text} />
                    {isOutlier ? <span class="visually-hidden"> (unusual)</span> : null}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="quiet common">
        {hasAgents ? null : (
          <>
            Agent: <MarkedValue value={agent} />.{" "}
          </>
        )}
        {moreColumns.length === 0 ? null : (
          <>
            Also different: <MarkedValue value={moreColumns.join(", ")} />.{" "}
          </>
        )}
        {common.length === 0 ? null : rows.length < 2 ? "Parameters: " : "The same in all: "}
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

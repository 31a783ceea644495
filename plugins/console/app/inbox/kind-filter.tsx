/** Selects one kind of request: the tool and the operation. The service counts the kinds over the whole queue. */
import { useEffect, useState } from "preact/hooks";
import { request } from "../core/api.ts";
import { formatCounted, formatShortDuration, renderPlain } from "../ui/format.ts";
import { currentTimeMs, useLoad } from "../ui/hooks.ts";
import type { ListQuery } from "./queue-state.ts";

/** Minimum time between two counts of the same view. Milliseconds. */
const COUNT_EVERY_MS = 10_000;
const TEXTS = { label: "Kind of request", all: "All kinds", other: "Another kind", more: "and others" } as const;

interface Props {
  query: ListQuery;
  /** Number of requests in the view. If it changes, the kinds are counted again. */
  total: number | null;
  onChange(query: ListQuery): void;
}

export function KindFilter({ query, total, onChange }: Props) {
  const { tool, operation, sort: _, ...view } = query;
  const round = useRound(total);
  const { data } = useLoad(
    (signal) => request("GET /v1/approvals/kinds", { query: view, signal }),
    [JSON.stringify(view), round],
  );
  const kinds = data?.kinds ?? [];
  const isChosen = tool !== undefined || operation !== undefined;
  if (kinds.length < 2 && !isChosen) return null;
  const chosen = kinds.findIndex((kind) => kind.tool === tool && kind.operation === operation);
  const choose = (value: string): void => {
    const { tool: _tool, operation: _operation, ...rest } = query;
    const kind = kinds[Number(value)];
    onChange(value === "" || kind === undefined ? rest : { ...rest, tool: kind.tool, operation: kind.operation });
  };
  return (
    <select
      class="kinds"
      aria-label={TEXTS.label}
      value={isChosen ? String(chosen) : ""}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      <option value="">{TEXTS.all}</option>
      {isChosen && chosen < 0 ? <option value="-1">{TEXTS.other}</option> : null}
      {kinds.map((kind, i) => (
        <option key={`${kind.tool} ${kind.operation}`} value={String(i)}>
          {describeKind(kind)}
        </option>
      ))}
      {data?.complete === false ? <option disabled>{TEXTS.more}</option> : null}
    </select>
  );
}

type Kind = { tool: string; operation: string; count: number; risk_level: string | null; expires_at: string | null };

/** Returns "stripe refund: 14 requests, medium risk, 3h left". */
function describeKind({ tool, operation, count, risk_level, expires_at }: Kind): string {
  const left = expires_at === null ? null : Date.parse(expires_at) - currentTimeMs.value;
  const parts = [
    formatCounted(count, "request"),
    risk_level === null ? "" : `${risk_level} risk`,
    left === null || left <= 0 ? "" : `${formatShortDuration(left)} left`,
  ];
  return `${renderPlain(`${tool} ${operation}`)}: ${parts.filter((part) => part !== "").join(", ")}`;
}

/** Returns a number that changes after `total` has changed, at most every `COUNT_EVERY_MS`. */
function useRound(total: number | null): number {
  const [state, setState] = useState({ round: 0, total, at: 0 });
  useEffect(() => {
    if (total === state.total) return undefined;
    const wait = Math.max(0, state.at + COUNT_EVERY_MS - performance.now());
    const timer = setTimeout(() => setState(({ round }) => ({ round: round + 1, total, at: performance.now() })), wait);
    return () => clearTimeout(timer);
  }, [total, state]);
  return state.round;
}

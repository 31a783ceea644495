/** Renders bars in the given order. Each number links to the items that it counts, if a page lists them. */
import type { ComponentChildren } from "preact";
import { MarkedValue } from "./elements.tsx";
import { renderPlain } from "./format.ts";
import { RowPages } from "./row-pages.tsx";

export interface Bar {
  /** Unique within the list. Displayed if there is no label. */
  name: string;
  label?: ComponentChildren;
  count: number;
  /** Address of the list of counted items. */
  href?: string | undefined;
}

/** Maximum number of rendered bars. */
const ROWS = 10;

/** @param props.others describes the items that the list omits; empty if it omits none */
export function Bars({ label, rows, others = "" }: { label: string; rows: readonly Bar[]; others?: string }) {
  const most = Math.max(1, ...rows.map(({ count }) => count));
  return (
    <>
      <RowPages rows={rows} keyOf={({ name }) => name} what={label.toLowerCase()} size={ROWS} order="inOrder">
        {(shown) => (
          <ul class="bars" aria-label={label}>
            {shown.map((row) => (
              <li key={row.name}>
                <span class="bar-name">{row.label ?? <MarkedValue value={row.name} />}</span>
                <span class="bar" aria-hidden="true">
                  <span style={{ width: `${(row.count / most) * 100}%` }} />
                </span>
                <span class="bar-count">
                  <LinkedCount count={row.count} of={row.name} href={row.href} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </RowPages>
      {others === "" ? null : <p class="quiet">{others}</p>}
    </>
  );
}

/**
 * Renders a number as a link to the items that it counts.
 * @param props.of name of the items, for screen readers
 */
export function LinkedCount({ count, of, href }: { count: number; of: string; href?: string | undefined }) {
  const text = count.toLocaleString();
  if (href === undefined || count === 0) return <>{text}</>;
  return (
    <a href={href} aria-label={renderPlain(`${text}: ${of}`)}>
      {text}
    </a>
  );
}

/** Renders a number that summarizes a page, with a link to the items that it counts. */
export function SummaryFigure({ name, value, href }: { name: string; value: string; href?: string | undefined }) {
  return (
    <div class="figure">
      <span class="quiet">{name}</span>
      <strong>
        {href === undefined ? (
          value
        ) : (
          <a href={href} aria-label={renderPlain(`${value} ${name}`)}>
            {value}
          </a>
        )}
      </strong>
    </div>
  );
}

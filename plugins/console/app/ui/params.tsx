/**
 * Renders the parameters of an action: first the members in `shown_first`, then the others. Lines beyond a limit are
 * hidden behind buttons that state how many they hide.
 */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import {
  findHeadline,
  findUnit,
  formatMemberCount,
  MAX_LINES,
  formatHiddenLines,
  outline,
  type Outline,
} from "../../../../src/browser.ts";
import { JsonBlock, MarkedValue } from "./elements.tsx";
import { renderPlain } from "./format.ts";

/** Number of lines that one click expands. */
const STEP = 50;

type Unfold = (pointer: string, lines: number) => void;

interface FoldProps {
  pointer: string;
  /** Name of the member, for the button's label. */
  of: string;
  unfold: Unfold;
  /** Whether the maximum number of lines is reached, so that nothing more can be expanded. */
  isFull: boolean;
}

function Fold({ more, pointer, of, unfold, isFull }: FoldProps & { more: number }) {
  if (more === 0) return null;
  if (isFull) return <p class="fold quiet">{formatHiddenLines(more)}: open “As JSON” to see all</p>;
  return (
    <button
      type="button"
      class="fold"
      aria-label={renderPlain(`${formatHiddenLines(more)} of ${of}`)}
      onClick={() => unfold(pointer, Math.min(more, STEP))}
    >
      {formatHiddenLines(more)}
    </button>
  );
}

function Value({ node, ...fold }: FoldProps & { node: Outline }) {
  switch (node.kind) {
    case "value":
      return <code>{node.text}</code>;
    case "empty":
      return <span class="quiet">{node.list ? "empty list" : "empty object"}</span>;
    case "json":
      return (
        <>
          <pre class="deep">
            <MarkedValue value={node.text} lines />
          </pre>
          <Fold {...fold} more={node.more} />
        </>
      );
    case "text":
      return (
        <>
          {node.quoted ? (
            <>
              <span class="lines">
                “<MarkedValue value={node.text} lines />”
              </span>{" "}
              <span class="quiet">(text)</span>
            </>
          ) : (
            <span class="lines">
              <MarkedValue value={node.text} lines />
            </span>
          )}
          <Fold {...fold} more={node.more} />
        </>
      );
    case "members":
      return <Members node={node} {...fold} />;
  }
}

function Members({ node, ...fold }: FoldProps & { node: Extract<Outline, { kind: "members" }> }) {
  const { pointer, unfold, isFull } = fold;
  const texts = Object.fromEntries(
    node.members.flatMap(({ name, value }) =>
      value.kind === "value" || value.kind === "text" ? [[name, value.text]] : [],
    ),
  );
  return (
    <>
      {pointer !== "" && node.more > 0 ? <span class="quiet">{formatMemberCount(node)}</span> : null}
      {node.members.length === 0 ? null : (
        <dl class={node.list ? "params list" : "params"}>
          {node.members.map(({ name, pointer: at, value }) => (
            <div key={at}>
              <dt>{node.list ? name : <MarkedValue value={name} />}</dt>
              <dd>
                <Value node={value} pointer={at} of={name} unfold={unfold} isFull={isFull} />
                {node.list ? null : <Unit of={name} texts={texts} />}
              </dd>
            </div>
          ))}
        </dl>
      )}
      <Fold {...fold} more={node.more} />
    </>
  );
}

/** Renders the currency or unit of an amount, which another member states. */
function Unit({ of, texts }: { of: string; texts: Readonly<Record<string, string>> }) {
  const unit = findUnit(texts, of);
  return unit === null ? null : <span class="quiet"> {renderPlain(unit)}</span>;
}

interface ParamsProps {
  value: Record<string, unknown>;
  label: string;
  /** JSON pointer of `value` in the request, such as /params. */
  root: string;
  /** JSON pointers of the members to display first, from the action's `shown_first`. */
  first?: readonly string[] | undefined;
  lines?: number;
}

/** Renders an object with a limited number of lines. The reader expands the rest step by step. */
export function Params({ value, label, root, first, lines = 40 }: ParamsProps) {
  const [unfolded, setUnfolded] = useState<ReadonlyMap<string, number>>(new Map());
  const drawn = useMemo((): ComponentChildren => {
    const isFull = lines + [...unfolded.values()].reduce((sum, count) => sum + count, 0) >= MAX_LINES;
    const unfold: Unfold = (pointer, count) =>
      setUnfolded((old) => new Map(old).set(pointer, (old.get(pointer) ?? 0) + count));
    const node = outline(value, { root, lines, unfolded, ...(first === undefined ? {} : { first }) });
    return <Value node={node} pointer={root} of={label} unfold={unfold} isFull={isFull} />;
  }, [value, first, lines, unfolded]);
  if (Object.keys(value).length === 0) return <p class="quiet">None.</p>;
  return (
    <div class="asked-for" role="group" aria-label={label}>
      {drawn}
    </div>
  );
}

interface DescribedAction {
  params: Record<string, unknown>;
  shown_first?: readonly string[] | undefined;
}

/** Returns the parameter that distinguishes an action from others of its kind, safe to display; null if there is none. */
export function findHeadlineMember(action: DescribedAction): { name: string; value: string } | null {
  const found = findHeadline(action);
  return found === null ? null : { name: renderPlain(found.name), value: renderPlain(found.value) };
}

/** Returns the headline member as text for labels, such as "amount 120"; "" if there is none. */
export function formatHeadline(action: DescribedAction): string {
  const found = findHeadlineMember(action);
  return found === null ? "" : `${found.name} ${found.value.slice(0, 60)}`;
}

/** Renders a collapsed value. When expanded, it shows the JSON. */
export function JsonDisclosure({
  value,
  label,
  summary = "As JSON",
}: {
  value: unknown;
  label: string;
  summary?: string;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen ? <JsonBlock value={value} label={label} /> : null}
    </details>
  );
}

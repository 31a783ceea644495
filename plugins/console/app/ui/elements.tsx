/** Elements that pages share. `MarkedValue` and `JsonBlock` make hidden characters in text from the API visible. */
import { useComputed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { TextPart } from "../../../../src/browser.ts";
import { ApiError, checkReachability, watchReachability, type ResponseFault } from "../core/api.ts";
import { formatDay, formatDuration, markText, renderPlain, formatShortDuration, formatTime } from "./format.ts";
import { currentTimeMs } from "./hooks.ts";
import { Icon } from "./icons.tsx";

/** @param props.lines whether to keep line feeds */
export function MarkedValue({ value, lines = false }: { value: unknown; lines?: boolean }) {
  return <bdi>{markText(String(value), { lines }).map(renderPart)}</bdi>;
}

function renderPart({ text, kind, mark }: TextPart) {
  if (kind === "plain") return text;
  if (kind === "hidden")
    return (
      <span class="hidden-character" title={mark ?? ""}>
        {text}
      </span>
    );
  return (
    <span class="look-alike">
      {text}
      <span class="hidden-character">{mark}</span>
    </span>
  );
}

/** Renders text on one line, shortened to the width of its column. The title has the whole text. */
export function OneLine({ text, short = false }: { text: string; short?: boolean }) {
  if (text === "") return null;
  return (
    <span class={short ? "one-line short quiet" : "one-line quiet"} title={renderPlain(text)}>
      <MarkedValue value={text} />
    </span>
  );
}

/** Renders a complete value as JSON. */
export function JsonBlock({ value, label }: { value: unknown; label: string }) {
  return (
    <pre class="data" tabIndex={0} role="region" aria-label={label}>
      <MarkedValue value={JSON.stringify(value, null, 2)} lines />
    </pre>
  );
}

/** Renders the day of a time, for periods. The title has the exact time. */
export function Day({ at }: { at: string }) {
  return (
    <time dateTime={at} title={formatTime(at)}>
      {formatDay(at)}
    </time>
  );
}

/** Renders a time in the reader's time zone; a dash for null. */
export function Time({ at }: { at: string | null | undefined }) {
  if (at === null || at === undefined) return <span class="quiet">–</span>;
  return (
    <time dateTime={at} title={at}>
      {formatTime(at)}
    </time>
  );
}

/** Renders how long ago something happened, such as "12m". Updates without redrawing the page. */
export function Age({ at }: { at: string }) {
  const text = useComputed(() => formatShortDuration(currentTimeMs.value - Date.parse(at)));
  return (
    <time class="age" dateTime={at} title={formatTime(at)}>
      {text}
    </time>
  );
}

/** Renders how long ago something happened, in a sentence or without a heading: "12m ago". */
export function Ago({ at }: { at: string }) {
  return (
    <span class="quiet nowrap">
      <Age at={at} /> ago
    </span>
  );
}

/** Renders how long it takes until something begins, such as "in 3 h 20 min". */
export function TimeUntil({ at }: { at: string }) {
  const text = useComputed(() => `in ${formatDuration(Date.parse(at) - currentTimeMs.value)}`);
  return (
    <span class="nowrap" title={formatTime(at)}>
      {text}
    </span>
  );
}

/** Renders the time until a deadline. Updates without redrawing the page. */
export function TimeLeft({ at, short = false }: { at: string; short?: boolean }) {
  const text = useComputed(() => {
    const ms = Date.parse(at) - currentTimeMs.value;
    return ms <= 0
      ? short
        ? "expired"
        : "time is up"
      : `${short ? formatShortDuration(ms) : formatDuration(ms)} left`;
  });
  const style = useComputed(() => (Date.parse(at) - currentTimeMs.value < 60_000 ? "left soon" : "left"));
  return (
    <span class={style} title={formatTime(at)}>
      {text}
    </span>
  );
}

export function Hash({ value }: { value: string }) {
  return <code class="hash">{value}</code>;
}

const KINDS: Readonly<Record<string, string>> = {
  allowed: "good",
  approved: "good",
  succeeded: "good",
  active: "good",
  live: "good",
  allow: "good",
  executing: "busy",
  unknown: "bad",
  pending_approval: "busy",
  require_approval: "busy",
  denied: "bad",
  failed: "bad",
  deny: "bad",
  suspended: "bad",
  revoked: "bad",
  expired: "quiet",
  cancelled: "quiet",
  inactive: "quiet",
  low: "good",
  medium: "busy",
  high: "bad",
  critical: "bad",
};
const WORDS: Readonly<Record<string, string>> = {
  pending_approval: "pending",
  require_approval: "requires approval",
};

export function Badge({ value, label }: { value: string; label?: string }) {
  return (
    <span class={`badge ${KINDS[value] ?? ""}`}>
      <MarkedValue value={label ?? WORDS[value] ?? value} />
    </span>
  );
}

/** Renders pairs of names and values. Omits values that are null or undefined. */
export function FactList({ rows }: { rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{typeof value === "string" || typeof value === "number" ? <MarkedValue value={value} /> : value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Renders an error with its list of faults. */
export function ErrorNotice({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  if (error === null || error === undefined) return null;
  const problem = error instanceof ApiError ? error : null;
  return (
    <div class="notice bad" role="alert">
      <p>
        {problem?.title ? (
          <strong>
            <MarkedValue value={problem.title} />.{" "}
          </strong>
        ) : null}
        <MarkedValue value={error instanceof Error ? error.message : "an unknown error"} />
      </p>
      {problem !== null && problem.errors.length > 0 ? (
        <ul>
          {problem.errors.map((fault) => (
            <li key={`${formatFaultLocation(fault)} ${fault.detail}`}>
              <code>
                <MarkedValue value={formatFaultLocation(fault)} />
              </code>{" "}
              <MarkedValue value={fault.detail} />
            </li>
          ))}
        </ul>
      ) : null}
      {onRetry === undefined ? null : (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Returns the location of a fault: line and column, the pointer of the member, or the name of the parameter. */
function formatFaultLocation({ line, column, pointer, parameter }: ResponseFault): string {
  if (line !== undefined) return `line ${line}${column === undefined ? "" : `, column ${column}`}`;
  return pointer ?? parameter ?? "";
}

export function Notice({ kind = "", children }: { kind?: string; children?: ComponentChildren }) {
  return (
    <div class={`notice ${kind}`} role="status">
      {children}
    </div>
  );
}

/** Shows the result of a change, and announces it to screen readers. Shows nothing for an empty text. */
export function ResultNotice({ text }: { text: string }) {
  return (
    <div role="status">
      {text === "" ? null : (
        <Notice kind="good">
          <MarkedValue value={text} />
        </Notice>
      )}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      Loading {what}…
    </p>
  );
}

/** Renders the banner that appears on every page while the service is unreachable. */
export function OutageBanner() {
  const [since, setSince] = useState<number | null>(null);
  useEffect(() => watchReachability(setSince), []);
  // A shared worker can keep its connection while this page is offline, so the page checks for itself.
  useEffect(() => {
    const check = (): void => void checkReachability();
    addEventListener("offline", check);
    return () => removeEventListener("offline", check);
  }, []);
  return (
    <div class="banner" role="status" aria-live="assertive">
      {since === null ? null : (
        <p>
          <Icon name="alert" />
          <span>
            <strong>The service does not respond</strong> since {formatTime(new Date(since).toISOString())}. This page
            may be out of date. The console tries again every few seconds.
          </span>
        </p>
      )}
    </div>
  );
}

/** Renders the message instead of an empty list, and what to do next. */
export function EmptyState({ text, children }: { text: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p>{text}</p>
      {children}
    </div>
  );
}

const LIVE_WORDS: Readonly<Record<string, string>> = {
  live: "live",
  waiting: "reconnecting",
  refused: "not live",
  starting: "connecting",
};

/** Shows whether the page is connected to the service's event stream. */
export function StreamStatus({ state: streamState, why }: { state: string; why: string }) {
  const [since, setSince] = useState<number | null>(null);
  useEffect(() => watchReachability(setSince), []);
  // The stream notices a lost connection later than a request does.
  const state = streamState === "live" && since !== null ? "waiting" : streamState;
  return (
    <span class={`stream-status ${state}`} role="status">
      <span class="dot" aria-hidden="true" />
      {LIVE_WORDS[state]}
      {why === "" ? null : (
        <>
          : <MarkedValue value={why} />
        </>
      )}
    </span>
  );
}

export function CopyButton({ value, label = "Copy" }: { value: string; label?: string }) {
  const [result, setResult] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(value);
      setResult("Copied");
    } catch {
      setResult("Select the text and copy it: browsers allow the clipboard only on https pages and on localhost.");
    }
  };
  return (
    <>
      <button type="button" class="small" onClick={() => void copy()}>
        {label}
      </button>
      <span class="quiet" role="status">
        {result === "" ? null : ` ${result}`}
      </span>
    </>
  );
}

/** A link to the list that a page belongs to. */
export interface BackLink {
  href: string;
  text: string;
  /** Called instead of following the link, for example to ask before a draft is lost. */
  onClick?(): void;
}

/**
 * A page with its title.
 * @param props.heading the title with its values marked; default: `title`
 * @param props.back link to the list that the page belongs to, before the title
 * @param props.side content to the right of the title
 */
export function Page({
  title,
  heading = <MarkedValue value={title} />,
  back,
  side,
  children,
}: {
  title: string;
  heading?: ComponentChildren;
  back?: BackLink | undefined;
  side?: ComponentChildren;
  children?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${renderPlain(title)} · Assent`;
  }, [title]);
  return (
    <>
      <header class="page-head">
        <div class="page-name">
          {back === undefined ? null : (
            <a
              class="back"
              href={back.href}
              onClick={(event) => {
                if (back.onClick === undefined) return;
                event.preventDefault();
                back.onClick();
              }}
            >
              {back.text}
            </a>
          )}
          <h1 tabIndex={-1}>{heading}</h1>
        </div>
        {side}
      </header>
      {children}
    </>
  );
}

/**
 * A table. On a narrow screen, its cells follow each other, and each is labelled with its `data-label`.
 * @param props.numbers names of the columns with numbers, whose cells have the class "number"
 */
export function Table({
  label,
  head,
  numbers = [],
  children,
}: {
  label: string;
  head: readonly string[];
  numbers?: readonly string[];
  children?: ComponentChildren;
}) {
  return (
    <div class="scroll stack" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((name) =>
              name === "" ? (
                <td key={name} />
              ) : (
                <th key={name} scope="col" {...(numbers.includes(name) ? { class: "number" } : {})}>
                  {name}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** Saves text as a file. */
export function downloadText(name: string, text: string): void {
  downloadBlob(name, new Blob([text], { type: "text/plain;charset=utf-8" }));
}

/** Saves a file. */
export function downloadBlob(name: string, blob: Blob): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** What every page is built of. Everything from the API passes `Text` or `Data`: as text, with what hides in it shown. */
import { Fragment, createRef, h, render } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import htm from "htm";
import { ApiError, now, whenBack, whenReach } from "./api.js";
import { duration, markText, plain, when } from "./text.js";

const bound = htm.bind(h);
/** @type {WeakMap<TemplateStringsArray, string[]>} */
const spaced = new WeakMap();

/** Markup in which a line break is a space, as in HTML (and as the formatter takes it); htm alone drops it. @param {TemplateStringsArray} texts */
export function html(texts, ...values) {
  let markup = spaced.get(texts);
  if (markup === undefined) {
    const last = texts.length - 1;
    markup = texts.map((text, i) => {
      const begun = i === 0 ? text.replace(/^\s*\n\s*/, "") : text;
      return (i === last ? begun.replace(/\s*\n\s*$/, "") : begun).replaceAll(/\s*\n\s*/g, " ");
    });
    spaced.set(texts, markup);
  }
  return bound(markup, ...values);
}

export { Fragment, createRef, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState };

/** In place of what the page says while it loads. @param {unknown} view */
export function show(view) {
  const place = document.getElementById("console");
  place.replaceChildren();
  render(view, place);
}

/** @param {{ value: unknown, lines?: boolean }} props */
export function Text({ value, lines = false }) {
  return html`<bdi>${markText(String(value), { lines }).map(mark)}</bdi>`;
}

/** @param {{ text: string, kind: string, mark: string | null }} part */
function mark({ text, kind, mark: why }) {
  if (kind === "plain") return text;
  if (kind === "hidden") return html`<span class="hidden-character" title=${why}>${text}</span>`;
  return html`<span class="look-alike">${text}<span class="hidden-character">${why}</span></span>`;
}

/** A value as JSON, whole: nothing is cut off or folded away. @param {{ value: unknown, label: string }} props */
export function Data({ value, label }) {
  return html`<pre
    class="data"
    tabindex="0"
    role="region"
    aria-label=${label}
  ><${Text} value=${JSON.stringify(value, null, 2)} lines /></pre>`;
}

/** @param {{ at: string | null | undefined }} props */
export function Time({ at }) {
  return at === null || at === undefined
    ? html`<span class="quiet">–</span>`
    : html`<time datetime=${at} title=${at}>${when(at)}</time>`;
}

/** @param {{ value: string }} props */
export function Hash({ value }) {
  return html`<code class="hash">${value}</code>`;
}

const KIND = {
  allowed: "good",
  approved: "good",
  succeeded: "good",
  active: "good",
  live: "good",
  allow: "good",
  executing: "busy",
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
const WORDS = { pending_approval: "pending approval", require_approval: "asks a person" };

/** @param {{ value: string, label?: string }} props */
export function Badge({ value, label }) {
  return html`<span class="badge ${KIND[value] ?? ""}"><${Text} value=${label ?? WORDS[value] ?? value} /></span>`;
}

/** Facts in pairs. @param {{ rows: [string, unknown][] }} props */
export function Facts({ rows }) {
  return html`<dl class="facts">
    ${rows
      .filter(([, value]) => value !== null && value !== undefined)
      .map(
        ([name, value]) =>
          html`<div key=${name}>
            <dt>${name}</dt>
            <dd>
              ${typeof value === "string" || typeof value === "number" ? html`<${Text} value=${value} />` : value}
            </dd>
          </div>`,
      )}
  </dl>`;
}

/** @param {{ error: unknown, again?: () => void }} props */
export function Problem({ error, again }) {
  if (error === null || error === undefined) return null;
  const problem = error instanceof ApiError ? error : null;
  return html`<div class="notice bad" role="alert">
    <p>
      ${problem?.title ? html`<strong><${Text} value=${problem.title} />. </strong>` : null}<${Text}
        value=${error instanceof Error ? error.message : "an unknown fault"}
      />
    </p>
    ${
      problem !== null && problem.errors.length > 0
        ? html`<ul>
            ${problem.errors.map(
              (item) =>
                html`<li>
                  <code><${Text} value=${placeOf(item)} /></code> <${Text} value=${item.detail} />
                </li>`,
            )}
          </ul>`
        : null
    }
    ${again === undefined ? null : html`<button type="button" onClick=${again}>Try again</button>`}
  </div>`;
}

/** @param {{ pointer?: string, parameter?: string, line?: number, column?: number }} error */
export function placeOf(error) {
  if (error.line !== undefined)
    return `line ${error.line}${error.column === undefined ? "" : `, column ${error.column}`}`;
  return error.pointer ?? error.parameter ?? "";
}

/** @param {{ kind?: string, children?: unknown }} props */
export function Notice({ kind = "", children }) {
  return html`<div class="notice ${kind}" role="status">${children}</div>`;
}

/** Stands where something will stand. @param {{ what: string }} props */
export function Loading({ what }) {
  return html`<p class="loading" role="status">Loading ${what}…</p>`;
}

/** Over every page while the service is down. */
export function Banner() {
  const [since, setSince] = useState(/** @type {number | null} */ (null));
  useEffect(() => whenReach(setSince), []);
  return html`<div class="banner" role="status" aria-live="assertive">
    ${since === null ? null : html`<p><strong>The service does not answer</strong> since ${when(new Date(since).toISOString())}. What you see may be out of date. It is looked for every few seconds.</p>`}
  </div>`;
}

/** @param {{ text: string }} props */
export function Empty({ text }) {
  return html`<p class="empty">${text}</p>`;
}

/** Says what a stream of events does. @param {{ state: string, why: string }} props */
export function Live({ state, why }) {
  const words = { live: "live", waiting: "reconnecting", refused: "not live", starting: "connecting" };
  return html`<span class="live ${state}" role="status"
    ><span aria-hidden="true">●</span> ${words[state]}${why === "" ? null : html`: <${Text} value=${why} />`}</span
  >`;
}

/**
 * Loads when the page opens and when `deps` change. What came late, for a page that was left, is dropped.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} deps
 * @returns {{ data: T | null, error: unknown, loading: boolean, reload: () => void, set: (change: (data: T | null) => T | null) => void }}
 */
export function useLoad(load, deps) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const [round, setRound] = useState(0);
  // What failed because the service was down is read again when it is back.
  const failed = state.error instanceof ApiError && state.error.status === 0;
  useEffect(() => (failed ? whenBack(() => setRound((n) => n + 1)) : undefined), [failed]);
  useEffect(() => {
    const over = new AbortController();
    setState((old) => ({ ...old, loading: true }));
    load(over.signal).then(
      (data) => over.signal.aborted || setState({ data, error: null, loading: false }),
      (error) => over.signal.aborted || setState((old) => ({ ...old, error, loading: false })),
    );
    return () => over.abort();
  }, [...deps, round]);
  return {
    ...state,
    reload: useCallback(() => setRound((n) => n + 1), []),
    set: useCallback((change) => setState((old) => ({ ...old, data: change(old.data) })), []),
  };
}

/** The service's clock, ticking. @param {number} [every] ms */
export function useNow(every = 1000) {
  const [time, setTime] = useState(now());
  useEffect(() => {
    const timer = setInterval(() => setTime(now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return time;
}

/** @param {{ at: string | null, time: number }} props */
export function Left({ at, time }) {
  if (at === null) return null;
  const ms = Date.parse(at) - time;
  return html`<span class=${`left ${ms < 60_000 ? "soon" : ""}`}
    >${ms <= 0 ? "time is up" : html`${duration(ms)} left`}</span
  >`;
}

/**
 * A modal dialog of the browser's own: it keeps the focus and closes on Escape.
 * @param {{ title: string, onClose: () => void, children?: unknown, hotkey?: boolean }} props hotkey: Ctrl+Enter submits
 */
export function Dialog({ title, onClose, children, hotkey = true }) {
  const ref = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    // Not scrolled to: what is asked stays in view.
    ref.current.querySelector("[data-focus]")?.focus({ preventScroll: true });
    return () => before?.focus?.();
  }, []);
  // Enter alone is a new line in a text.
  const submit = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (hotkey) ref.current.querySelector("form")?.requestSubmit();
  };
  return html`<dialog ref=${ref} aria-labelledby="dialog-title" onClose=${onClose} onKeyDown=${submit}>
    <h2 id="dialog-title">${title}</h2>
    ${children}
  </dialog>`;
}

/** @param {{ value: string, label?: string }} props */
export function Copy({ value, label = "Copy" }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(value);
      setSaid("Copied");
    } catch {
      // Browsers give the clipboard to pages of https and localhost alone.
      setSaid("Select it and copy by hand: the browser does not let this page write to the clipboard");
    }
  };
  return html`<button type="button" class="small" onClick=${copy}>${label}</button
    ><span class="quiet" role="status">${said === "" ? null : ` ${said}`}</span>`;
}

/** @param {{ title: string, side?: unknown, children?: unknown }} props */
export function Page({ title, side, children }) {
  useEffect(() => {
    document.title = `${plain(title)} · Assent`;
  }, [title]);
  return html`<header class="page-head">
      <h1 tabindex="-1"><${Text} value=${title} /></h1>
      ${side}
    </header>
    ${children}`;
}

/** A table; on a narrow screen its cells stand below each other, named by `data-label` where they do not speak for themselves. @param {{ label: string, head: string[], children?: unknown }} props */
export function Table({ label, head, children }) {
  return html`<div class="scroll stack" role="region" aria-label=${label} tabindex="0">
    <table>
      <thead>
        <tr>
          ${head.map((name) => html`<th scope="col">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${children}
      </tbody>
    </table>
  </div>`;
}

/** Gives a file to the browser. @param {string} name @param {string} text */
export function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

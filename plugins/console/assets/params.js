/** What an action is to do: its parameters, name by name in the order of their author, texts with their lines. */
import { Data, Text, html } from "./ui.js";

/** In a list of many; what is left out is counted. */
const FEW = 6;

/** A text that could be taken for something else stands in quotes. @param {string} text */
const ambiguous = (text) =>
  text === "" ||
  text !== text.trim() ||
  /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|[[{"].*)$/s.test(text);

/** @param {{ value: unknown }} props */
function Value({ value }) {
  if (typeof value === "string")
    return ambiguous(value)
      ? html`<span class="lines">“<${Text} value=${value} lines />”</span> <span class="quiet">(text)</span>`
      : html`<span class="lines"><${Text} value=${value} lines /></span>`;
  if (value === null || typeof value !== "object") return html`<code>${String(value)}</code>`;
  const empty = Object.keys(value).length === 0;
  if (empty) return html`<span class="quiet">${Array.isArray(value) ? "an empty list" : "nothing in it"}</span>`;
  return html`<${Members} value=${value} />`;
}

/** @param {{ value: object, most?: number }} props */
function Members({ value, most = Infinity }) {
  const list = Array.isArray(value);
  const all = Object.entries(value);
  return html`<dl class=${list ? "params list" : "params"}>
    ${all.slice(0, most).map(
      ([name, member]) =>
        html`<div key=${name}>
          <dt>${list ? `${Number(name) + 1}.` : html`<${Text} value=${name} />`}</dt>
          <dd><${Value} value=${member} /></dd>
        </div>`,
    )}
    ${all.length > most ? html`<div class="quiet">and ${all.length - most} more</div>` : null}
  </dl>`;
}

/** Whole. @param {{ value: Record<string, unknown>, label: string, scrolls?: boolean }} props scrolls: where the style cuts it, the keyboard must reach the rest */
export function Params({ value, label, scrolls = false }) {
  if (Object.keys(value).length === 0) return html`<p class="quiet">None were given.</p>`;
  return html`<div
    class="asked-for"
    tabindex=${scrolls ? 0 : null}
    role=${scrolls ? "region" : "group"}
    aria-label=${label}
  >
    <${Members} value=${value} />
  </div>`;
}

/** The first of them, each cut after a few lines by the style: to tell one action from another. @param {{ value: Record<string, unknown> }} props */
export function Brief({ value }) {
  if (Object.keys(value).length === 0) return html`<p class="quiet">No parameters.</p>`;
  return html`<div class="brief"><${Members} value=${value} most=${FEW} /></div>`;
}

/** As it would be sent. @param {{ value: unknown, label: string }} props */
export function AsJson({ value, label }) {
  return html`<details>
    <summary>As JSON</summary>
    <${Data} value=${value} label=${label} />
  </details>`;
}

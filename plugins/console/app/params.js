/** What an action is to do: its parameters, those that the policy names first, every level folded and every fold counted. */
import { countOf, MAX_LINES, moreLines, outline } from "../../../src/domain/outline.ts";
import { plain } from "./text.js";
import { Data, Text, html, useMemo, useState } from "./ui.js";

/** In a list of many: enough to tell one action from another. */
const BRIEF = { lines: 8, each: 3 };
/** Lines that one click unfolds. */
const STEP = 50;

/** @typedef {((pointer: string, lines: number) => void) | null} Unfold null: folds are told and cannot be opened here */

/** @param {{ more: number, pointer: string, of: string, unfold: Unfold, full: boolean }} props full: no more is drawn */
function Fold({ more, pointer, of, unfold, full }) {
  if (more === 0) return null;
  if (full) return html`<p class="fold quiet">${moreLines(more)}: open “As JSON” to see all</p>`;
  if (unfold === null) return html`<p class="fold quiet">${moreLines(more)}</p>`;
  return html`<button
    type="button"
    class="fold"
    aria-label=${plain(`${moreLines(more)} of ${of}`)}
    onClick=${() => unfold(pointer, Math.min(more, STEP))}
  >
    ${moreLines(more)}
  </button>`;
}

/** @param {{ node: any, pointer: string, of: string, unfold: Unfold, full: boolean }} props */
function Value({ node, pointer, of, unfold, full }) {
  const fold = html`<${Fold} more=${node.more ?? 0} ...${{ pointer, of, unfold, full }} />`;
  if (node.kind === "value") return html`<code>${node.text}</code>`;
  if (node.kind === "empty") return html`<span class="quiet">${node.list ? "an empty list" : "nothing in it"}</span>`;
  if (node.kind === "json")
    return html`<pre class="deep"><${Text} value=${node.text} lines /></pre>
      ${fold}`;
  if (node.kind === "text") {
    const text = html`<${Text} value=${node.text} lines />`;
    return html`${
      node.quoted
        ? html`<span class="lines">“${text}”</span> <span class="quiet">(text)</span>`
        : html`<span class="lines">${text}</span>`
    }${fold}`;
  }
  return html`${pointer !== "" && node.more > 0 ? html`<span class="quiet">${countOf(node)}</span>` : null}
  ${
    node.members.length === 0
      ? null
      : html`<dl class=${node.list ? "params list" : "params"}>
          ${node.members.map(
            (member) =>
              html`<div key=${member.pointer}>
                <dt>${node.list ? member.name : html`<${Text} value=${member.name} />`}</dt>
                <dd>
                  <${Value} node=${member.value} pointer=${member.pointer} of=${member.name} ...${{ unfold, full }} />
                </dd>
              </div>`,
          )}
        </dl>`
  }
  ${fold}`;
}

/**
 * @param {object} props
 * @param {Record<string, unknown>} props.value
 * @param {string} props.label
 * @param {string} props.root pointer of `value` in the request, such as /params
 * @param {readonly string[]} [props.first] pointers of the members that the policy names
 * @param {number} [props.lines]
 */
export function Params({ value, label, root, first, lines = 40 }) {
  const [unfolded, setUnfolded] = useState(/** @type {ReadonlyMap<string, number>} */ (new Map()));
  const drawn = useMemo(() => {
    const full = lines + [...unfolded.values()].reduce((sum, count) => sum + count, 0) >= MAX_LINES;
    const unfold = (pointer, count) => setUnfolded((old) => new Map(old).set(pointer, (old.get(pointer) ?? 0) + count));
    const node = outline(value, { root, lines, unfolded, ...(first === undefined ? {} : { first }) });
    return html`<${Value} node=${node} pointer=${root} of=${label} unfold=${unfold} full=${full} />`;
  }, [value, first, lines, unfolded]);
  if (Object.keys(value).length === 0) return html`<p class="quiet">None were given.</p>`;
  return html`<div class="asked-for" role="group" aria-label=${label}>${drawn}</div>`;
}

/** The first lines, to tell one action from another. @param {{ value: Record<string, unknown>, first?: readonly string[] }} props */
export function Brief({ value, first }) {
  const drawn = useMemo(() => {
    const node = outline(value, { root: "/params", ...BRIEF, ...(first === undefined ? {} : { first }) });
    return html`<${Value} node=${node} pointer="" of="the parameters" unfold=${null} full=${false} />`;
  }, [value, first]);
  if (Object.keys(value).length === 0) return html`<p class="quiet">No parameters.</p>`;
  return html`<div class="brief">${drawn}</div>`;
}

/** "amount 120": what tells this action from others of its kind, for labels. @param {any} action */
export function headline({ params, shown_first: first }) {
  const node = outline(params, { root: "/params", lines: 1, ...(first === undefined ? {} : { first }) });
  const member = node.kind === "members" ? node.members[0] : undefined;
  if (member === undefined || !("text" in member.value)) return "";
  return plain(`${member.name} ${member.value.text.slice(0, 60)}`);
}

/** As it would be sent. Written when it is opened. @param {{ value: unknown, label: string, summary?: string }} props */
export function AsJson({ value, label, summary = "As JSON" }) {
  const [open, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${summary}</summary>
    ${open ? html`<${Data} value=${value} label=${label} />` : null}
  </details>`;
}

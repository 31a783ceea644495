/** Fields with their labels and their refusals. */
import { html } from "./ui.js";

/**
 * @param {object} props
 * @param {string} props.name unique on the page; also the member that a refusal points to
 * @param {string} props.label
 * @param {string} [props.help]
 * @param {any} [props.error] an ApiError: what it says about this member stands under the field
 */
export function Field({ name, label, help, error, children, ...input }) {
  const said = (error?.errors ?? [])
    .filter((item) => item.pointer === `/${name}` || item.pointer?.startsWith(`/${name}/`))
    .map((item) => item.detail);
  const described = [help === undefined ? "" : `${name}-help`, said.length === 0 ? "" : `${name}-said`]
    .filter((id) => id !== "")
    .join(" ");
  return html`<div class="field">
    <label for=${name}>${label}</label>
    ${children ?? html`<input id=${name} name=${name} autocomplete="off" aria-describedby=${described || null} aria-invalid=${said.length > 0 ? "true" : null} ...${input} />`}
    ${help === undefined ? null : html`<span id=${`${name}-help`} class="quiet">${help}</span>`}
    ${said.length === 0 ? null : html`<span id=${`${name}-said`} class="said">${said.join("; ")}</span>`}
  </div>`;
}

/** What was typed, trimmed; a name that stands several times gives a list. @param {HTMLFormElement} form @returns {Record<string, string>} */
export function values(form) {
  return Object.fromEntries(
    [...new FormData(form)].map(([name, value]) => [name, typeof value === "string" ? value.trim() : ""]),
  );
}

/** Keys and people by their names. */
import { nameOfKey, whenNamesCome } from "./me.js";
import { Text, html, useEffect, useState } from "./ui.js";

/** A key by its name; by its id where no name is known. @param {{ id: string }} props */
export function Key({ id }) {
  const [, again] = useState(0);
  useEffect(() => whenNamesCome(() => again((n) => n + 1)), []);
  const name = nameOfKey(id);
  return name === null
    ? html`<code class="hash">${id}</code>`
    : html`<span title=${`key ${id}`}><${Text} value=${name} /></span>`;
}

/** "ada" for owner:ada, "the key laptop" for one without an owner. @param {{ principal: string }} props */
export function Who({ principal }) {
  if (principal.startsWith("owner:")) return html`<${Text} value=${principal.slice(6)} />`;
  if (principal.startsWith("key:")) return html`the key <${Key} id=${principal.slice(4)} />`;
  return html`<${Text} value=${principal} />`;
}

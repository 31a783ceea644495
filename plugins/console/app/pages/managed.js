import { Badge, html } from "../ui.js";

/** Where another than this page manages it: a folder, a repository. @param {{ policy: any }} props */
export function Managed({ policy }) {
  return policy.managed_by === null
    ? html`<span class="quiet">API</span>`
    : html`<${Badge} value=${policy.managed_by} />`;
}

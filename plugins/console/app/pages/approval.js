/** One approval in the queue: what is to be done, what became of it, and the way to decide it. */
import { at } from "../api.js";
import { may, me } from "../me.js";
import { Brief, headline } from "../params.js";
import { Who } from "../person.js";
import { Request, Risk, What } from "../request.js";
import { plain } from "../text.js";
import { Badge, Copy, Left, Notice, Problem, Text, Time, html } from "../ui.js";
import { Ended } from "./outcome.js";

/** The vote of whoever is signed in. @param {any} action */
export function voteOf(action) {
  return action.approvals?.find((vote) => vote.approver === me()?.principal) ?? null;
}

/** How it stands for whoever is signed in. @param {any} item @param {number} time @returns {"settled" | "late" | "voted" | "not yours" | "open"} */
export function standing({ action, outcome, full }, time) {
  if (outcome !== null) return "settled";
  if (action.expires_at === undefined) return "not yours";
  if (Date.parse(action.expires_at) <= time) return "late";
  if (voteOf(action) !== null) return "voted";
  return !may("approvals:decide") || (full && action.approval_token === undefined) ? "not yours" : "open";
}

const given = (action) => action.approvals.filter((vote) => vote.approve).length;

/** No two rows have the same: "stripe refund by support-bot, amount 120, 7f3a21". @param {any} action */
function labelOf(action) {
  const { tool, operation, agent_id, id } = action;
  const value = action.erased_at ? "" : headline(action);
  return `${plain(`${tool} ${operation} by ${agent_id}`)}, ${value === "" ? "" : `${value}, `}${id.slice(-6)}`;
}

/** @param {{ item: any, open: boolean, time: number, selected: boolean, onOpen: () => void, onSelect: () => void, onDecide: (approve: boolean) => void }} props */
export function Item({ item, open, time, selected, onOpen, onSelect, onDecide }) {
  const { action, outcome, error } = item;
  // A link to what could not be read.
  if (action.tool === undefined) return html`<${Problem} error=${error} />`;
  const stands = standing(item, time);
  const over = stands === "settled" || stands === "late";
  const vote = voteOf(action);
  const label = labelOf(action);
  return html`<article class=${`card approval ${over ? "closed" : ""} ${open ? "open" : ""}`} aria-label=${label}>
    <div class="summary">
      ${
        may("approvals:decide")
          ? html`<input
              type="checkbox"
              aria-label=${`Select ${label}`}
              checked=${selected && stands === "open"}
              disabled=${stands !== "open"}
              onChange=${onSelect}
            />`
          : null
      }
      <button type="button" class="plain" data-id=${action.id} aria-expanded=${open} onClick=${onOpen}>
        <${What} action=${action} />
      </button>
      <span class="row">
        ${vote !== null && !over ? html`<${Badge} value=${vote.approve ? "approved" : "denied"} label=${`you ${vote.approve ? "approved" : "denied"}`} />` : null}
        <${Risk} risk=${action.risk_level} />
        ${action.approvals_needed > 1 ? html`<span class="quiet">${given(action)} of ${action.approvals_needed} approvals</span>` : null}
        ${outcome === null ? html`<${Left} at=${action.expires_at} time=${time} />` : null}
      </span>
    </div>
    ${outcome === null ? null : html`<${Ended} outcome=${outcome} />`}
    ${over ? null : html`<${Waits} action=${action} />`}
    ${stands === "late" ? html`<${Notice} kind="busy">Time is up: nobody can decide this now. The agent has to ask again.<//>` : null}
    <${Problem} error=${error} />
    ${
      !open
        ? html`${action.erased_at ? html`<p class="quiet">What was asked was erased.</p>` : html`<${Brief} value=${action.params} first=${action.shown_first} />`}
            <p class="why quiet"><${Text} value=${action.reason} /></p>`
        : html`<${Request} action=${action} level=${2} />
            <${Votes} action=${action} />
            ${over ? null : html`<${Choice} action=${action} stands=${stands} onDecide=${onDecide} />`}`
    }
  </article>`;
}

/** Whether the agent is still there to go on after an approval. @param {{ action: any }} props */
export function Waits({ action }) {
  return html`<p class="why quiet">
    ${action.waiting ? "The agent waits." : html`Nobody waits; last asked <${Time} at=${action.asked_at} />.`}
  </p>`;
}

/** @param {{ action: any }} props */
export function Votes({ action }) {
  return html`<p class="quiet">
      A verdict counts for this request alone;
      ${action.approvals_needed > 1 ? `${action.approvals_needed} different people must approve` : "one approval is enough"}.
      One denial ends it.
    </p>
    ${
      action.approvals.length === 0
        ? null
        : html`<ul>
            ${action.approvals.map((vote) => html`<li><${Who} principal=${vote.approver} /> ${vote.approve ? "approved" : "denied"}${vote.reason ? html`: <${Text} value=${vote.reason} />` : null}</li>`)}
          </ul>`
    }`;
}

/** @param {{ action: any, stands: string, onDecide: (approve: boolean) => void }} props */
export function Choice({ action, stands, onDecide }) {
  const left = action.approvals_needed - given(action);
  return html`${
      stands === "voted"
        ? html`<${Notice} kind="good"
            >Your approval is recorded. It waits for ${left} ${left === 1 ? "more person" : "more people"}.<//
          >`
        : stands === "not yours" && may("approvals:decide")
          ? html`<${Notice} kind="busy"
              >This key cannot decide it: it stands behind the request (same key, agent or owner).<//
            >`
          : null
    }
    <div class="row">
      ${
        stands !== "open"
          ? null
          : html`<button type="button" class="primary" onClick=${() => onDecide(true)}>Approve…</button>
              <button type="button" class="danger" onClick=${() => onDecide(false)}>Deny…</button>`
      }
      ${location.hash.startsWith("#/actions/") ? null : html`<a href=${`#/actions/${at(action.id)}`}>History and proof</a>`}
      <${Copy} value=${`${location.origin}/#/approvals/${at(action.id)}`} label="Copy link" />
    </div>`;
}

/** What a link led to and no page of the queue has shown. @param {{ item: any, children?: unknown }} props */
export function Apart({ item, children }) {
  const { action } = item;
  if (item.past !== true) return html`<section class="apart" aria-label="Opened by its link">${children}</section>`;
  return html`<${Notice}
    >This one is settled: <${What} action=${action} /> is ${action.status.replace("_", " ")}.
    <a href=${`#/actions/${at(action.id)}`}>Look at it</a><//
  >`;
}

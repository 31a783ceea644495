/** The question before a verdict: what is to be done, approve or deny, and why. */
import { ApiError, at, call } from "../api.js";
import { whenSessionChanges } from "../session.js";
import { Asked, Risk, What } from "../request.js";
import { plain } from "../text.js";
import { Dialog, Left, html, useRef, useState } from "../ui.js";
import { outcomeOf } from "./outcome.js";

/** Reasons that were typed and not recorded, by requests and verdict, while the tab is open. @type {Map<string, string>} */
const drafts = new Map();
whenSessionChanges((key) => key === null && drafts.clear());

/** Lines of all parameters in one dialog. */
const MAX_LINES = 300;

/** @typedef {import("./outcome.js").Outcome} Outcome */

/**
 * @param {object} props
 * @param {any[]} props.items as they were shown: what has another request hash by then is not decided
 * @param {boolean} props.approve
 * @param {number} props.time
 * @param {(id: string, outcome: Outcome | null, action?: any) => void} props.onSettled null: it waits for others
 * @param {(id: string, error: Error) => void} props.onRefused
 * @param {(summary?: string) => void} props.onClose
 */
export function Verdict({ items, approve, time, onSettled, onRefused, onClose }) {
  const [busy, setBusy] = useState(false);
  const reason = useRef(null);
  const verb = approve ? "Approve" : "Deny";
  const draft = `${verb} ${items.map(({ action }) => action.id).join()}`;
  const decide = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    const why = reason.current.value.trim();
    const counts = { done: 0, waits: 0, faster: 0, not: 0 };
    for (const { action } of items) {
      const { count, settled, action: after, error } = await decideOne(action, approve, why);
      counts[count] += 1;
      if (settled !== undefined) onSettled(action.id, settled, after);
      if (error !== undefined) onRefused(action.id, error);
    }
    if (counts.not === 0) drafts.delete(draft);
    onClose(summaryOf(counts, approve));
  };
  const many = items.length > 1;
  return html`<${Dialog}
    title=${many ? `${verb} these ${items.length} requests?` : `${verb} this request?`}
    hotkey=${!many}
    onClose=${() => busy || onClose()}
  >
    <form class="vote" onSubmit=${decide}>
      <div class="asked" role="region" aria-label="What is asked for" tabindex="0" data-focus=${many ? "" : null}>
        <ul>
          ${items.map(
            ({ action }) =>
              html`<li key=${action.id}>
                <${What} action=${action} /> <${Risk} risk=${action.risk_level} />
                <${Left} at=${action.expires_at} time=${time} />
                <${Asked} action=${action} lines=${Math.max(1, Math.min(40, Math.floor(MAX_LINES / items.length)))} />
                <p class="bound quiet">Request hash <code class="hash">${action.request_hash}</code></p>
              </li>`,
          )}
        </ul>
      </div>
      <div class="field">
        <label for="reason">Reason <span class="quiet">(recorded in the ledger; optional)</span></label
        ><textarea
          id="reason"
          ref=${reason}
          defaultValue=${drafts.get(draft) ?? ""}
          onInput=${(event) => drafts.set(draft, event.target.value)}
          rows="3"
          maxlength="2000"
          data-focus=${many ? null : ""}
        ></textarea>
      </div>
      <div class="row end">
        <button type="submit" class=${approve ? "primary" : "danger"} disabled=${busy}>
          ${busy ? "Deciding…" : items.length === 1 ? verb : `${verb} all ${items.length}`}
        </button>
        <button type="button" disabled=${busy} onClick=${() => onClose()}>Cancel</button>
        ${many ? null : html`<span class="quiet shortcuts"><kbd>Ctrl</kbd> <kbd>Enter</kbd> ${verb.toLowerCase()}s</span>`}
      </div>
    </form>
  <//>`;
}

/** What was done and what was not, each by its number. @param {Record<"done" | "waits" | "faster" | "not", number>} counts @param {boolean} approve */
function summaryOf({ done, waits, faster, not }, approve) {
  const parts = [
    done === 0 && waits > 0 ? "" : `${done} ${approve ? "approved" : "denied"}`,
    waits === 0
      ? ""
      : `${waits} ${waits === 1 ? "has your approval and waits" : "have your approval and wait"} for others`,
    faster === 0 ? "" : `${faster} not: somebody else was faster, or time was up`,
    not === 0 ? "" : `${not} refused: see there`,
  ];
  return `${parts.filter((part) => part !== "").join("; ")}.`;
}

/** @returns {Promise<{ count: "done" | "waits" | "faster" | "not", settled?: Outcome | null, action?: any, error?: Error }>} */
async function decideOne(shown, approve, reason) {
  try {
    const fresh = await call(`/v1/actions/${at(shown.id)}`);
    const before = outcomeOf(fresh);
    if (before !== null) return { count: "faster", settled: { ...before, before: notYours(reason) }, action: fresh };
    if (fresh.request_hash !== shown.request_hash)
      return refused(
        "the request has another hash than the one that was shown; nothing was decided; tell whoever runs this service",
      );
    if (fresh.approval_token === undefined)
      return refused("this key cannot decide it: it has voted already, or it stands behind the request");
    const after = await call(`/v1/actions/${at(shown.id)}/approval`, {
      method: "POST",
      body: { token: fresh.approval_token, approve, ...(reason === "" ? {} : { reason }) },
    });
    if (after.status === "pending_approval") return { count: "waits", settled: null, action: after };
    const text = approve ? "You approved it." : "You denied it.";
    return { count: "done", settled: { kind: approve ? "good" : "bad", text, mine: true }, action: after };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status !== 409 && error.status !== 410) return { count: "not", error };
    const now = await call(`/v1/actions/${at(shown.id)}`).catch(() => null);
    const ended = now === null ? null : outcomeOf(now);
    const settled =
      ended === null
        ? { kind: "busy", text: `${notYours(reason)} ${error.message}` }
        : { ...ended, before: notYours(reason) };
    return { count: "faster", settled, ...(now === null ? {} : { action: now }) };
  }
}

/** @param {string} reason that was typed */
const notYours = (reason) =>
  `Not decided by you.${reason === "" ? "" : ` Your reason was not recorded: “${plain(reason)}”.`}`;

/** @param {string} why @returns {{ count: "not", error: Error }} */
const refused = (why) => ({ count: "not", error: new Error(why) });

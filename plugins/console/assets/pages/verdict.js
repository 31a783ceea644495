/** The question before a verdict: which requests, approve or deny, and why. */
import { ApiError, at, call } from "/console/api.js";
import { plain } from "/console/text.js";
import { Data, Dialog, Left, html, useRef, useState } from "/console/ui.js";
import { Risk, What } from "/console/request.js";
import { outcomeOf } from "/console/pages/queue.js";

/**
 * @param {object} props
 * @param {any[]} props.items as they were shown: what has another request hash by then is not decided
 * @param {boolean} props.approve
 * @param {number} props.time
 * @param {(id: string, outcome: { kind: string, text: string, mine?: boolean }) => void} props.onSettled
 * @param {(id: string, error: Error) => void} props.onRefused
 * @param {(summary?: string) => void} props.onClose
 */
export function Verdict({ items, approve, time, onSettled, onRefused, onClose }) {
  const [busy, setBusy] = useState(false);
  const reason = useRef(null);
  const verb = approve ? "Approve" : "Deny";
  const decide = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    const why = reason.current.value.trim();
    const counts = { done: 0, faster: 0, not: 0 };
    for (const { action } of items) {
      const outcome = await decideOne(action, approve, why);
      counts[outcome.count] += 1;
      if (outcome.settled !== null) onSettled(action.id, outcome.settled);
      if (outcome.error !== undefined) onRefused(action.id, outcome.error);
    }
    const said = approve ? "approved" : "denied";
    onClose([
      `${counts.done} ${said}`,
      counts.faster === 0 ? "" : `${counts.faster} not: somebody else was faster, or time was up`,
      counts.not === 0 ? "" : `${counts.not} refused: see there`,
    ].filter((part) => part !== "").join("; ") + ".");
  };
  return html`<${Dialog} title=${items.length === 1 ? `${verb} this request?` : `${verb} these ${items.length} requests?`} onClose=${() => busy || onClose()}>
    <form onSubmit=${decide}>
      <ul class="asked">${items.map(({ action }) => html`<li key=${action.id}><${What} action=${action} /> <${Risk} risk=${action.risk_level} /> <${Left} at=${action.expires_at} time=${time} /><br /><code class="hash quiet">${action.request_hash}</code>
        ${items.length === 1 ? null : html`<${Data} value=${action.params} label=${plain(`Parameters of ${action.tool} ${action.operation}`)} />`}</li>`)}</ul>
      <div class="field"><label for="reason">Reason <span class="quiet">(recorded in the ledger; optional)</span></label><textarea id="reason" ref=${reason} rows="3" maxlength="2000"></textarea></div>
      <div class="row end">
        <button type="button" disabled=${busy} onClick=${() => onClose()}>Cancel</button>
        <button type="submit" class=${approve ? "primary" : "danger"} disabled=${busy}>${busy ? "Deciding…" : items.length === 1 ? verb : `${verb} all ${items.length}`}</button>
      </div>
    </form>
  <//>`;
}

/** @returns {Promise<{ count: "done" | "faster" | "not", settled: { kind: string, text: string, mine?: boolean } | null, error?: Error }>} */
async function decideOne(shown, approve, reason) {
  try {
    const fresh = await call(`/v1/actions/${at(shown.id)}`);
    const before = outcomeOf(fresh);
    if (before !== null) return { count: "faster", settled: { ...before, text: `Not decided by you. ${before.text}` } };
    if (fresh.request_hash !== shown.request_hash) return { count: "not", settled: null, error: new Error("the request has another hash than the one that was shown; nothing was decided; tell whoever runs this service") };
    if (fresh.approval_token === undefined) return { count: "not", settled: null, error: new Error("this key cannot decide it: it has voted already, or it stands behind the request") };
    const after = await call(`/v1/actions/${at(shown.id)}/approval`, { method: "POST", body: { token: fresh.approval_token, approve, ...(reason === "" ? {} : { reason }) } });
    if (after.status === "pending_approval") return { count: "done", settled: null };
    return { count: "done", settled: { kind: approve ? "good" : "bad", text: approve ? "You approved it." : "You denied it.", mine: true } };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 409 || error.status === 410) {
      const now = await call(`/v1/actions/${at(shown.id)}`).then(outcomeOf, () => null);
      return { count: "faster", settled: now === null ? { kind: "busy", text: `Not decided by you: ${error.message}` } : { ...now, text: `Not decided by you. ${now.text}` } };
    }
    return { count: "not", settled: null, error: error.status === 0 ? new Error("the service did not answer: look again before you decide again, it may have counted") : error };
  }
}

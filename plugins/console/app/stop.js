/** Stops: what holds, over every page, and the button that places one. */
import { at, call } from "./api.js";
import { Field, values } from "./forms.js";
import { may, me } from "./me.js";
import { Who } from "./person.js";
import { Dialog, Problem, Text, Time, html, useCallback, useEffect, useState } from "./ui.js";

/** One that another person places is to be seen soon. Milliseconds. */
const EVERY = 5000;
const HOUR = 3_600_000;
const READS = [
  "actions:submit",
  "actions:read_own",
  "actions:read",
  "actions:execute",
  "approvals:decide",
  "stop:write",
];

/** @typedef {{ id: string, agent: string | null, tool: string | null, policy: string | null, until: string | null, placed_at: string, placed_by: string | null, reason: string | null, lift: { needed: number, asked: { by: string }[] } }} Stop */

/** Whether this key may place and lift stops. */
export function mayStop() {
  return may("stop:write") && me()?.key.agent_id === null;
}

/** Those that hold, looked for every few seconds. @param {boolean} signedIn whether it is known as whom @returns {{ stops: Stop[], look: () => void }} */
export function useStops(signedIn) {
  const [stops, setStops] = useState(/** @type {Stop[]} */ ([]));
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!signedIn || !READS.some(may)) return;
    const over = new AbortController();
    let timer = 0;
    const look = async () => {
      try {
        if (!document.hidden) setStops((await call("/v1/stop", { signal: over.signal })).stops);
      } catch (error) {
        // The service has no such plugin; anything else is said elsewhere, and passes.
        if (error?.status === 404) return;
      }
      if (!over.signal.aborted) timer = setTimeout(look, EVERY);
    };
    void look();
    return () => {
      over.abort();
      clearTimeout(timer);
    };
  }, [signedIn, round]);
  return { stops, look: useCallback(() => setRound((n) => n + 1), []) };
}

/** @param {{ stops: Stop[], onChange: () => void }} props */
export function Stops({ stops, onChange }) {
  const [lifting, setLifting] = useState(/** @type {Stop | null} */ (null));
  return html`<div class="stops" role="status" aria-live="assertive">
      ${stops.map(
        (stop) =>
          html`<div class="stopped" key=${stop.id}>
            <p>
              <strong>Stopped: <${Cover} stop=${stop} />.</strong>
              ${stop.reason === null ? null : html` <${Text} value=${stop.reason} />`}
              <span class="since"
                >Since
                <${Time}
                  at=${stop.placed_at}
                />${stop.placed_by === null ? null : html`, by <${Who} principal=${stop.placed_by} />`}${stop.until === null ? null : html`, until <${Time} at=${stop.until} />`}${stop.lift.asked.length === 0 ? null : html`; ${stop.lift.asked.length} of ${stop.lift.needed} people want to lift it`}</span
              >
            </p>
            ${mayStop() ? html`<button type="button" class="small" onClick=${() => setLifting(stop)}>Lift…</button>` : null}
          </div>`,
      )}
    </div>
    ${lifting === null ? null : html`<${Lift} stop=${lifting} onClose=${() => setLifting(null)} onDone=${() => (setLifting(null), onChange())} />`}`;
}

/** @param {{ stop: Stop }} props */
function Cover({ stop: { agent, tool, policy } }) {
  const parts = Object.entries({ agent, tool, policy }).filter(([, value]) => value !== null);
  if (parts.length === 0) return "everything";
  return parts.map(([name, value], i) => html`${i === 0 ? "" : ", "}${name} <${Text} value=${value} />`);
}

/** @param {{ onClose: () => void, onDone: () => void }} props */
export function StopDialog({ onClose, onDone }) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const [what, setWhat] = useState("");
  const [key] = useState(() => crypto.getRandomValues(new Uint32Array(4)).join("-"));
  const submit = async (event) => {
    event.preventDefault();
    const { reason, selected, hours } = values(event.currentTarget);
    const body = {
      reason,
      ...(what === "" ? {} : { [what]: selected }),
      ...(hours === "" ? {} : { until: new Date(Date.now() + Number(hours) * HOUR).toISOString() }),
    };
    try {
      await call("/v1/stop", { method: "POST", body, headers: { "idempotency-key": key } });
      onDone();
    } catch (refusal) {
      setError(refusal);
    }
  };
  return html`<${Dialog} title="Stop decisions?" onClose=${onClose}
    ><form onSubmit=${submit}>
      <p>
        At once, on every process: what is submitted is denied, and nothing is approved or started, whatever policies
        say. What waits stays as it is, and its time runs on. What runs already goes on.
      </p>
      <${Field} name="what" label="What"
        ><select id="what" value=${what} onChange=${(event) => setWhat(event.target.value)}>
          <option value="">Everything</option>
          <option value="agent">What some agents do</option>
          <option value="tool">What is done with some tools</option>
          <option value="policy">What one policy answers</option>
        </select><//
      >
      ${what === "" ? null : html`<${Field} key=${what} name="selected" label=${{ agent: "Agents", tool: "Tools", policy: "Policy" }[what]} help=${what === "policy" ? "Its name." : "A name, or a pattern: * stands for anything."} error=${error} required maxlength="256" />`}
      <${Field} name="hours" label="Ends"
        ><select id="hours" name="hours">
          <option value="">When it is lifted</option>
          <option value="1">In an hour, by itself</option>
          <option value="24">In a day, by itself</option>
        </select><//
      >
      <${Field}
        name="reason"
        label="Reason"
        help="Recorded in the ledger, and told to people in channels."
        error=${error}
        required
        maxlength="500"
      />
      <${Problem} error=${error} />
      <div class="row end">
        <button type="submit" class="danger">${what === "" ? "Stop everything" : "Stop this"}</button>
        <button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form><//
  >`;
}

/** @param {{ stop: Stop, onClose: () => void, onDone: () => void }} props */
function Lift({ stop, onClose, onDone }) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const { needed, asked: before } = stop.lift;
  const submit = async (event) => {
    event.preventDefault();
    const { reason } = values(event.currentTarget);
    try {
      await call(`/v1/stop/${at(stop.id)}/lift`, { method: "POST", body: reason === "" ? {} : { reason } });
      onDone();
    } catch (refusal) {
      setError(refusal);
    }
  };
  return html`<${Dialog} title="Lift this stop?" onClose=${onClose}
    ><form onSubmit=${submit}>
      <p>
        <strong><${Cover} stop=${stop} /></strong
        >${stop.reason === null ? null : html`: <${Text} value=${stop.reason} />`}
      </p>
      <p>
        ${needed === 1 ? "What waited and has not run out goes on at once." : html`It takes ${needed} people; ${before.length === 0 ? "nobody has asked yet" : html`${before.length} ${before.length === 1 ? "has" : "have"} asked`}. Until then it holds.`}
      </p>
      <${Field} name="reason" label="Reason" help="Recorded in the ledger." error=${error} maxlength="500" />
      <${Problem} error=${error} />
      <div class="row end">
        <button type="submit" class="primary">${needed === 1 ? "Lift it" : "Ask to lift it"}</button>
        <button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form><//
  >`;
}

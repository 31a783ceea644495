/** What was sent to people and programs, what waits, and what was given up. */
import { at, call, url } from "../core/api.ts";
import { values } from "../ui/forms.tsx";
import { Badge, Empty, Loading, Page, Problem, Table, Text, Time, html, useEffect, useState } from "../ui.js";

const STATES = ["waiting", "scheduled", "delivered", "dead", "obsolete"];
const WORDS = {
  approval_requested: "request",
  approval_escalated: "request, because others did not decide",
  approval_reminder: "reminder",
  approval_closed: "how it ended",
  outcome_unknown: "outcome unknown",
  break_glass: "emergency approval",
  stop: "stop",
  event: "entry of the ledger",
};
const KIND = {
  waiting: "require_approval",
  scheduled: "inactive",
  delivered: "active",
  dead: "failed",
  obsolete: "expired",
};
const PAGE = 50;
const EVERY = 5000;

/** What was given up, or waits because something failed. */
const canGoNow = ({ state, last_error }) => state === "dead" || (state === "waiting" && last_error !== null);

/** @param {{ query: URLSearchParams }} props */
export function Deliveries({ query }) {
  return html`<${List}
    key=${query.toString()}
    state=${query.get("state") ?? ""}
    action=${query.get("action_id") ?? ""}
  />`;
}

/** @param {{ state: string, action: string }} props */
function List({ state, action }) {
  const [rows, setRows] = useState(/** @type {any[]} */ ([]));
  const [cursor, setCursor] = useState(/** @type {string | null} */ (null));
  const [status, setStatus] = useState({ loading: true, error: /** @type {unknown} */ (null) });
  const page = (more) => call(url("/v1/deliveries", { state, action_id: action, limit: PAGE, cursor: more }));
  const refresh = async (first) => {
    try {
      const { deliveries, next_cursor } = await page(null);
      setRows((old) =>
        first
          ? deliveries
          : [...deliveries, ...old.slice(PAGE).filter((row) => !deliveries.some((other) => other.id === row.id))],
      );
      if (first) setCursor(next_cursor);
      setStatus({ loading: false, error: null });
    } catch (error) {
      setStatus({ loading: false, error });
    }
  };
  useEffect(() => {
    void refresh(true);
    const timer = setInterval(() => void refresh(false), EVERY);
    return () => clearInterval(timer);
  }, []);
  const older = async () => {
    try {
      const { deliveries, next_cursor } = await page(cursor);
      setRows((old) => [...old, ...deliveries]);
      setCursor(next_cursor);
    } catch (error) {
      setStatus({ loading: false, error });
    }
  };
  const retry = async (row) => {
    try {
      const again = await call(`/v1/deliveries/${at(row.id)}/retry`, { method: "POST" });
      setRows((old) => old.map((other) => (other.id === again.id ? again : other)));
      setStatus({ loading: false, error: null });
    } catch (error) {
      setStatus({ loading: false, error });
    }
  };
  const apply = (event) => {
    event.preventDefault();
    location.hash = url("#/deliveries", values(event.currentTarget));
  };
  return html`<${Page} title="Deliveries" side=${html`<span class="quiet">looked at every ${EVERY / 1000} s</span>`}>
    <form class="filters" onSubmit=${apply}>
      <div class="field">
        <label for="f-state">State</label
        ><select id="f-state" name="state">
          <option value="">any</option>
          ${STATES.map((name) => html`<option value=${name} selected=${name === state}>${name}</option>`)}
        </select>
      </div>
      <div class="field">
        <label for="f-action">Action</label
        ><input id="f-action" name="action_id" defaultValue=${action} autocomplete="off" spellcheck=${false} />
      </div>
      <button type="submit" class="primary">Filter</button>
      ${state !== "" || action !== "" ? html`<a class="button" href="#/deliveries">All</a>` : null}
    </form>
    <${Problem} error=${status.error} again=${() => refresh(true)} />
    ${rows.length === 0 && status.loading ? html`<${Loading} what="deliveries" />` : null}
    ${rows.length === 0 && !status.loading && status.error === null ? html`<${Empty} text=${state === "" && action === "" ? "Nobody was told anything yet: channels of assent.yaml say who is." : "No delivery fits."} />` : null}
    ${
      rows.length === 0
        ? null
        : html`<${Table} label="Deliveries" head=${["To", "What", "State", "Attempts", "When"]}>
            ${rows.map(
              (row) =>
                html`<tr key=${row.id}>
                  <td>
                    <strong><${Text} value=${row.person ?? row.recipient} /></strong><br /><span class="quiet"
                      ><${Text}
                        value=${row.destination}
                      />${row.channel === null ? null : html` · <${Text} value=${row.channel} />`}</span
                    >
                  </td>
                  <td>
                    ${WORDS[row.kind] ?? row.kind}${row.action_id === null ? null : html`<br /><a href=${`#/actions/${at(row.action_id)}`}>Action</a>`}
                  </td>
                  <td>
                    <${Badge}
                      value=${KIND[row.state] ?? ""}
                      label=${row.state}
                    />${row.last_error === null ? null : html`<br /><span class="quiet"><${Text} value=${row.last_error} /></span>`}
                  </td>
                  <td data-label="Attempts">
                    ${row.attempts}${canGoNow(row) ? html` <button type="button" class="small" onClick=${() => retry(row)}>Try again</button>` : null}
                  </td>
                  <td>
                    ${row.delivered_at !== null ? html`<${Time} at=${row.delivered_at} />` : row.next_attempt_at !== null ? html`next <${Time} at=${row.next_attempt_at} />` : html`<${Time} at=${row.updated_at} />`}
                  </td>
                </tr>`,
            )}
          <//>`
    }
    ${cursor === null ? null : html`<button type="button" onClick=${older}>Load older</button>`}
  <//>`;
}

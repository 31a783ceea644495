/** Every action: a list that follows the ledger, and one action with its history, its proof and its replay. */
import { at, call, url } from "../core/api.ts";
import { follow } from "../core/live.ts";
import { ActionDetail } from "./action.tsx";
import { findHeadlineMember } from "../ui/params.tsx";
import { What } from "../ui/request.tsx";
import {
  Badge,
  Empty,
  Live,
  Loading,
  Page,
  Problem,
  Table,
  Text,
  Time,
  html,
  useEffect,
  useRef,
  useState,
} from "../ui.js";

const STATUSES = [
  "allowed",
  "denied",
  "pending_approval",
  "approved",
  "expired",
  "cancelled",
  "executing",
  "unknown",
  "succeeded",
  "failed",
];
const FILTERS = ["status", "agent_id", "tool", "operation", "since", "until", "grant_id"];
const PAGE = 50;
/** Most rows that are loaded to fill a gap, such as after the computer slept. Beyond it the list begins anew. */
const MOST_MISSED = 1000;

/** @param {{ id: string | null, query: URLSearchParams }} props */
export function Actions({ id, query }) {
  return id === null
    ? html`<${List} key=${query.toString()} query=${query} />`
    : html`<${ActionDetail} key=${id} id=${id} />`;
}

/** The filters stand in the address: it can be kept and sent. @param {{ query: URLSearchParams }} props */
function List({ query }) {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""]));
  const [rows, setRows] = useState(/** @type {any[]} */ ([]));
  const [cursor, setCursor] = useState(null);
  const [state, setState] = useState({ loading: true, error: null });
  const [live, setLive] = useState({ state: "starting", why: "" });
  const fetchPage = (more, signal) =>
    call(
      url("/v1/actions", {
        ...filters,
        since: toUtc(filters["since"]),
        until: toUtc(filters["until"]),
        limit: PAGE,
        cursor: more,
      }),
      signal === undefined ? {} : { signal },
    );

  const pending = useRef(null);
  const first = useRef(false);
  const rowsRef = useRef(rows);
  rowsRef.current = rows;
  /** Counts the times that the list began anew: an older page of an earlier list is not appended. */
  const lists = useRef(0);
  /** Reads the newest pages, down to the rows that are displayed. Those stay, with what was loaded below them. */
  const refresh = async (signal) => {
    try {
      const newest = [];
      let next = null;
      let isGap = false;
      do {
        const page = await fetchPage(next, signal);
        newest.push(...page.actions);
        next = page.next_cursor;
        isGap = next !== null && rowsRef.current.length > 0 && rowsRef.current[0].id < newest.at(-1).id;
      } while (isGap && newest.length < MOST_MISSED);
      const oldest = newest.at(-1)?.id ?? "";
      setRows(next === null || isGap ? newest : [...newest, ...rowsRef.current.filter((row) => row.id < oldest)]);
      if (!first.current || isGap) {
        lists.current += 1;
        setCursor(next);
      }
      first.current = true;
      setState({ loading: false, error: null });
    } catch (error) {
      if (!signal?.aborted) setState({ loading: false, error });
    }
  };
  const older = async () => {
    const list = lists.current;
    try {
      const { actions, next_cursor } = await fetchPage(cursor);
      if (list !== lists.current) return;
      setRows((old) => [...old, ...actions]);
      setCursor(next_cursor);
    } catch (error) {
      setState({ loading: false, error });
    }
  };

  useEffect(() => {
    const over = new AbortController();
    void refresh(over.signal);
    // Many events are one read per second.
    const soon = () => (pending.current ??= setTimeout(() => ((pending.current = null), refresh(over.signal)), 1000));
    follow({
      filters: { type: "decision,approval,execution", agent_id: filters["agent_id"], tool: filters["tool"] },
      signal: over.signal,
      onEvent: soon,
      onState: (next, why) => (setLive({ state: next, why }), next === "live" && soon()),
    });
    return () => {
      over.abort();
      clearTimeout(pending.current);
    };
  }, []);

  const apply = (event) => {
    event.preventDefault();
    const chosen = Object.fromEntries(
      [...new FormData(event.currentTarget)].map(([name, value]) => [
        name,
        typeof value === "string" ? value.trim() : "",
      ]),
    );
    location.hash = url("#/actions", chosen);
  };
  return html`<${Page} title="Actions" side=${html`<${Live} ...${live} />`}>
    <form class="filters" onSubmit=${apply}>
      <div class="field">
        <label for="f-status">Status</label
        ><select id="f-status" name="status">
          <option value="">any</option>
          ${STATUSES.map((status) => html`<option value=${status} selected=${status === filters["status"]}>${status.replace("_", " ")}</option>`)}
        </select>
      </div>
      ${[
        ["agent_id", "Agent"],
        ["tool", "Tool"],
        ["operation", "Operation"],
        ["grant_id", "Grant"],
      ].map(
        ([name, label]) =>
          html`<div class="field">
            <label for=${`f-${name}`}>${label}</label
            ><input
              id=${`f-${name}`}
              name=${name}
              defaultValue=${filters[name]}
              autocomplete="off"
              spellcheck=${false}
            />
          </div>`,
      )}
      ${[
        ["since", "From"],
        ["until", "Until"],
      ].map(
        ([name, label]) =>
          html`<div class="field moment">
            <label for=${`f-${name}`}>${label}</label
            ><input id=${`f-${name}`} name=${name} type="datetime-local" defaultValue=${filters[name]} />
          </div>`,
      )}
      <button type="submit" class="primary">Filter</button>
      ${FILTERS.some((name) => filters[name] !== "") ? html`<a class="button" href="#/actions">All</a>` : null}
    </form>
    <${Problem} error=${state.error} again=${() => refresh()} />
    ${rows.length === 0 && !state.loading && state.error === null ? html`<${Empty} text="No action matches." />` : null}
    ${rows.length === 0 && state.loading ? html`<${Loading} what="actions" />` : null}
    ${
      rows.length === 0
        ? null
        : html`<${Table} label="Actions" head=${["Action", "Value", "Status", "Reason", "When"]}>
            ${rows.map(
              (row) =>
                html`<tr key=${row.id}>
                  <td>
                    <a href=${`#/actions/${at(row.id)}`}><${What} action=${row} /></a>
                  </td>
                  <td data-label="Value"><${Value} action=${row} /></td>
                  <td><${Badge} value=${row.status} /></td>
                  <td class="why"><${Text} value=${row.reason} /></td>
                  <td><${Time} at=${row.created_at} /></td>
                </tr>`,
            )}
          <//>`
    }
    ${cursor === null ? null : html`<button type="button" onClick=${older}>Load older</button>`}
  <//>`;
}

/** The parameter that tells an action from others of its kind. @param {{ action: any }} props */
function Value({ action }) {
  const value = action.erased_at ? null : findHeadlineMember(action);
  return value === null
    ? null
    : html`<span class="quiet"><${Text} value=${value.name} /></span> <${Text} value=${value.value} />`;
}

/** What a date field gives is in the reader's zone. @param {string} text */
function toUtc(text) {
  const time = Date.parse(text);
  return Number.isNaN(time) ? "" : new Date(time).toISOString();
}

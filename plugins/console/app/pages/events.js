/** The ledger as it grows. */
import { at, url } from "../core/api.ts";
import { follow } from "../core/live.ts";
import { JsonDisclosure } from "../ui/params.tsx";
import { Who } from "../ui/person.tsx";
import { Badge, Empty, Live, Page, Text, Time, html, useEffect, useState } from "../ui.js";

const TYPES = [
  "decision",
  "approval",
  "redecision",
  "question",
  "execution",
  "erasure",
  "policy_set",
  "api_key",
  "agent",
  "user",
  "stop",
  "permit_key",
  "log_key",
];
/** Older ones leave the page: it may stay open for weeks. */
const KEPT = 500;
/** Events that come together are drawn together. Milliseconds. */
const DRAW_EVERY = 500;

/** @param {{ query: URLSearchParams }} props the filters stand in the address */
export function Events({ query }) {
  return html`<${Tail} key=${query.toString()} query=${query} />`;
}

function Tail({ query }) {
  const types = query
    .getAll("type")
    .flatMap((text) => text.split(","))
    .filter((type) => TYPES.includes(type));
  const filters = {
    type: types.join(",") || undefined,
    agent_id: query.get("agent_id") || undefined,
    tool: query.get("tool") || undefined,
  };
  const from = query.get("after");
  // One state, changed from what it was: an event that comes while the page is drawn must not be lost.
  const [{ events, held, paused }, setTail] = useState({
    events: /** @type {any[]} */ ([]),
    held: /** @type {any[]} */ ([]),
    paused: false,
  });
  const [live, setLive] = useState({ state: "starting", why: "" });
  useEffect(() => {
    const over = new AbortController();
    let arrived = /** @type {any[]} */ ([]);
    let timer;
    const draw = () => {
      timer = undefined;
      const newest = arrived;
      arrived = [];
      setTail((old) =>
        old.paused
          ? { ...old, held: [...newest, ...old.held].slice(0, KEPT) }
          : { ...old, events: [...newest, ...old.events].slice(0, KEPT) },
      );
    };
    follow({
      filters,
      ...(from !== null && /^(-1|\d{1,15})$/.test(from) ? { after: Number(from) } : {}),
      signal: over.signal,
      onEvent(event) {
        arrived.unshift(event);
        // What would leave the page at once is not kept.
        if (arrived.length > KEPT) arrived.length = KEPT;
        timer ??= setTimeout(draw, DRAW_EVERY);
      },
      onState: (state, why) => setLive({ state, why }),
    });
    return () => (clearTimeout(timer), over.abort());
  }, []);
  const pause = () =>
    setTail((old) =>
      old.paused
        ? { events: [...old.held, ...old.events].slice(0, KEPT), held: [], paused: false }
        : { ...old, paused: true },
    );
  const clear = () => setTail((old) => ({ ...old, events: [] }));
  const apply = (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const chosen = /** @type {string[]} */ (form.getAll("type"));
    const text = (name) => /** @type {string} */ (form.get(name)).trim();
    location.hash = url("#/events", {
      type: chosen.join(","),
      agent_id: text("agent_id"),
      tool: text("tool"),
      after: text("after"),
    });
  };
  return html`<${Page} title="Events" side=${html`<${Live} ...${live} />`}>
    <form class="filters" onSubmit=${apply}>
      <fieldset class="inline">
        <legend>Types</legend>
        ${TYPES.map((type) => html`<label class="check"><input type="checkbox" name="type" value=${type} defaultChecked=${types.includes(type)} /> ${type.replace("_", " ")}</label>`)}
      </fieldset>
      <div class="field">
        <label for="e-agent">Agent</label
        ><input
          id="e-agent"
          name="agent_id"
          defaultValue=${filters.agent_id ?? ""}
          autocomplete="off"
          spellcheck=${false}
        />
      </div>
      <div class="field">
        <label for="e-tool">Tool</label
        ><input id="e-tool" name="tool" defaultValue=${filters.tool ?? ""} autocomplete="off" spellcheck=${false} />
      </div>
      <div class="field">
        <label for="e-after">From</label
        ><select id="e-after" name="after">
          <option value="">now on</option>
          <option value="-1" selected=${from === "-1"}>the beginning</option>
        </select>
      </div>
      <button type="submit" class="primary">Filter</button>
    </form>
    <div class="row">
      <button type="button" aria-pressed=${paused} onClick=${pause}>
        ${paused ? `Go on (${held.length} new)` : "Pause"}</button
      ><button type="button" onClick=${clear}>Clear</button>
    </div>
    ${events.length === 0 ? html`<${Empty} text=${live.state === "live" ? "Waiting for events." : "No event yet."} />` : null}
    <ol class="events" reversed>
      ${events.map(row)}
    </ol>
  <//>`;
}

/** The same element for the same event: what is drawn already is not compared again. @type {WeakMap<object, unknown>} */
const drawn = new WeakMap();

/** @param {any} event */
function row(event) {
  if (!drawn.has(event)) drawn.set(event, html`<li key=${event.seq} class="card"><${Event} event=${event} /></li>`);
  return drawn.get(event);
}

/** @param {{ event: any }} props */
function Event({ event }) {
  const { entry } = event;
  const said = {
    decision: () =>
      html`<${Badge} value=${entry.decision.effect} /> <${Text} value=${entry.tool} />
        <${Text} value=${entry.operation} /> by <${Text} value=${entry.agent_id} />`,
    approval: () =>
      html`<${Badge}
          value=${{ approve: "approved", deny: "denied", rejection_lifted: "rejection lifted" }[entry.verdict] ?? entry.verdict}
        />
        ${entry.by === null ? "by the clock" : html`by <${Who} principal=${entry.by.principal} />`}`,
    redecision: () =>
      html`<${Badge} value=${entry.status} /> decided again,
        ${{ vote: "at a vote", start: "at a start", permit: "for a permit" }[entry.occasion]}, for
        <${Text} value=${entry.agent_id} />`,
    execution: () => html`<${Badge} value=${entry.status} /> by <${Text} value=${entry.agent_id} />`,
    erasure: () => html`what <${Text} value=${entry.agent_id} /> asked was erased: <${Text} value=${entry.reason} />`,
    policy_set: () => html`${entry.policy_count} policies decide`,
    api_key: () => html`key <${Text} value=${entry.key.name} /> ${entry.change}`,
    stop: () => html`stop ${entry.change.replace("_", " ")}: <${Text} value=${entry.stop.reason} />`,
    agent: () => html`<${Text} value=${entry.agent.id ?? ""} /> ${entry.change}`,
  }[event.type];
  return html`<div class="row">
      <a href=${`#/provenance/${at(event.hash)}`}>#${event.seq}</a>
      <${Badge} value=${event.type} label=${event.type.replace("_", " ")} /> <span>${said?.()}</span>
      <${Time} at=${event.at} />
      ${entry.action_id === undefined ? null : html`<a href=${`#/actions/${at(entry.action_id)}`}>Action</a>`}
    </div>
    <${JsonDisclosure} value=${entry} label=${`Entry ${event.seq}`} summary="Entry" />`;
}

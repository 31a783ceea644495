/** The queue of what waits for a person. */
import { call, at } from "/console/api.js";
import { Copy, Empty, Left, Live, Notice, Page, Problem, Text, html, useEffect, useRef, useState, useNow } from "/console/ui.js";
import { plain, who } from "/console/text.js";
import { Request, Risk, What } from "/console/request.js";
import { Verdict } from "/console/pages/verdict.js";
import { useQueue } from "/console/pages/queue.js";

/** @param {{ id: string | null }} props id: the approval that the address names, as links in notifications do */
export function Approvals({ id }) {
  const queue = useQueue(id);
  const time = useNow();
  const [selected, setSelected] = useState(/** @type {Set<string>} */ (new Set()));
  const [asking, setAsking] = useState(/** @type {{ items: any[], approve: boolean } | null} */ (null));
  const [said, setSaid] = useState("");
  const [shortcuts, setShortcuts] = useState(sessionStorage.getItem("assent.shortcuts") !== "off");
  const list = useRef(null);
  const open = queue.items.find((item) => item.action.id === id) ?? null;
  const decidable = (item) => item.outcome === null && Date.parse(item.action.expires_at) > time;
  const waiting = queue.items.filter(decidable).length;
  useEffect(() => {
    document.title = `${waiting === 0 ? "" : `(${waiting}) `}Approvals · Assent`;
  }, [waiting]);

  const choose = (action) => (location.hash = action.id === id ? "#/approvals" : `#/approvals/${at(action.id)}`);
  const toggle = (which) => setSelected((old) => {
    const next = new Set(old);
    if (!next.delete(which)) next.add(which);
    return next;
  });

  const keys = useRef(null);
  keys.current = (event) => {
    if (!shortcuts || asking !== null || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof Element && event.target.closest("input:not([type=checkbox]), textarea, select") !== null) return;
    const place = queue.items.findIndex((item) => item.action.id === id);
    const step = { j: 1, k: -1 }[event.key];
    if (step !== undefined && queue.items.length > 0) {
      const next = queue.items[Math.min(Math.max(place + step, 0), queue.items.length - 1)];
      if (next.action.id !== id) location.hash = `#/approvals/${at(next.action.id)}`;
      list.current?.querySelector(`[data-id="${next.action.id}"]`)?.focus();
      event.preventDefault();
    } else if (open !== null && decidable(open) && (event.key === "a" || event.key === "d")) {
      setAsking({ items: [open], approve: event.key === "a" });
      event.preventDefault();
    } else if (open !== null && decidable(open) && event.key === "x") {
      toggle(open.action.id);
      event.preventDefault();
    }
  };
  useEffect(() => {
    const listen = (event) => keys.current(event);
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);

  const chosen = queue.items.filter((item) => selected.has(item.action.id) && decidable(item));
  const settled = queue.items.filter((item) => item.outcome !== null).length;
  return html`
    <${Page} title="Approvals" side=${html`<${Live} ...${queue.live} />`}>
      <p class="quiet shortcuts"><label class="check"><input type="checkbox" checked=${shortcuts} onChange=${(event) => (sessionStorage.setItem("assent.shortcuts", event.target.checked ? "on" : "off"), setShortcuts(event.target.checked))} /> Shortcuts: <kbd>j</kbd> next, <kbd>k</kbd> previous, <kbd>a</kbd> approve, <kbd>d</kbd> deny, <kbd>x</kbd> select</label></p>
      <${Problem} error=${queue.error} again=${queue.reload} />
      <div role="status">${said === "" ? null : html`<${Notice}>${said}<//>`}</div>
      ${chosen.length === 0 ? null : html`<div class="card row" role="group" aria-label="Selected">
        <strong>${chosen.length} selected</strong>
        <button type="button" class="primary" onClick=${() => setAsking({ items: chosen, approve: true })}>Approve selected…</button>
        <button type="button" class="danger" onClick=${() => setAsking({ items: chosen, approve: false })}>Deny selected…</button>
        <button type="button" onClick=${() => setSelected(new Set())}>Select none</button>
      </div>`}
      ${settled === 0 ? null : html`<p><button type="button" class="small" onClick=${queue.clear}>Clear ${settled} settled</button></p>`}
      ${queue.more ? html`<${Notice} kind="busy">The 1,000 newest are shown; more wait. Decide some, then reload.<//>` : null}
      ${queue.items.length === 0 && !queue.loading && queue.error === null ? html`<${Empty} text="Nothing waits for a person." />` : null}
      <ul class="queue" ref=${list}>
        ${queue.items.map((item) => html`<li key=${item.action.id}><${Item} item=${item} open=${item === open} time=${time} selected=${selected.has(item.action.id)} onOpen=${() => choose(item.action)} onSelect=${() => toggle(item.action.id)} onDecide=${(approve) => setAsking({ items: [item], approve })} /></li>`)}
      </ul>
      ${id !== null && open === null && !queue.loading ? html`<${Elsewhere} id=${id} />` : null}
    <//>
    ${asking === null ? null : html`<${Verdict} ...${asking} time=${time} onSettled=${queue.settle} onRefused=${queue.refuse} onClose=${(summary) => {
      setAsking(null);
      setSelected(new Set());
      setSaid(summary ?? "");
    }} />`}`;
}

/** @param {{ item: any, open: boolean, time: number, selected: boolean, onOpen: () => void, onSelect: () => void, onDecide: (approve: boolean) => void }} props */
function Item({ item, open, time, selected, onOpen, onSelect, onDecide }) {
  const { action, outcome, full, error } = item;
  const late = Date.parse(action.expires_at) <= time;
  const closed = outcome !== null || late;
  return html`<article class=${`card approval ${closed ? "closed" : ""} ${open ? "open" : ""}`} aria-label=${plain(`${action.tool} ${action.operation}`)}>
    <div class="summary">
      <input type="checkbox" aria-label=${plain(`Select ${action.tool} ${action.operation} by ${action.agent_id}`)} checked=${selected && !closed} disabled=${closed} onChange=${onSelect} />
      <button type="button" class="plain" data-id=${action.id} aria-expanded=${open} onClick=${onOpen}><${What} action=${action} /></button>
      <span class="row">
        <${Risk} risk=${action.risk_level} />
        ${action.approvals_needed > 1 ? html`<span class="quiet">${action.approvals.filter((vote) => vote.approve).length} of ${action.approvals_needed} approvals</span>` : null}
        ${outcome === null ? html`<${Left} at=${action.expires_at} time=${time} />` : null}
      </span>
    </div>
    ${outcome === null ? null : html`<${Notice} kind=${outcome.kind}><${Text} value=${outcome.text} /><//>`}
    ${outcome === null && late ? html`<${Notice} kind="busy">Time is up: nobody can decide this any more. The agent has to ask again.<//>` : null}
    <${Problem} error=${error} />
    ${!open ? html`<p class="why quiet"><${Text} value=${action.reason} /></p><p class="preview"><code><${Text} value=${JSON.stringify(action.params)} /></code></p>` : html`
      <${Request} action=${action} />
      <p class="quiet">Your verdict counts for this hash alone; ${action.approvals_needed > 1 ? `${action.approvals_needed} different people must approve` : "one approval is enough"}. One denial ends it.</p>
      ${action.approvals.length === 0 ? null : html`<ul>${action.approvals.map((vote) => html`<li><${Text} value=${who(vote.approver)} /> ${vote.approve ? "approved" : "denied"}${vote.reason ? html`: <${Text} value=${vote.reason} />` : null}</li>`)}</ul>`}
      ${closed ? null : full && action.approval_token === undefined ? html`<${Notice} kind="busy">This key cannot decide it: it has voted already, or it stands behind the request (same key, agent or owner), or it does not hold <code>approvals:decide</code>.<//>` : html`<div class="row">
        <button type="button" class="primary" onClick=${() => onDecide(true)}>Approve…</button>
        <button type="button" class="danger" onClick=${() => onDecide(false)}>Deny…</button>
        <a href=${`#/actions/${at(action.id)}`}>History and proof</a>
        <${Copy} value=${`${location.origin}/#/approvals/${at(action.id)}`} label="Copy link" />
      </div>`}`}
  </article>`;
}

/** A link led here, and it is not waiting any more. @param {{ id: string }} props */
function Elsewhere({ id }) {
  const [state, setState] = useState(/** @type {{ action: any, error: unknown }} */ ({ action: null, error: null }));
  useEffect(() => {
    let over = false;
    call(`/v1/actions/${at(id)}`).then((action) => over || setState({ action, error: null }), (error) => over || setState({ action: null, error }));
    return () => (over = true);
  }, [id]);
  if (state.error !== null) return html`<${Problem} error=${state.error} />`;
  if (state.action === null) return null;
  return html`<${Notice}>This one is settled: <${What} action=${state.action} /> is ${state.action.status.replace("_", " ")}. <a href=${`#/actions/${at(id)}`}>Look at it</a><//>`;
}

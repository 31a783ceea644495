/** The queue of what waits for a person. */
import { at } from "../api.js";
import { may } from "../me.js";
import { duration } from "../text.js";
import { Empty, Live, Loading, Notice, Page, Problem, html, useEffect, useRef, useState, useNow } from "../ui.js";
import { Apart, Item, standing } from "./approval.js";
import { useQueue } from "./queue.js";
import { useSteady } from "./steady.js";
import { Verdict } from "./verdict.js";

/** @param {{ id: string | null }} props id: the approval that the address names, as links in notifications do */
export function Approvals({ id }) {
  const queue = useQueue(id);
  const time = useNow();
  const [selected, setSelected] = useState(/** @type {Set<string>} */ (new Set()));
  const [asking, setAsking] = useState(/** @type {{ items: any[], approve: boolean } | null} */ (null));
  const [said, setSaid] = useState("");
  const [shortcuts, setShortcuts] = useState(sessionStorage.getItem("assent.shortcuts") !== "off");
  const list = useRef(null);
  const rows = queue.apart === null ? queue.items : [queue.apart, ...queue.items];
  const open = rows.find((item) => item.action.id === id) ?? null;
  const decidable = (item) => standing(item, time) === "open";
  const total = queue.total ?? 0;
  useSteady(list, id, rows.length);
  useEffect(() => {
    document.title = `${total === 0 ? "" : `(${total}) `}Approvals · Assent`;
  }, [total]);

  const choose = (which) => (location.hash = which === id ? "#/approvals" : `#/approvals/${at(which)}`);
  const toggle = (which) =>
    setSelected((old) => {
      const next = new Set(old);
      if (!next.delete(which)) next.add(which);
      return next;
    });

  const keys = useRef(null);
  keys.current = (event) => {
    if (!shortcuts || asking !== null || event.ctrlKey || event.metaKey || event.altKey) return;
    if (
      event.target instanceof Element &&
      event.target.closest("input:not([type=checkbox]), textarea, select") !== null
    )
      return;
    const place = rows.findIndex((item) => item.action.id === id);
    const step = { j: 1, k: -1 }[event.key];
    if (step !== undefined && rows.length > 0) {
      const next = rows[Math.min(Math.max(place + step, 0), rows.length - 1)].action.id;
      if (next !== id) location.hash = `#/approvals/${at(next)}`;
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

  const chosen = rows.filter((item) => selected.has(item.action.id) && decidable(item));
  const settled = queue.items.filter((item) => item.outcome !== null).length;
  const show = (item) =>
    html`<${Item}
      item=${item}
      open=${item === open}
      time=${time}
      selected=${selected.has(item.action.id)}
      onOpen=${() => choose(item.action.id)}
      onSelect=${() => toggle(item.action.id)}
      onDecide=${(approve) => setAsking({ items: [item], approve })}
    />`;
  return html` <${Page} title="Approvals" side=${html`<${Live} ...${queue.live} />`}>
      <p class="row standing">
        <strong role="status"
          >${queue.total === null ? "" : `${total.toLocaleString()} ${total === 1 ? "waits" : "wait"}`}</strong
        >
        ${queue.held.length === 0 ? null : html`<${Held} items=${queue.held} time=${time} onShow=${queue.show} />`}
        ${settled === 0 ? null : html`<button type="button" class="small" onClick=${queue.clear}>Clear ${settled} settled</button>`}
      </p>
      ${
        may("approvals:decide")
          ? html`<p class="quiet shortcuts">
              <label class="check"
                ><input
                  type="checkbox"
                  checked=${shortcuts}
                  onChange=${(event) => (sessionStorage.setItem("assent.shortcuts", event.target.checked ? "on" : "off"), setShortcuts(event.target.checked))}
                />
                Shortcuts: <kbd>j</kbd> next, <kbd>k</kbd> previous, <kbd>a</kbd> approve, <kbd>d</kbd> deny,
                <kbd>x</kbd> select</label
              >
            </p>`
          : html`<p class="quiet">You are signed in with a key that may look and not decide.</p>`
      }
      <${Problem} error=${queue.error} again=${queue.reload} />
      <div role="status">${said === "" ? null : html`<${Notice}>${said}<//>`}</div>
      ${
        chosen.length === 0
          ? null
          : html`<div class="card row chosen" role="group" aria-label="Selected">
              <strong>${chosen.length} selected</strong>
              <button type="button" class="primary" onClick=${() => setAsking({ items: chosen, approve: true })}>
                Approve selected…
              </button>
              <button type="button" class="danger" onClick=${() => setAsking({ items: chosen, approve: false })}>
                Deny selected…
              </button>
              <button type="button" onClick=${() => setSelected(new Set())}>Select none</button>
            </div>`
      }
      ${queue.loading && queue.error === null ? html`<${Loading} what="what waits" />` : null}
      ${rows.length === 0 && total === 0 && !queue.loading && queue.error === null ? html`<${Empty} text="Nothing waits for a person." />` : null}
      <div class="queue" ref=${list}>
        ${queue.apart === null ? null : html`<${Apart} item=${queue.apart}>${show(queue.apart)}<//>`}
        <ul>
          ${queue.items.map((item) => html`<li key=${item.action.id}>${show(item)}</li>`)}
        </ul>
      </div>
      ${
        queue.cursor === null
          ? null
          : html`<p class="row">
              <button type="button" onClick=${queue.more}>Show more</button>
              <span class="quiet"
                >${queue.items.length.toLocaleString()} shown, ${total.toLocaleString()} wait. What expires first stands
                first.</span
              >
            </p>`
      }
    <//>
    ${
      asking === null
        ? null
        : html`<${Verdict}
            ...${asking}
            time=${time}
            onSettled=${queue.settle}
            onRefused=${queue.refuse}
            onClose=${(summary) => {
              setAsking(null);
              // Cancel leaves all as it was.
              if (summary === undefined) return;
              setSelected(new Set());
              setSaid(summary);
            }}
          />`
    }`;
}

/** What has come in and would stand above what is read: shown when asked for. @param {{ items: any[], time: number, onShow: () => void }} props */
function Held({ items, time, onShow }) {
  const soonest = Math.min(...items.map((item) => Date.parse(item.action.expires_at)));
  return html`<button type="button" class="small held" onClick=${onShow}>
    Show ${items.length} new, the first ends in ${duration(soonest - time)}
  </button>`;
}

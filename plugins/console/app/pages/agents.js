/** Registered agents: their tools, and their suspension. */
import { at, call, url } from "../core/api.ts";
import { Field, values } from "../ui/forms.tsx";
import { list, plain } from "../ui/format.ts";
import {
  Badge,
  Dialog,
  Empty,
  Loading,
  Notice,
  Page,
  Problem,
  Table,
  Text,
  Time,
  html,
  useLoad,
  useState,
} from "../ui.js";

export function Agents() {
  const [editing, setEditing] = useState(/** @type {any} */ (null));
  const [changing, setChanging] = useState(/** @type {any} */ (null));
  const [said, setSaid] = useState("");
  const { data, error, loading, reload } = useLoad(
    (signal) => call(url("/v1/agents", { limit: 1000 }), { signal }),
    [],
  );
  const rows = data?.agents ?? [];
  const done = (words) => {
    setEditing(null);
    setChanging(null);
    setSaid(words);
    reload();
  };
  return html`<${Page}
      title="Agents"
      side=${html`<button type="button" class="primary" onClick=${() => setEditing({})}>Register an agent…</button>`}
    >
      <div role="status">${said === "" ? null : html`<${Notice} kind="good"><${Text} value=${said} /><//>`}</div>
      <${Problem} error=${error} again=${reload} />
      ${data === null && loading ? html`<${Loading} what="agents" />` : null}
      ${rows.length === 0 && !loading && error === null ? html`<${Empty} text="No agent is registered. An agent with a key may submit all the same, unless require_registered_agents is on." />` : null}
      ${
        rows.length === 0
          ? null
          : html`<${Table} label="Agents" head=${["Agent", "Status", "Tools", "Changed", ""]}>
              ${rows.map(
                (row) =>
                  html`<tr key=${row.id}>
                    <td>
                      <strong><${Text} value=${row.name} /></strong><br /><code><${Text} value=${row.id} /></code
                      >${row.description ? html`<br /><span class="quiet"><${Text} value=${row.description} /></span>` : null}<br /><a
                        href=${url("#/actions", { agent_id: row.id })}
                        aria-label=${`Actions of ${plain(row.id)}`}
                        >Actions</a
                      >
                    </td>
                    <td>
                      <${Badge}
                        value=${row.status}
                      />${row.suspended_reason ? html`<br /><${Text} value=${row.suspended_reason} />` : null}
                    </td>
                    <td data-label="Tools">
                      ${row.allowed_tools === null ? html`<span class="quiet">every tool</span>` : row.allowed_tools.length === 0 ? html`<span class="quiet">none</span>` : html`<${Text} value=${row.allowed_tools.join(", ")} />`}
                    </td>
                    <td data-label="Changed"><${Time} at=${row.updated_at} /></td>
                    <td>
                      <div class="row">
                        <button
                          type="button"
                          class="small"
                          aria-label=${`Change ${plain(row.id)}`}
                          onClick=${() => setEditing(row)}
                        >
                          Change…
                        </button>
                        <button
                          type="button"
                          class=${`small ${row.status === "active" ? "danger" : ""}`}
                          aria-label=${`${row.status === "active" ? "Suspend" : "Resume"} ${plain(row.id)}`}
                          onClick=${() => setChanging(row)}
                        >
                          ${row.status === "active" ? "Suspend…" : "Resume…"}
                        </button>
                      </div>
                    </td>
                  </tr>`,
              )}
            <//>`
      }
    <//>
    ${editing === null ? null : html`<${Edit} row=${editing} onClose=${() => setEditing(null)} onDone=${done} />`}
    ${changing === null ? null : html`<${Suspend} row=${changing} onClose=${() => setChanging(null)} onDone=${done} />`}`;
}

/** Changes what was looked at and nothing newer. @param {any} row */
function match(row) {
  return { "if-match": `"${row.version}"` };
}

/** @param {{ row: any, onClose: () => void, onDone: (said: string) => void }} props row: `{}` for a new one */
function Edit({ row, onClose, onDone }) {
  const fresh = row.id === undefined;
  const [limit, setLimit] = useState(row.allowed_tools != null);
  const [error, setError] = useState(/** @type {any} */ (null));
  const submit = async (event) => {
    event.preventDefault();
    const { id, name, description, allowed_tools } = values(event.currentTarget);
    const body = {
      ...(name === "" ? {} : { name }),
      description: description || null,
      allowed_tools: limit ? list(allowed_tools ?? "") : null,
    };
    try {
      if (fresh) await call("/v1/agents", { method: "POST", body: { id, ...body } });
      else await call(`/v1/agents/${at(row.id)}`, { method: "PATCH", headers: match(row), body });
      onDone(fresh ? `“${id}” is registered.` : `“${row.id}” is changed.`);
    } catch (refusal) {
      setError(refusal);
    }
  };
  return html`<${Dialog}
    title=${fresh ? "Register an agent" : html`Change <${Text} value=${row.id} />`}
    onClose=${onClose}
    ><form onSubmit=${submit}>
      ${fresh ? html`<${Field} name="id" label="Id" help="What its actions name as agent_id." error=${error} required maxlength="256" />` : null}
      <${Field}
        name="name"
        label="Name"
        help="For people."
        error=${error}
        defaultValue=${row.name ?? ""}
        maxlength="100"
      />
      <${Field}
        name="description"
        label="Description"
        error=${error}
        defaultValue=${row.description ?? ""}
        maxlength="2000"
      />
      <label class="check"
        ><input type="checkbox" checked=${limit} onChange=${(event) => setLimit(event.target.checked)} /> Only these
        tools</label
      >
      ${limit ? html`<${Field} name="allowed_tools" label="Tools" help="Globs, separated by spaces: stripe crm.*. Empty: none at all. Another tool is denied before any policy is asked." error=${error} defaultValue=${(row.allowed_tools ?? []).join(" ")} />` : null}
      <${Problem} error=${error} />
      <div class="row end">
        <button type="submit" class="primary">${fresh ? "Register" : "Change"}</button>
        <button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form><//
  >`;
}

/** @param {{ row: any, onClose: () => void, onDone: (said: string) => void }} props */
function Suspend({ row, onClose, onDone }) {
  const [error, setError] = useState(null);
  const active = row.status === "active";
  const submit = async (event) => {
    event.preventDefault();
    const { reason } = values(event.currentTarget);
    try {
      await call(`/v1/agents/${at(row.id)}/${active ? "suspend" : "resume"}`, {
        method: "POST",
        headers: match(row),
        ...(active ? { body: reason ? { reason } : {} } : {}),
      });
      onDone(active ? `“${row.id}” is suspended: everything it submits is denied.` : `“${row.id}” may submit again.`);
    } catch (refusal) {
      setError(refusal);
    }
  };
  return html`<${Dialog} title=${active ? "Suspend this agent?" : "End this suspension?"} onClose=${onClose}
    ><form onSubmit=${submit}>
      <p>
        <strong><${Text} value=${row.id} /></strong
        >${active ? ": everything it submits is denied from now on. What it was allowed before stays allowed; revoke its key to stop that too." : " may submit again; policies decide as before."}
      </p>
      ${active ? html`<${Field} name="reason" label="Reason" help="Recorded in the ledger." maxlength="500" />` : null}
      <${Problem} error=${error} />
      <div class="row end">
        <button type="submit" class=${active ? "danger" : "primary"}>${active ? "Suspend" : "Resume"}</button>
        <button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form><//
  >`;
}

/** API keys: who may call, and what for. */
import { at, call, url } from "../core/api.ts";
import { may } from "../core/me.ts";
import { COOKIE, key } from "../core/session.ts";
import { Field, values } from "../ui/forms.tsx";
import { plain } from "../ui/format.ts";
import {
  Badge,
  Copy,
  Dialog,
  Empty,
  Hash,
  Loading,
  Notice,
  Page,
  Problem,
  Table,
  Text,
  Time,
  html,
  useEffect,
  useLoad,
  useRef,
  useState,
} from "../ui.js";

/** Scopes as the service knows them, in words. */
export const SCOPES = {
  admin: "everything, always",
  "actions:submit": "submit actions",
  "actions:read": "see all actions",
  "actions:read_own": "see its own actions",
  "actions:execute": "start what was allowed, and report results",
  "actions:erase": "erase what was asked, for good",
  "actions:settle": "settle unknown outcomes",
  "credentials:receive": "receive credentials for actions that it starts",
  "approvals:decide": "approve and deny",
  "approvals:break_glass": "approve alone in an emergency (in a session)",
  "grants:write": "grant later actions, and revoke grants",
  "policies:read": "see policies",
  "policies:write": "write policies",
  "policies:activate": "activate policies",
  "holds:write": "place and release legal holds, which prevent erasures",
  "stop:write": "stop decisions, and lift stops",
  "keys:manage": "make and revoke keys",
  "agents:read": "see agents",
  "agents:write": "register, change and suspend agents",
  "users:read": "see users and their sessions",
  "users:manage": "create, change and end users",
  "analytics:read": "see analytics",
  "events:read": "follow events",
  "provenance:read": "read the ledger and its proofs",
  "replay:run": "replay decisions",
  "metrics:read": "read metrics",
  "deliveries:read": "see what was sent to people",
  "deliveries:retry": "send again what failed",
};

const PRESETS = {
  agent: "Agent: submits, carries out, sees its own",
  approver: "Approver: sees actions and policies, decides",
  auditor: "Auditor: sees everything but keys, changes nothing",
  admin: "Admin: everything",
};

export function Keys() {
  const [status, setStatus] = useState("live");
  const [newKey, setNewKey] = useState(/** @type {any} */ (null));
  const [ending, setEnding] = useState(/** @type {any} */ (null));
  const [adding, setAdding] = useState(false);
  const [said, setSaid] = useState("");
  const { data, error, loading, reload } = useLoad(
    (signal) => call(url("/v1/api-keys", { status, limit: 1000 }), { signal }),
    [status],
  );
  const rows = data?.api_keys ?? [];
  return html`<${Page}
      title="API keys"
      side=${html`<button type="button" class="primary" onClick=${() => setAdding(true)}>New key…</button>`}
    >
      ${newKey === null ? null : html`<${Value} newKey=${newKey} onDone=${() => setNewKey(null)} />`}
      <div role="status">${said === "" ? null : html`<${Notice} kind="good"><${Text} value=${said} /><//>`}</div>
      <div class="filters">
        <div class="field">
          <label for="key-status">Show</label
          ><select id="key-status" value=${status} onChange=${(event) => setStatus(event.target.value)}>
            <option value="live">live</option>
            <option value="ended">revoked or expired</option>
          </select>
        </div>
      </div>
      <${Problem} error=${error} again=${reload} />
      ${data === null && loading ? html`<${Loading} what="keys" />` : null}
      ${rows.length === 0 && !loading && error === null ? html`<${Empty} text="No such key." />` : null}
      ${
        rows.length === 0
          ? null
          : html`<${Table} label="API keys" head=${["Name", "May", "Agent", "Owner", "Last used", "Ends", ""]}>
              ${rows.map(
                (row) =>
                  html`<tr key=${row.id}>
                    <td>
                      <strong><${Text} value=${row.name} /></strong
                      >${isOwn(row) ? html` <span class="quiet">(yours)</span>` : null}<br /><code class="quiet"
                        >${row.prefix}…</code
                      >
                    </td>
                    <td data-label="May">${row.scopes.join(", ")}</td>
                    <td data-label="Agent">
                      ${row.agent_id === null ? html`<span class="quiet">any</span>` : html`<${Text} value=${row.agent_id} />`}
                    </td>
                    <td data-label="Owner">
                      ${row.owner === null ? html`<span class="quiet">nobody</span>` : html`<${Text} value=${row.owner} />`}
                    </td>
                    <td data-label="Last used">
                      ${row.last_used_at === null ? html`<span class="quiet">never</span>` : html`<${Time} at=${row.last_used_at} />`}
                    </td>
                    <td data-label="Ends">
                      ${row.revoked_at !== null ? html`<${Badge} value="revoked" /> <${Time} at=${row.revoked_at} />` : row.expires_at === null ? html`<span class="quiet">never</span>` : html`<${Time} at=${row.expires_at} />`}
                    </td>
                    <td>
                      ${status === "live" ? html`<button type="button" class="danger small" aria-label=${`Revoke ${plain(row.name)}`} onClick=${() => setEnding(row)}>Revoke…</button>` : null}
                    </td>
                  </tr>`,
              )}
            <//>`
      }
      ${data?.next_cursor ? html`<p class="quiet">The 1,000 newest are shown.</p>` : null}
    <//>
    ${adding ? html`<${Create} onClose=${() => setAdding(false)} onMade=${(result) => (setAdding(false), setSaid(""), setNewKey(result), reload())} />` : null}
    ${ending === null ? null : html`<${Revoke} row=${ending} onClose=${() => setEnding(null)} onDone=${() => (setEnding(null), setSaid(`“${ending.name}” is revoked.`), reload())} />`}`;
}

/** The key that this tab is signed in with. @param {{ prefix: string }} row */
function isOwn(row) {
  return key()?.startsWith(row.prefix) === true;
}

/** @param {{ onClose: () => void, onMade: (newKey: any) => void }} props */
function Create({ onClose, onMade }) {
  const [preset, setPreset] = useState("approver");
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const isUser = key() === COOKIE;
  const { data: users } = useLoad(
    (signal) =>
      isUser && ["users:read", "users:manage"].some(may)
        ? call(url("/v1/users", { status: "live", limit: 1000 }), { signal })
        : Promise.resolve(null),
    [],
  );
  const submit = async (event) => {
    event.preventDefault();
    const form = event.currentTarget;
    const { name, agent_id, owner, expires_at } = values(form);
    const scopes = new FormData(form).getAll("scopes");
    const isShared = new FormData(form).has("shared");
    const body = {
      name,
      ...(preset === "" ? { scopes } : { preset }),
      agent_id: agent_id || null,
      ...(isShared ? { owner: null } : owner === "" ? {} : { owner }),
      expires_at: expires_at === "" ? null : new Date(expires_at).toISOString(),
    };
    setBusy(true);
    try {
      onMade(await call("/v1/api-keys", { method: "POST", body }));
    } catch (refusal) {
      setError(refusal);
      setBusy(false);
    }
  };
  return html`<${Dialog} title="New API key" onClose=${onClose}
    ><form onSubmit=${submit}>
      <${Field}
        name="name"
        label="Name"
        help="For people; unique among live keys."
        error=${error}
        required
        maxlength="100"
      />
      <${Field} name="preset" label="For"
        ><select id="preset" value=${preset} onChange=${(event) => setPreset(event.target.value)}>
          ${Object.entries(PRESETS).map(([name, words]) => html`<option value=${name}>${words}</option>`)}
          <option value="">Scopes, one by one</option>
        </select><//
      >
      ${
        preset !== ""
          ? null
          : html`<fieldset>
              <legend>Scopes</legend>
              <div class="checks">
                ${Object.entries(SCOPES).map(([scope, words]) => html`<label class="check"><input type="checkbox" name="scopes" value=${scope} /> <code>${scope}</code><br /><span class="quiet">${words}</span></label>`)}
              </div>
            </fieldset>`
      }
      <${Field}
        name="agent_id"
        label="Agent"
        help="Binds the key: it submits only as this agent and sees only its actions. Empty: no agent; it submits nothing unless agents: any is configured."
        error=${error}
        maxlength="100"
      />
      <${Field}
        name="owner"
        label="Owner"
        help=${`The user behind it. ${isUser ? "Empty: you. " : ""}A key that may approve needs one. Keys of one owner count as one approver, and cannot approve each other's actions.`}
        error=${error}
        maxlength="100"
        list="owners"
      />
      <datalist id="owners">
        ${(users?.users ?? []).map((user) => html`<option value=${plain(user.name)}></option>`)}
      </datalist>
      ${
        isUser
          ? html`<label class="check"
              ><input type="checkbox" name="shared" /> A shared agent: no person is behind it</label
            >`
          : null
      }
      <${Field} name="expires_at" label="Ends" help="Empty: never." error=${error} type="datetime-local" />
      <${Problem} error=${error} />
      <div class="row end">
        <button type="submit" class="primary" disabled=${busy}>Make the key</button>
        <button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form><//
  >`;
}

/** @param {{ newKey: any, onDone: () => void }} props */
function Value({ newKey, onDone }) {
  const heading = useRef(null);
  useEffect(() => heading.current?.focus(), []);
  return html`<section class="card made" aria-labelledby="made">
    <h2 id="made" tabindex="-1" ref=${heading}>The key “<${Text} value=${newKey.name} />”</h2>
    <p>This is the only time that its value is shown. The service keeps no more than a hash of it.</p>
    <p><${Hash} value=${newKey.key} /></p>
    ${(newKey.warnings ?? []).map((warning) => html`<${Notice} kind="busy"><${Text} value=${warning} /><//>`)}
    <div class="row">
      <${Copy} value=${newKey.key} label="Copy the key" /><button type="button" onClick=${onDone}>I have it</button>
    </div>
  </section>`;
}

/** @param {{ row: any, onClose: () => void, onDone: () => void }} props */
function Revoke({ row, onClose, onDone }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const revoke = async () => {
    setBusy(true);
    try {
      await call(`/v1/api-keys/${at(row.id)}`, { method: "DELETE" });
      onDone();
    } catch (refusal) {
      setError(refusal);
      setBusy(false);
    }
  };
  return html`<${Dialog} title="Revoke this key?" onClose=${onClose}>
    <p>
      <strong><${Text} value=${row.name} /></strong>
      <code>${row.prefix}…</code
      >${row.owner === null ? null : html` of <${Text} value=${row.owner} />`}${row.last_used_at === null ? ", never used" : html`, last used <${Time} at=${row.last_used_at} />`}
    </p>
    <p>
      From the next request on, whoever has it can no longer do
      this${row.agent_id === null ? null : html` as <strong><${Text} value=${row.agent_id} /></strong>`}:
    </p>
    <ul>
      ${row.scopes.map((scope) => html`<li>${SCOPES[scope] ?? scope}</li>`)}
    </ul>
    <p>Its open event streams end. This cannot be undone; a new key can be made.</p>
    ${isOwn(row) ? html`<${Notice} kind="bad">This is the key that you are signed in with: you will be signed out.<//>` : null}
    <${Problem} error=${error} />
    <div class="row end">
      <button type="button" class="danger" disabled=${busy} onClick=${revoke}>Revoke</button>
      <button type="button" autofocus onClick=${onClose}>Keep it</button>
    </div>
  <//>`;
}

/** One policy: its versions, what differs between them, and which one decides. */
import { at, call, tagged, url } from "../core/api.ts";
import { Backtest, Shadow } from "./backtest.js";
import { Key } from "../ui/person.tsx";
import { PolicyEditor } from "./policy-editor.js";
import { Managed } from "./managed.js";
import {
  Badge,
  Dialog,
  Facts,
  Hash,
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
import { MarkedText } from "../ui/marked-text.tsx";
import { findRuleLines } from "../ui/rule-lines.ts";
import { yamlOf } from "../yaml.js";

/** Returns the text of a version: as its author wrote it, if that is known. */
const textOf = (version) => version.yaml ?? yamlOf(version.definition);

/** The address says whether the policy is edited, so that a reload returns to the editor and its draft. @param {{ id: string, query: URLSearchParams }} props name or id; `rule` and `version` in the query name the lines to show */
export function PolicyDetail({ id, query }) {
  const isEdited = query.get("edit") === "true";
  const rule = query.get("rule");
  const path = `/v1/policies/${at(id)}`;
  const address = `#/policies/${at(id)}`;
  const [asking, setAsking] = useState(/** @type {any} */ (null));
  const [said, setSaid] = useState("");
  const { data, error, reload } = useLoad(
    async (signal) => {
      const [{ body: policy, etag }, { versions, next_cursor }] = await Promise.all([
        tagged(path, { signal }),
        call(`${path}/versions?limit=100`, { signal }),
      ]);
      return {
        policy,
        etag,
        versions,
        more: next_cursor !== null,
      };
    },
    [id, isEdited],
  );
  const [shown, setShown] = useState(
    /** @type {number | null} */ (query.has("version") ? Number(query.get("version")) : null),
  );
  if (data === null)
    return html`<${Page} title=${id}
      ><p><a href="#/policies">All policies</a></p>
      ${error === null ? html`<${Loading} what="the policy" />` : html`<${Problem} error=${error} again=${reload} />`}<//
    >`;
  const { policy, etag, versions } = data;
  if (isEdited && policy.managed_by === null) {
    return html`<${PolicyEditor}
      title=${`Edit ${policy.name}`}
      text=${textOf(versions[0])}
      base=${etag}
      back=${address}
      save=${(yaml, activate, base) => call(url(path, { activate }), { method: "PUT", text: yaml, type: "application/yaml", headers: { "if-match": base } })}
    />`;
  }
  const version = versions.find((item) => item.version === (shown ?? policy.active_version)) ?? versions[0];
  const own = policy.managed_by === null;
  return html`<${Page}
      title=${policy.name}
      side=${
        own
          ? html`<div class="row">
              <button type="button" class="primary" onClick=${() => (location.hash = `${address}?edit=true`)}>
                Edit…
              </button>
              ${policy.active_version === null ? null : html`<button type="button" class="danger" onClick=${() => setAsking({ kind: "deactivate" })}>Deactivate…</button>`}
              <button type="button" class="danger" onClick=${() => setAsking({ kind: "delete" })}>Delete…</button>
            </div>`
          : null
      }
    >
      <p><a href="#/policies">All policies</a></p>
      <${Problem} error=${error} again=${reload} />
      <div role="status">${said === "" ? null : html`<${Notice} kind="good">${said}<//>`}</div>
      ${
        own
          ? null
          : html`<${Notice} kind="busy"
              >Managed by <strong><${Text} value=${policy.managed_by} /></strong> and read-only here: change the file,
              and it comes in by itself.<//
            >`
      }
      <${Facts}
        rows=${[
          ["Status", html`<${Badge} value=${policy.status} />`],
          ["What decides", standingOf(policy)],
          ["Managed by", html`<${Managed} policy=${policy} />`],
          ["Description", policy.description],
        ]}
      />
      <section class="card" aria-labelledby="versions">
        <h2 id="versions">Versions</h2>
        <${Table} label="Versions of the policy" head=${["Version", "Made", "By", "Rules", ""]}>
          ${versions.map(
            (item) =>
              html`<tr key=${item.version}>
                <td data-label="Version">
                  ${item.version}${item.version === policy.active_version ? html` <${Badge} value="active" />` : null}${item.definition.mode === "shadow" ? html` <${Badge} value="shadow" />` : null}
                </td>
                <td><${Time} at=${item.created_at} /></td>
                <td data-label="By">
                  ${item.created_by === null ? html`<span class="quiet">${policy.managed_by ?? "the service"}</span>` : html`<${Key} id=${item.created_by} />`}
                </td>
                <td data-label="Rules">${item.definition.rules.length}</td>
                <td>
                  <div class="row">
                    <button
                      type="button"
                      class="small"
                      aria-pressed=${item === version}
                      aria-label=${`Show version ${item.version}`}
                      onClick=${() => setShown(item.version)}
                    >
                      Show
                    </button>
                    ${own && item.version !== policy.active_version ? html`<button type="button" class="small" aria-label=${`Activate version ${item.version}`} onClick=${() => setAsking({ kind: "activate", version: item.version })}>${policy.active_version !== null && item.version < policy.active_version ? "Roll back…" : "Activate…"}</button>` : null}
                  </div>
                </td>
              </tr>`,
          )}
        <//>
        ${data.more ? html`<p class="quiet">The 100 newest are shown.</p>` : null}
      </section>
      ${versions.length < 2 ? null : html`<${Diff} path=${path} versions=${versions} active=${policy.active_version} />`}
      <section class="card" aria-labelledby="definition">
        <h2 id="definition">Version ${version.version}</h2>
        <p class="quiet">Digest <${Hash} value=${version.digest} /></p>
        <${MarkedText}
          label=${`Version ${version.version} as YAML`}
          text=${textOf(version)}
          marked=${rule === null ? null : findRuleLines(textOf(version), rule)}
        />
      </section>
      <section class="card" aria-labelledby="backtest">
        <h2 id="backtest">Backtest of version ${version.version}</h2>
        <p class="quiet">
          Makes past decisions again, each with its own facts and clock, with this version in the place of the active
          one.
        </p>
        ${version.definition.mode === "shadow" ? html`<${Notice} kind="busy">It is in shadow mode and decides nothing: it is tested here as if it were enforced.<//>` : null}
        <${Backtest}
          key=${version.version}
          name="version"
          candidate=${{ policy: { ...version.definition, mode: "enforce" } }}
        />
      </section>
      ${versions.some((item) => item.definition.mode === "shadow") ? html`<${Shadow} path=${path} />` : null}
    <//>
    ${
      asking === null
        ? null
        : html`<${Change}
            ...${asking}
            policy=${policy}
            versions=${versions}
            path=${path}
            match=${{ "if-match": etag }}
            onClose=${() => setAsking(null)}
            onDone=${(words) => {
              setAsking(null);
              setSaid(words);
              if (words === "") location.hash = "#/policies";
              else reload();
            }}
          />`
    }`;
}

/** One sentence. @param {{ active_version: number | null, latest_version: number, mode: string }} policy */
function standingOf({ active_version: active, latest_version: newest, mode }) {
  if (active === null) return "No version is active: this policy decides nothing.";
  const older = newest === active ? "" : ` The newest is version ${newest}.`;
  return mode === "shadow"
    ? `Version ${active} is active in shadow mode: its decisions are recorded, and it enforces nothing.${older}`
    : `Version ${active} is active and enforced.${older}`;
}

/** @param {{ path: string, versions: any[], active: number | null }} props */
function Diff({ path, versions, active }) {
  const newest = versions[0].version;
  const [from, setFrom] = useState(active !== null && active !== newest ? active : versions[1].version);
  const [to, setTo] = useState(newest);
  const { data, error } = useLoad(
    (signal) => (from === to ? Promise.resolve({ changes: [] }) : call(url(`${path}/diff`, { from, to }), { signal })),
    [path, from, to],
  );
  const choice = (id, label, value, set) =>
    html`<div class="field">
      <label for=${id}>${label}</label
      ><select id=${id} value=${value} onChange=${(event) => set(Number(event.target.value))}>
        ${versions.map((item) => html`<option value=${item.version}>version ${item.version}</option>`)}
      </select>
    </div>`;
  return html`<section class="card" aria-labelledby="diff">
    <h2 id="diff">What changed</h2>
    <div class="filters">${choice("diff-from", "From", from, setFrom)}${choice("diff-to", "To", to, setTo)}</div>
    <${Problem} error=${error} />
    ${
      data === null
        ? null
        : data.changes.length === 0
          ? html`<p class="quiet">Nothing.</p>`
          : html`<ul>
              ${data.changes.map((change) => html`<li><${Text} value=${change.summary} /></li>`)}
            </ul>`
    }
  </section>`;
}

/** @param {{ kind: "activate" | "deactivate" | "delete", version?: number, policy: any, versions: any[], path: string, match: Record<string, string>, onClose: () => void, onDone: (said: string) => void }} props */
function Change({ kind, version, policy, versions, path, match, onClose, onDone }) {
  const [error, setError] = useState(null);
  const isShadow = versions.find((item) => item.version === version)?.definition.mode === "shadow";
  const words = {
    activate: [
      `Activate version ${version}?`,
      isShadow
        ? `Version ${version} is in shadow mode: from the next action on its decisions are recorded, and the policy enforces nothing.`
        : `From the next action on, version ${version} decides${policy.active_version === null ? "" : ` instead of version ${policy.active_version}`}.`,
      "Activate",
      `Version ${version} is active${isShadow ? " in shadow mode: it enforces nothing" : ""}.`,
    ],
    deactivate: [
      "Deactivate this policy?",
      "From the next action on it decides nothing. What only it allowed is denied.",
      "Deactivate",
      "The policy is inactive.",
    ],
    delete: [
      "Delete this policy?",
      "From the next action on it decides nothing. What it decided stays recorded, and its versions stay for replay.",
      "Delete",
      "",
    ],
  }[kind];
  const act = async () => {
    try {
      await (kind === "delete"
        ? call(path, { method: "DELETE", headers: match })
        : call(`${path}/${kind}`, {
            method: "POST",
            headers: match,
            ...(kind === "activate" ? { body: { version } } : {}),
          }));
      onDone(words[3]);
    } catch (refusal) {
      setError(refusal);
    }
  };
  return html`<${Dialog} title=${words[0]} onClose=${onClose}
    ><p>
      <strong><${Text} value=${policy.name} /></strong>: ${words[1]}
    </p>
    ${kind === "activate" ? html`<${Backtest} name="activation" candidate=${{ policy: versions.find((item) => item.version === version).definition }} auto />` : null}
    <${Problem} error=${error} />
    <div class="row end">
      <button type="button" class=${kind === "activate" ? "primary" : "danger"} onClick=${act}>${words[2]}</button>
      <button type="button" autofocus onClick=${onClose}>Cancel</button>
    </div><//
  >`;
}

/** Policies: the list, and where one is looked at, compared, changed and activated. */
import { at, call, url } from "../core/api.ts";
import { PolicyEditor } from "./policy-editor.js";
import { Managed } from "./managed.js";
import { PolicyDetail } from "./policy.js";
import { Badge, Empty, Loading, Page, Problem, Table, Text, Time, html, useLoad } from "../ui.js";

const STARTER = `policy: my-policy
description: What it is for.
rules:
  - name: small refunds
    tool: stripe
    operation: refund
    when: params.amount <= 100
    effect: allow
  - name: other refunds
    tool: stripe
    operation: refund
    effect: require_approval
    risk: medium
    reason: a person looks at larger refunds
    approval: { expires_in: 8h }
`;

/** @param {{ id: string | null, query: URLSearchParams }} props */
export function Policies({ id, query }) {
  if (id === "new")
    return html`<${PolicyEditor}
      key="new"
      title="New policy"
      text=${STARTER}
      save=${(yaml, activate) => call(url("/v1/policies", { activate }), { method: "POST", text: yaml, type: "application/yaml" })}
      back="#/policies"
    />`;
  return id === null ? html`<${List} />` : html`<${PolicyDetail} key=${id} id=${id} query=${query} />`;
}

function List() {
  const { data, error, loading, reload } = useLoad(
    (signal) => call(url("/v1/policies", { limit: 1000 }), { signal }),
    [],
  );
  const rows = [...(data?.policies ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1));
  return html`<${Page} title="Policies" side=${html`<a class="button" href="#/policies/new">New policy</a>`}>
    <${Problem} error=${error} again=${reload} />
    ${data === null && loading ? html`<${Loading} what="policies" />` : null}
    ${rows.length === 0 && !loading && error === null ? html`<${Empty} text="No policy: every action is denied." />` : null}
    ${
      rows.length === 0
        ? null
        : html`<${Table} label="Policies" head=${["Policy", "Status", "Version", "Managed by", "Changed"]}>
            ${rows.map(
              (row) =>
                html`<tr key=${row.id}>
                  <td>
                    <a href=${`#/policies/${at(row.name)}`}
                      ><strong><${Text} value=${row.name} /></strong></a
                    >${row.description ? html`<br /><span class="quiet"><${Text} value=${row.description} /></span>` : null}
                  </td>
                  <td>
                    <${Badge} value=${row.status} />${row.mode === "shadow" ? html` <${Badge} value="shadow" />` : null}
                  </td>
                  <td data-label="Version">
                    ${row.active_version === null ? html`<span class="quiet">none active</span>` : row.active_version}${row.latest_version === row.active_version ? null : html`<br /><span class="quiet">newest ${row.latest_version}</span>`}
                  </td>
                  <td data-label="Managed by"><${Managed} policy=${row} /></td>
                  <td data-label="Changed"><${Time} at=${row.updated_at} /></td>
                </tr>`,
            )}
          <//>`
    }
  <//>`;
}

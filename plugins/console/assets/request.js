/** An action as the person who decides must see it: whole, and with what the decision is bound to. */
import { canVerify, requestHash } from "./verify.js";
import { AsJson, Params } from "./params.js";
import { Key } from "./person.js";
import { Badge, Facts, Hash, Notice, Text, Time, html, useEffect, useState } from "./ui.js";

/** "stripe refund by support-bot". @param {{ action: Record<string, string> }} props */
export function What({ action }) {
  return html`<span class="what"
    ><strong><${Text} value=${action.tool} /> <${Text} value=${action.operation} /></strong>
    <span class="quiet">by</span> <${Text} value=${action.agent_id}
  /></span>`;
}

/** @param {{ risk: string | null }} props */
export function Risk({ risk }) {
  return risk === null ? null : html`<${Badge} value=${risk} label=${`${risk} risk`} />`;
}

/** What is to be done first; then who asks and why; what binds the verdict last. @param {{ action: Record<string, any> }} props */
export function Request({ action }) {
  return html`${
      action.erased_at
        ? html`<${Notice} kind="busy"
            >What was asked, and what was reported, was erased <${Time} at=${action.erased_at} />. The decision and its
            proof stand.<//
          >`
        : html`<h3>Parameters</h3>
            <${Params} value=${action.params} label="Parameters" />
            <${AsJson} value=${action.params} label="Parameters as JSON" />`
    }
    ${
      Object.keys(action.context).length === 0
        ? null
        : html`<h3>Context</h3>
            <${Params} value=${action.context} label="Context" />`
    }
    ${
      Object.keys(action.meta ?? {}).length === 0
        ? null
        : html`<h3>Beside the request</h3>
            <p class="quiet">Sent for tracing. No policy saw it, and a verdict does not count for it.</p>
            <${Params} value=${action.meta} label="Beside the request" />`
    }
    <${Facts}
      rows=${[
        ["Why", action.reason],
        ["Tool", action.tool],
        ["Operation", action.operation],
        ["Agent", action.agent_id],
        ["Submitted with the key", html`<${Key} id=${action.submitted_by} />`],
        ["Submitted", html`<${Time} at=${action.created_at} />`],
        ["Policy", action.policy === null ? null : `${action.policy}, version ${action.policy_version}`],
        ["Rule", action.rule],
        ["Reason code", html`<code>${action.reason_code}</code>`],
        ["Risk", action.risk_level === null ? "not rated" : html`<${Risk} risk=${action.risk_level} />`],
      ]}
    />
    ${action.erased_at ? null : html`<${Bound} action=${action} />`}`;
}

/** The hash that a verdict counts for, computed again from what stands on the page. @param {{ action: Record<string, any> }} props */
export function Bound({ action }) {
  const [computed, setComputed] = useState(null);
  useEffect(() => {
    let over = false;
    if (canVerify)
      requestHash(action).then(
        (hash) => over || setComputed(hash),
        () => over || setComputed("cannot be computed"),
      );
    return () => (over = true);
  }, [action.request_hash]);
  const said = !canVerify
    ? html`<p class="quiet">Not checked here: the browser computes hashes on pages of https and localhost alone.</p>`
    : computed === null
      ? html`<p class="quiet">Computing…</p>`
      : computed === action.request_hash
        ? html`<p class="fits">✓ computed in this browser from what is shown above</p>`
        : html`<p class="notice bad" role="alert">
            What is shown above has another hash (<code>${computed}</code>). Do not decide; tell whoever runs this
            service.
          </p>`;
  return html`<div class="bound">
    <p class="quiet">Request hash <${Hash} value=${action.request_hash} /></p>
    ${said}
  </div>`;
}

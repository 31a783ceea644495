/** An action as the person who decides must see it: whole, and with what the decision is bound to. */
import { canVerify, requestHash } from "./verify.js";
import { AsJson, Params } from "./params.js";
import { Key } from "./person.js";
import { plain } from "./text.js";
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

/**
 * What a person votes on, the same wherever it is shown: what is to be done, its context, and why a person is asked.
 * @param {object} props
 * @param {any} props.action
 * @param {2 | 3} [props.level] of the headings
 * @param {number} [props.lines] of the parameters
 * @param {[string, unknown][]} [props.more] facts
 */
export function Asked({ action, level = 3, lines = 40, more = [] }) {
  const first = action.shown_first;
  const name = plain(`${action.tool} ${action.operation}`);
  return html`${
      action.erased_at
        ? html`<${Notice} kind="busy"
            >What was asked, and what was reported, was erased <${Time} at=${action.erased_at} />. The decision and its
            proof stand.<//
          >`
        : html`<${`h${level}`} class="part">Parameters<//>
            <${Params}
              value=${action.params}
              root="/params"
              first=${first}
              lines=${lines}
              label=${`Parameters of ${name}`}
            />
            <${AsJson} value=${action.params} label="Parameters as JSON" />`
    }
    ${
      Object.keys(action.context).length === 0
        ? null
        : html`<${`h${level}`} class="part">Context<//>
            <${Params}
              value=${action.context}
              root="/context"
              first=${first}
              lines=${Math.min(lines, 20)}
              label=${`Context of ${name}`}
            />`
    }
    <${Facts}
      rows=${[
        ["Why a person is asked", action.reason],
        ["Rule", action.rule === null ? null : `${action.rule} (policy ${action.policy})`],
        ["Agent", action.agent_id],
        ["Risk", action.risk_level === null ? "not rated" : html`<${Risk} risk=${action.risk_level} />`],
        ["Submitted", html`<${Time} at=${action.created_at} />`],
        ...more,
      ]}
    />`;
}

/** What is to be done first; then who asks and why; what binds the verdict last. @param {{ action: Record<string, any>, level?: 2 | 3 }} props */
export function Request({ action, level = 3 }) {
  return html`<${Asked}
      action=${action}
      level=${level}
      more=${[
        ["Submitted with the key", html`<${Key} id=${action.submitted_by} />`],
        ["Policy", action.policy === null ? null : `${action.policy}, version ${action.policy_version}`],
        ["Reason code", html`<code>${action.reason_code}</code>`],
      ]}
    />
    ${
      Object.keys(action.meta ?? {}).length === 0
        ? null
        : html`<${`h${level}`} class="part">Metadata<//>
            <p class="quiet">Sent for tracing. No policy saw it, and a verdict does not count for it.</p>
            <${Params} value=${action.meta} root="/meta" lines=${20} label="Metadata" />`
    }
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

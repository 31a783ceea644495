/** Where a policy is written: errors at their line, a dry run and a backtest on real actions before anything is stored. */
import { ApiError, call } from "../core/api.ts";
import { whenSessionChanges } from "../core/session.ts";
import { Backtest } from "./backtest.js";
import { Badge, Dialog, Notice, Page, Problem, Table, Text, html, useEffect, useRef, useState } from "../ui.js";
import { What } from "../ui/request.tsx";

/** What was typed and not saved, by title, while the tab is open, over reloads too: whoever looks at an action on the way comes back to it. */
const drafts = {
  /** @returns {{ yaml: string, base: string } | null} */
  get: (title) => JSON.parse(sessionStorage.getItem(`${DRAFT}${title}`) ?? "null"),
  set(title, draft) {
    try {
      sessionStorage.setItem(`${DRAFT}${title}`, JSON.stringify(draft));
    } catch {
      // Too large for the browser's store: it is kept by the page alone.
    }
  },
  delete: (title) => sessionStorage.removeItem(`${DRAFT}${title}`),
};
const DRAFT = "assent.draft.";

whenSessionChanges((key) => {
  if (key !== null) return;
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(DRAFT)) sessionStorage.removeItem(name);
});

/**
 * @param {object} props
 * @param {string} props.title
 * @param {string} props.text the YAML to begin with
 * @param {string} [props.base] the state of the policy that the text was made from
 * @param {(yaml: string, activate: boolean, base: string) => Promise<any>} props.save
 * @param {string} props.back address to go to afterwards
 */
export function PolicyEditor({ title, text, base = "", save, back }) {
  const [kept, setKept] = useState(drafts.get(title));
  const [yaml, setYaml] = useState(kept?.yaml ?? text);
  const [asking, setAsking] = useState(false);
  // A draft is saved over what it was made from, not over what another has saved meanwhile.
  const from = useRef(kept?.base ?? base);
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const [tried, setTried] = useState(/** @type {any} */ (null));
  const [samples, setSamples] = useState(SAMPLE);
  const area = useRef(null);
  const gutter = useRef(null);
  useEffect(() => {
    // What was really asked for is a better test than what one thinks of; without the right to see it a sample stands there.
    call("/v1/actions?limit=20").then(
      ({ actions }) => {
        const kept = actions.filter((action) => action.erased_at === null);
        if (kept.length > 0)
          setSamples(
            JSON.stringify(
              kept.map(({ agent_id, tool, operation, params, context }) => ({
                agent_id,
                tool,
                operation,
                params,
                context,
              })),
              null,
              2,
            ),
          );
      },
      () => undefined,
    );
  }, []);

  const run = async (work) => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (refusal) {
      setError(refusal);
    } finally {
      setBusy(false);
    }
  };
  const type = (value) => {
    // A text area gives every line end as a line feed.
    const typed = text.includes("\r\n") ? value.replaceAll("\n", "\r\n") : value;
    drafts.set(title, { yaml: typed, base: from.current });
    setYaml(typed);
  };
  const startOver = () => {
    drafts.delete(title);
    from.current = base;
    setKept(null);
    setYaml(text);
  };
  const leave = () => {
    drafts.delete(title);
    location.hash = back;
  };
  const store = (activate) =>
    run(async () => {
      setAsking(false);
      const stored = await save(yaml, activate, from.current);
      drafts.delete(title);
      location.hash = stored?.name === undefined ? back : `#/policies/${encodeURIComponent(stored.name)}`;
    });
  const dryRun = () =>
    run(async () => {
      setTried(null);
      let actions;
      try {
        actions = JSON.parse(samples);
      } catch (fault) {
        throw new Error(`the sample actions are not JSON: ${fault.message}`);
      }
      setTried({ actions, ...(await call("/v1/policies/dry-run", { method: "POST", body: { yaml, actions } })) });
    });
  /** A fault with a line is shown there, for the draft is what has to change. */
  const atLines = (refusal) => {
    if (!(refusal instanceof ApiError) || !refusal.errors.some((item) => item.line !== undefined)) return false;
    setAsking(false);
    setError(refusal);
    return true;
  };
  const lines = error instanceof ApiError ? error.errors.filter((item) => item.line !== undefined) : [];
  const marked = new Set(lines.map((item) => item.line));
  const goTo = ({ line, column = 1 }) => {
    const start =
      area.current.value
        .split("\n")
        .slice(0, line - 1)
        .reduce((sum, text) => sum + text.length + 1, 0) +
      column -
      1;
    area.current.focus();
    area.current.setSelectionRange(start, start);
    area.current.scrollTop = Math.max(0, (line - 4) * 20);
  };
  return html`<${Page} title=${title}>
      <p><a href=${back} onClick=${(event) => (event.preventDefault(), leave())}>Back without saving</a></p>
      ${kept === null ? null : html`<${Notice}>Your draft from before, not saved yet. <button type="button" class="small" onClick=${startOver}>Start over</button><//>`}
      <label for="yaml">Policy, as YAML</label>
      <div class="editor">
        <pre ref=${gutter} aria-hidden="true">
${yaml.split("\n").map((_, i) => html`<span class=${marked.has(i + 1) ? "marked" : ""}>${i + 1}${"\n"}</span>`)}</pre>
        <textarea
          id="yaml"
          ref=${area}
          rows="22"
          wrap="off"
          spellcheck=${false}
          autocapitalize="off"
          aria-invalid=${marked.size > 0 ? "true" : null}
          aria-describedby="yaml-errors"
          value=${yaml}
          onInput=${(event) => type(event.target.value)}
          onScroll=${(event) => (gutter.current.scrollTop = event.target.scrollTop)}
        ></textarea>
      </div>
      <div id="yaml-errors" role="alert">
        ${
          lines.length === 0
            ? null
            : html`<${Notice} kind="bad"
                ><ul>
                  ${lines.map(
                    (item) =>
                      html`<li>
                        <button type="button" class="plain" onClick=${() => goTo(item)}>
                          <strong
                            >Line ${item.line}${item.column === undefined ? "" : `, column ${item.column}`}</strong
                          ></button
                        >: <${Text} value=${item.detail} />
                      </li>`,
                  )}
                </ul><//
              >`
        }
      </div>
      ${lines.length > 0 ? null : html`<${Problem} error=${error} />`}
      <div class="row">
        <button type="button" disabled=${busy} onClick=${dryRun}>Check and dry-run</button>
        <button type="button" disabled=${busy} onClick=${() => store(false)}>Save</button>
        <button type="button" class="primary" disabled=${busy} onClick=${() => setAsking(true)}>
          Save and activate…
        </button>
      </div>
      <p class="quiet">
        Saving makes a version and decides nothing. Activating puts it in force from the next action on.
      </p>
      ${tried === null ? null : html`<${Tried} ...${tried} />`}
      <section class="card" aria-labelledby="backtest">
        <h2 id="backtest">Backtest</h2>
        <p class="quiet">
          Makes past decisions again with this text in the place of the active version, each with its own facts and
          clock.
        </p>
        <${Backtest} name="draft" candidate=${{ yaml }} onRefused=${atLines} />
      </section>
      <details class="card">
        <summary>Sample actions for the dry run</summary>
        <label for="samples"
          >A JSON list of at most 100 actions; the newest real ones stand here when you may see them.</label
        >
        <textarea
          id="samples"
          rows="14"
          spellcheck=${false}
          value=${samples}
          onInput=${(event) => setSamples(event.target.value)}
        ></textarea>
      </details>
    <//>
    ${
      asking
        ? html`<${Dialog} title="Save and activate?" onClose=${() => setAsking(false)}
            ><p>
              From the next action on, this text decides. In shadow mode it enforces nothing: its decisions are only
              recorded.
            </p>
            <${Backtest} name="activation" candidate=${{ yaml }} onRefused=${atLines} auto />
            <div class="row end">
              <button type="button" class="primary" disabled=${busy} onClick=${() => store(true)}>Activate</button>
              <button type="button" autofocus onClick=${() => setAsking(false)}>Cancel</button>
            </div><//
          >`
        : null
    }`;
}

const SAMPLE = JSON.stringify(
  [{ agent_id: "support-bot", tool: "stripe", operation: "refund", params: { amount: 50, currency: "USD" } }],
  null,
  2,
);

/** @param {{ actions: any[], results: any[] }} props */
function Tried({ actions, results }) {
  const changed = results.filter((result) => result.changed).length;
  return html`<section aria-labelledby="tried" class="card">
    <h2 id="tried">Dry run</h2>
    <${Notice} kind=${changed === 0 ? "good" : "busy"}
      >${changed === 0 ? `It compiles. All ${results.length} actions are decided as now.` : `It compiles. ${changed} of ${results.length} actions would be decided otherwise.`}<//
    >
    <${Table} label="Dry run" head=${["Action", "Now", "With it", "Why"]}
      >${results.map(
        (result, i) =>
          html`<tr>
            <td><${What} action=${actions[i]} /></td>
            <td data-label="Now"><${Badge} value=${result.current.effect} /></td>
            <td data-label="With it">
              <${Badge} value=${result.candidate.effect} />${result.changed ? html` <strong>changed</strong>` : null}
            </td>
            <td><${Text} value=${result.candidate.reason} /></td>
          </tr>`,
      )}<//
    >
  </section>`;
}

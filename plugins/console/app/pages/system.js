/** Whether the service can decide, and what it is made of. */
import { call, now, suspect, url } from "../core/api.ts";
import { may } from "../core/me.ts";
import { duration } from "../ui/format.ts";
import { Who } from "../ui/person.tsx";
import {
  Badge,
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
  useEffect,
  useLoad,
  useState,
} from "../ui.js";

const EVERY = 5000;
const HOLD_READERS = ["holds:write", "actions:erase", "provenance:read"];

export function System() {
  const [state, setState] = useState(/** @type {any} */ ({ ready: null, error: null, at: null }));
  const { data: version } = useLoad(
    (signal) => call("/openapi.json", { signal }).then((document) => document.info.version),
    [],
  );
  // Who may not see policies sees no sources: the rest of the page does not depend on it.
  const { data: sources } = useLoad(async (signal) => {
    if (!may("policies:read")) return null;
    return counted((await call(url("/v1/policies", { status: "active", limit: 1000 }), { signal })).policies);
  }, []);
  const { data: holds } = useLoad(async (signal) => {
    if (!HOLD_READERS.some(may)) return null;
    return (await call("/v1/holds", { signal })).holds;
  }, []);
  useEffect(() => {
    const over = new AbortController();
    const look = async () => {
      try {
        // 503 is an answer here: it says what is missing.
        const signal = AbortSignal.any([over.signal, AbortSignal.timeout(EVERY)]);
        const response = await fetch("/readyz", { cache: "no-store", credentials: "omit", signal });
        setState({ ready: await response.json(), error: null, at: new Date(now()).toISOString() });
      } catch {
        if (over.signal.aborted) return;
        void suspect();
        const error = new Error("the service does not answer; what stands below is from before");
        setState((old) => ({ ...old, error }));
      }
    };
    void look();
    const timer = setInterval(() => void look(), EVERY);
    return () => {
      clearInterval(timer);
      over.abort();
    };
  }, []);
  const { ready, error, at } = state;
  const checks = Object.entries(ready ?? {}).filter(
    ([, check]) => typeof check === "object" && check !== null && "ok" in check,
  );
  const policies = ready?.policies;
  return html`<${Page} title="System" side=${html`<span class="quiet">looked at every ${EVERY / 1000} s</span>`}>
    <${Problem} error=${error} />
    ${
      ready === null
        ? error === null && html`<${Loading} what="how it stands" />`
        : html` <${Notice} kind=${ready.ready ? "good" : "bad"}
              ><strong
                >${ready.ready ? "Ready: actions are decided." : "Not ready: actions may not be decided."}</strong
              ><//
            >
            ${
              policies?.stale_since
                ? html`<${Notice} kind="busy"
                    >A policy source has offered something that could not be taken since
                    <${Time} at=${policies.stale_since} /> (${duration(now() - Date.parse(policies.stale_since))} ago).
                    The last good set is in force. What is wrong is in the service's log:
                    <ul>
                      ${policies.faults.map(
                        (fault) =>
                          html`<li>
                            <code><${Text} value=${fault.file} /></code
                            >${fault.line === null ? null : `, line ${fault.line}`}
                          </li>`,
                      )}
                    </ul><//
                  >`
                : null
            }
            <${Table} label="Checks" head=${["Part", "State", "What it says", "Figures"]}>
              ${checks.map(
                ([name, check]) =>
                  html`<tr key=${name}>
                    <td><strong>${name}</strong></td>
                    <td>
                      <${Badge}
                        value=${check.ok ? "active" : "failed"}
                        label=${check.ok ? "ok" : name === "stops" ? "stopped" : "failed"}
                      />
                    </td>
                    <td>${check.detail === "ok" ? null : html`<${Text} value=${check.detail} />`}</td>
                    <td>${figures(check)}</td>
                  </tr>`,
              )}
            <//>`
    }
    ${holds === null || holds === undefined || holds.length === 0 ? null : html`<${Holds} holds=${holds} />`}
    <section class="card">
      <h2>Versions</h2>
      <${Facts}
        rows=${[
          ["Assent", version ?? "…"],
          ["Policy set in force", policies?.policy_set ? html`<${Hash} value=${policies.policy_set} />` : "none"],
          ["Active policies by source", sources],
          ["Looked at", html`<${Time} at=${at} />`],
        ]}
      />
      <p><a href="/docs">API</a> · <a href="/redoc">Reference</a> · <a href="/openapi.json">openapi.json</a></p>
    </section>
  <//>`;
}

/** Active legal holds. They are placed and released on the command line. @param {{ holds: any[] }} props */
function Holds({ holds }) {
  return html`<section class="card">
    <h2>Legal holds</h2>
    <p>Nothing that they cover is erased. <code>assent hold --release ID --reason TEXT</code> releases one.</p>
    <${Table} label="Legal holds" head=${["Covers", "Reason", "Placed", "By", "Id"]}>
      ${holds.map(
        (hold) =>
          html`<tr key=${hold.id}>
            <td>${hold.scope} ${hold[hold.scope] === null ? null : html`<${Text} value=${hold[hold.scope]} />`}</td>
            <td><${Text} value=${hold.reason} /></td>
            <td><${Time} at=${hold.placed_at} /></td>
            <td><${Who} principal=${hold.placed_by} /></td>
            <td>
              <code><${Text} value=${hold.id} /></code>
            </td>
          </tr>`,
      )}
    <//>
  </section>`;
}

/** Numbers beside a check, whatever the service adds: "applied 4, known 4". @param {Record<string, unknown>} check */
function figures(check) {
  return Object.entries(check)
    .flatMap(([name, value]) => (typeof value === "number" ? [`${name} ${value}`] : []))
    .join(", ");
}

/** "4 from policy-files, 2 from the API". @param {{ managed_by: string | null }[]} policies */
function counted(policies) {
  const counts = new Map();
  for (const { managed_by: source } of policies) counts.set(source, (counts.get(source) ?? 0) + 1);
  return [...counts].map(([source, count]) => `${count} from ${source ?? "the API"}`).join(", ") || "none";
}

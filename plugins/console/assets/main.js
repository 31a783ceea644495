/** The shell: sign in, the menu, and the page that the address names (`#/actions/<id>?status=…`). */
import { call, key, setKey, whenRefused } from "/console/api.js";
import { Actions } from "/console/pages/actions.js";
import { Agents } from "/console/pages/agents.js";
import { Analytics } from "/console/pages/analytics.js";
import { Approvals } from "/console/pages/approvals.js";
import { Deliveries } from "/console/pages/deliveries.js";
import { Events } from "/console/pages/events.js";
import { Keys } from "/console/pages/keys.js";
import { Policies } from "/console/pages/policies.js";
import { forgetDrafts } from "/console/pages/policy-editor.js";
import { Provenance } from "/console/pages/provenance.js";
import { System } from "/console/pages/system.js";
import { Page, Problem, html, useEffect, useRef, useState } from "/console/ui.js";
import { render } from "/console/vendor/preact.mjs";

/** @type {[string, string, unknown][]} name in the address, name in the menu, page */
const PAGES = [
  ["approvals", "Approvals", Approvals],
  ["actions", "Actions", Actions],
  ["policies", "Policies", Policies],
  ["agents", "Agents", Agents],
  ["keys", "API keys", Keys],
  ["analytics", "Analytics", Analytics],
  ["provenance", "Provenance", Provenance],
  ["events", "Events", Events],
  ["deliveries", "Deliveries", Deliveries],
  ["system", "System", System],
];

/** @returns {{ name: string, id: string | null, query: URLSearchParams }} */
function route() {
  const [path = "", search = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [name = "", ...rest] = path.split("/");
  let id = rest.length === 0 ? null : rest.join("/");
  try {
    id = id === null ? null : decodeURIComponent(id);
  } catch {
    // Not an address of ours: the page will say that there is no such thing.
  }
  return { name: PAGES.some(([page]) => page === name) ? name : PAGES[0]?.[0] ?? "", id: id === "" ? null : id, query: new URLSearchParams(search) };
}

function Shell() {
  const [signedIn, setSignedIn] = useState(key() !== null);
  const [why, setWhy] = useState("");
  const [at, setAt] = useState(route());
  const main = useRef(null);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const moved = () => {
      setAt(route());
      setOpen(false);
    };
    addEventListener("hashchange", moved);
    whenRefused((reason) => {
      setKey(null);
      setWhy(reason);
      setSignedIn(false);
    });
    return () => removeEventListener("hashchange", moved);
  }, []);
  // Whoever listens instead of looking learns that the page has changed; not at the first one.
  const first = useRef(true);
  useEffect(() => {
    // A page that moved the focus itself, as the queue does, keeps it.
    if (!first.current && (document.activeElement === document.body || document.activeElement?.closest("nav"))) main.current?.querySelector("h1")?.focus();
    first.current = false;
  }, [at.name, at.id]);

  if (!signedIn) return html`<${SignIn} why=${why} onDone=${() => (setWhy(""), setSignedIn(true))} />`;
  const Current = PAGES.find(([name]) => name === at.name)?.[2];
  const out = () => {
    setKey(null);
    forgetDrafts();
    setWhy("");
    setSignedIn(false);
  };
  return html`
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), main.current.querySelector("h1")?.focus())}>Skip to the page</a>
    <div class="shell">
      <nav aria-label="Console" class=${open ? "open" : ""}>
        <div class="brand"><strong>Assent</strong><button type="button" class="menu" aria-expanded=${open} aria-controls="menu" onClick=${() => setOpen(!open)}>Menu</button></div>
        <ul id="menu">
          ${PAGES.map(([name, title]) => html`<li key=${name}><a href="#/${name}" aria-current=${name === at.name ? "page" : null}>${title}</a></li>`)}
          <li><a href="/docs">API</a></li>
          <li><button type="button" class="out" onClick=${out}>Sign out</button></li>
        </ul>
      </nav>
      <main id="main" ref=${main}>${Current === undefined ? html`<${Page} title="Nothing here" />` : html`<${Current} key=${at.name} id=${at.id} query=${at.query} />`}</main>
    </div>`;
}

/** @param {{ why: string, onDone: () => void }} props */
function SignIn({ why, onDone }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const field = useRef(null);
  useEffect(() => {
    document.title = "Sign in · Assent";
    field.current.focus();
  }, []);
  const submit = async (event) => {
    event.preventDefault();
    const value = field.current.value.trim();
    setBusy(true);
    setError(null);
    try {
      // A header takes printable ASCII alone, and fetch would fail without saying why.
      if (!/^[\x21-\x7e]+$/.test(value)) throw new Error("this is not an API key: a key starts with assent_ and has letters, digits, - and _ only");
      // The cheapest route that every preset may call. 403 means that the key is known and has other rights.
      await call("/v1/actions?limit=1", { key: value }).catch((refusal) => {
        if (refusal.status !== 403) throw refusal;
      });
      setKey(value);
      onDone();
    } catch (refusal) {
      setError(refusal);
      field.current?.focus();
    } finally {
      setBusy(false);
    }
  };
  return html`<main class="sign-in">
    <h1>Assent</h1>
    <form onSubmit=${submit}>
      ${why === "" ? null : html`<${Problem} error=${new Error(`You were signed out: ${why}`)} />`}
      <label for="key">API key</label>
      <input id="key" ref=${field} type="password" autocomplete="off" spellcheck=${false} required aria-describedby="key-help" />
      <p id="key-help" class="quiet">Kept for this tab alone, until it closes or you sign out. What you may see and do is what the key may.</p>
      <${Problem} error=${error} />
      <button type="submit" class="primary" disabled=${busy}>Sign in</button>
    </form>
  </main>`;
}

render(html`<${Shell} />`, document.getElementById("console"));

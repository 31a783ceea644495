/** The shell: sign in, the menu, and the page that the address names (`#/actions/<id>?status=…`). */
import { ApiError, call } from "./api.js";
import { forgetMe, loadMe, may, me, takeMe } from "./me.js";
import { Key } from "./person.js";
import { askOtherTabs, key, shareSession, signIn, signOut, whenSessionChanges } from "./session.js";
import { mayStop, StopDialog, Stops, useStops } from "./stop.js";
import { Banner, Loading, Page, Problem, html, show, useEffect, useLoad, useRef, useState } from "./ui.js";

const READS = ["actions:read", "actions:read_own"];

/**
 * Name in the address, name in the menu, the module (loaded when the page is opened first), and the scopes of which one
 * lets a key see it.
 * @type {[string, string, () => Promise<unknown>, string[]][]}
 */
const PAGES = [
  ["approvals", "Approvals", () => import("./pages/approvals.js").then((m) => m.Approvals), READS],
  ["actions", "Actions", () => import("./pages/actions.js").then((m) => m.Actions), READS],
  ["policies", "Policies", () => import("./pages/policies.js").then((m) => m.Policies), ["policies:read"]],
  ["agents", "Agents", () => import("./pages/agents.js").then((m) => m.Agents), ["agents:read"]],
  ["keys", "API keys", () => import("./pages/keys.js").then((m) => m.Keys), ["keys:manage"]],
  ["analytics", "Analytics", () => import("./pages/analytics.js").then((m) => m.Analytics), ["analytics:read"]],
  ["provenance", "Provenance", () => import("./pages/provenance.js").then((m) => m.Provenance), ["provenance:read"]],
  ["events", "Events", () => import("./pages/events.js").then((m) => m.Events), ["events:read"]],
  ["deliveries", "Deliveries", () => import("./pages/deliveries.js").then((m) => m.Deliveries), ["deliveries:read"]],
  // What it shows is there for everybody.
  ["system", "System", () => import("./pages/system.js").then((m) => m.System), []],
];

const mayOpen = ([, , , scopes]) => scopes.length === 0 || scopes.some(may);

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
  return { name, id: id === "" ? null : id, query: new URLSearchParams(search) };
}

function Shell() {
  const [signedIn, setSignedIn] = useState(/** @type {boolean | null} */ (key() === null ? null : true));
  const [why, setWhy] = useState("");
  useEffect(() => {
    shareSession();
    const stop = whenSessionChanges((value, reason) => {
      if (value === null) forgetMe();
      setWhy(reason);
      setSignedIn(value !== null);
    });
    if (signedIn === null) void askOtherTabs().then((session) => setSignedIn(session !== null));
    return stop;
  }, []);
  return html`<${Banner} />${signedIn === null ? html`<main class="sign-in"><${Loading} what="the console" /></main>` : signedIn ? html`<${Console} key=${key()} />` : html`<${SignIn} why=${why} />`}`;
}

function Console() {
  const [at, setAt] = useState(route());
  const main = useRef(null);
  const [unfolded, setUnfolded] = useState(false);
  const { data: who, error, reload } = useLoad(async (signal) => me() ?? loadMe(signal), []);
  const { stops, look } = useStops(who !== null);
  const [stopping, setStopping] = useState(false);
  useEffect(() => {
    const moved = () => {
      setAt(route());
      setUnfolded(false);
    };
    addEventListener("hashchange", moved);
    // The address may have changed since this was first drawn, and nobody listened.
    moved();
    return () => removeEventListener("hashchange", moved);
  }, []);
  const mine = who === null ? [] : PAGES.filter(mayOpen);
  const name = at.name === "" ? (mine[0]?.[0] ?? "") : at.name;
  return html` <a
      class="skip"
      href="#main"
      onClick=${(event) => (event.preventDefault(), main.current.querySelector("h1")?.focus())}
      >Skip to the page</a
    >
    <div class="shell">
      <nav aria-label="Console" class=${unfolded ? "open" : ""}>
        <div class="brand">
          <strong>Assent</strong
          ><button
            type="button"
            class="menu"
            aria-expanded=${unfolded}
            aria-controls="menu"
            onClick=${() => setUnfolded(!unfolded)}
          >
            Menu
          </button>
        </div>
        <ul id="menu">
          ${mine.map(([path, title]) => html`<li key=${path}><a href=${`#/${path}`} aria-current=${path === name ? "page" : null}>${title}</a></li>`)}
          <li><a href="/docs">API</a></li>
          ${who !== null && mayStop() ? html`<li><button type="button" class="out halt" onClick=${() => setStopping(true)}>Stop…</button></li>` : null}
          <li><button type="button" class="out" onClick=${() => signOut()}>Sign out</button></li>
          ${who === null ? null : html`<li class="whose">Key: <${Key} id=${who.key.id} /></li>`}
        </ul>
      </nav>
      <main id="main" ref=${main}>
        <${Problem} error=${error} again=${reload} />
        <${Stops} stops=${stops} onChange=${look} />
        ${who === null ? (error === null ? html`<${Loading} what="the console" />` : null) : html`<${Current} at=${{ ...at, name }} main=${main} />`}
      </main>
    </div>
    ${stopping ? html`<${StopDialog} onClose=${() => setStopping(false)} onDone=${() => (setStopping(false), look())} />` : null}`;
}

/** The page that the address names. @param {{ at: ReturnType<typeof route>, main: { current: HTMLElement | null } }} props */
function Current({ at, main }) {
  const page = PAGES.find(([name]) => name === at.name) ?? null;
  const [, title, load, scopes] = page ?? ["", "", null, []];
  const isOpenable = page !== null && mayOpen(page);
  const { data, error, reload } = useLoad(async () => {
    if (!isOpenable) return null;
    const View = await load().catch(() => {
      const detail =
        "this page could not be loaded; if the service has another version by now, load the whole console again";
      throw new ApiError({ status: 0, code: "UNREACHABLE", detail });
    });
    return { of: at.name, View };
  }, [isOpenable, at.name]);
  const View = data !== null && data.of === at.name ? data.View : null;
  // Whoever listens instead of looking learns that the page has changed; not at the first one.
  const first = useRef(true);
  useEffect(() => {
    if (isOpenable && View === null) return;
    // A page that moved the focus itself, as the queue does, keeps it.
    if (!first.current && (document.activeElement === document.body || document.activeElement?.closest("nav")))
      main.current?.querySelector("h1")?.focus();
    first.current = false;
  }, [at.name, at.id, View]);
  if (page === null)
    return html`<${Page} title="There is no such page"
      ><p>Nothing in this console stands at <code>${location.hash}</code>. It may have been mistyped, or cut off.</p>
      <p><a href="#/">To the first page</a></p><//
    >`;
  if (!isOpenable)
    return html`<${Page} title=${title}
      ><p>The key that you are signed in with may not see this page: it needs the scope <code>${scopes[0]}</code>.</p>
      <p><a href="#/">To the first page</a></p><//
    >`;
  if (error !== null) return html`<${Page} title=${title}><${Problem} error=${error} again=${reload} /><//>`;
  if (View === null) return html`<${Loading} what=${title.toLowerCase()} />`;
  return html`<${View} key=${at.name} id=${at.id} query=${at.query} />`;
}

/** @param {{ why: string }} props */
function SignIn({ why }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const field = useRef(null);
  const stay = useRef(null);
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
      if (!/^[\x21-\x7e]+$/.test(value))
        throw new Error("this is not an API key: a key starts with assent_ and has letters, digits, - and _ only");
      takeMe(await call("/v1/me", { key: value }));
      signIn(value, stay.current.checked);
    } catch (refusal) {
      setError(refusal);
      setBusy(false);
      field.current?.focus();
    }
  };
  return html`<main class="sign-in">
    <h1>Assent</h1>
    <form onSubmit=${submit}>
      ${why === "" ? null : html`<${Problem} error=${new Error(`You were signed out: ${why}`)} />`}
      <label for="key">API key</label>
      <input
        id="key"
        ref=${field}
        type="password"
        autocomplete="off"
        spellcheck=${false}
        required
        aria-describedby="key-help"
      />
      <p id="key-help" class="quiet">
        Kept for the tabs of this browser, until the last of them closes or you sign out. What you may see and do is
        what the key may.
      </p>
      <label class="check"
        ><input type="checkbox" ref=${stay} /> Stay signed in on this device: only where nobody else uses it</label
      >
      <${Problem} error=${error} />
      <button type="submit" class="primary" disabled=${busy}>${busy ? "Signing in…" : "Sign in"}</button>
    </form>
  </main>`;
}

show(html`<${Shell} />`);

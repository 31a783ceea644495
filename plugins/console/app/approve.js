/**
 * The page that links in notifications open. It works by the token in the address alone, which was sent to one
 * person. Opening it looks; only the button, and the one in the question behind it, decides.
 */
import { ApiError, at, call } from "./api.js";
import {
  Badge,
  Banner,
  Dialog,
  Left,
  Notice,
  Problem,
  Text,
  html,
  show,
  useEffect,
  useRef,
  useState,
  useNow,
} from "./ui.js";
import { Asked, Bound, Risk, What } from "./request.js";
import { who } from "./text.js";

const EVERY = 5000;
const token = takeToken();
// Another link in the same tab changes nothing but the fragment, and must not leave the first request standing.
addEventListener("hashchange", () => location.hash !== "" && location.reload());
const look = () => call("/v1/approval-link", { method: "POST", body: { token }, key: null });

const ENDED = {
  approved: ["good", "It is approved."],
  denied: ["bad", "It was denied."],
  expired: ["busy", "The time to decide is over. Nobody denied it: it expired, and the agent has to ask again."],
  cancelled: ["busy", "It was withdrawn before it was decided."],
  executing: ["good", "It was approved and is under way."],
  succeeded: ["good", "It was approved and has been done."],
  failed: ["bad", "It was approved; doing it failed."],
};

function Approve() {
  const [seen, setSeen] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [asking, setAsking] = useState(/** @type {boolean | null} */ (null));
  const [mine, setMine] = useState("");
  const [lost, setLost] = useState(/** @type {{ approve: boolean, error: any } | null} */ (null));
  const draft = useRef("");
  const time = useNow();
  const waits = seen !== null && seen.action.status === "pending_approval";
  const refresh = async () => {
    try {
      setSeen(await look());
      setError(null);
    } catch (refusal) {
      setError(refusal);
    }
  };
  useEffect(() => void refresh(), []);
  useEffect(() => {
    if (!waits) return undefined;
    const timer = setInterval(() => void refresh(), EVERY);
    return () => clearInterval(timer);
  }, [waits]);

  if (seen === null)
    return html`<main class="approve">
      <h1>Approve or deny</h1>
      ${error === null ? html`<p class="quiet">Loading…</p>` : html`<${Refused} error=${error} again=${refresh} />`}
    </main>`;
  const { action, approver, refusal } = seen;
  const voted = action.approvals.find((vote) => vote.approver === approver) ?? null;
  const late = Date.parse(action.expires_at) <= time;
  const open = waits && !late && refusal === null && voted === null;
  const given = action.approvals.filter((vote) => vote.approve).length;
  return html`<${Banner} />
    <main class="approve">
      <header class="page-head">
        <h1>Approve or deny</h1>
        <span class="quiet"
          >You are asked as <strong><${Text} value=${who(approver)} /></strong
        ></span>
      </header>
      <article class="card approval open">
        <div class="summary">
          <${What} action=${action} /><span class="row"
            ><${Risk}
              risk=${action.risk_level}
            />${waits ? html`<${Left} at=${action.expires_at} time=${time} />` : html`<${Badge} value=${action.status} />`}</span
          >
        </div>
        <div role="status">
          ${
            lost === null
              ? null
              : html`<${Notice} kind="bad"
                  >Your ${lost.approve ? "approval" : "denial"} was not recorded:
                  <${Text}
                    value=${lost.error.message}
                  />.${draft.current === "" ? null : html` Your reason: “<${Text} value=${draft.current} />”`}<//
                >`
          }
          ${mine === "" ? null : html`<${Notice} kind="good"><${Text} value=${mine} /><//>`}
          ${waits && late ? html`<${Notice} kind="busy">${ENDED.expired[1]}<//>` : null}
          ${waits ? null : html`<${Notice} kind=${(ENDED[action.status] ?? ["busy"])[0]}>${(ENDED[action.status] ?? ["", `It is ${action.status}.`])[1]}<//>`}
          ${waits && voted !== null && mine === "" ? html`<${Notice} kind="busy">You have ${voted.approve ? "approved" : "denied"} it already; it waits for others.<//>` : null}
          ${refusal === null ? null : html`<${Notice} kind="bad">You cannot decide this: <${Text} value=${refusal} />.<//>`}
        </div>
        <${Asked} action=${action} level=${2} more=${[["Approvals", `${given} of ${action.approvals_needed}`]]} />
        <${Bound} action=${action} />
        ${
          action.approvals.length === 0
            ? null
            : html`<h2>Verdicts</h2>
                <ul>
                  ${action.approvals.map((vote) => html`<li><${Text} value=${who(vote.approver)} /> ${vote.approve ? "approved" : "denied"}${vote.reason ? html`: <${Text} value=${vote.reason} />` : null}</li>`)}
                </ul>`
        }
        <${Problem} error=${error} />
        ${open ? html`<div class="row verdict"><button type="button" class="primary" onClick=${() => (setLost(null), setAsking(true))}>Approve…</button><button type="button" class="danger" onClick=${() => (setLost(null), setAsking(false))}>Deny…</button></div>` : null}
      </article>
      <p class="quiet">
        Your verdict counts for exactly this request and is recorded under your name.
        <a href=${`/#/approvals/${at(action.id)}`}>Open it in the console</a>, with an API key.
      </p>
      ${
        asking === null
          ? null
          : html`<${Question}
              action=${action}
              approve=${asking}
              draft=${draft}
              onClose=${async (said, refused) => {
                setAsking(null);
                if (said !== undefined) setMine(said);
                if (refused !== undefined) setLost({ approve: asking, error: refused });
                await refresh();
              }}
            />`
      }
    </main>`;
}

/** @param {{ action: any, approve: boolean, draft: { current: string }, onClose: (said?: string, refused?: unknown) => void }} props draft: the reason, kept where it was not recorded */
function Question({ action, approve, draft, onClose }) {
  const [busy, setBusy] = useState(false);
  const reason = useRef(null);
  const verb = approve ? "Approve" : "Deny";
  const decide = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    const why = reason.current.value.trim();
    try {
      // The token is bound to the request hash: a request that is not the one shown cannot be decided with it.
      const answer = await call("/v1/approval-link/verdict", {
        method: "POST",
        key: null,
        body: { token, approve, ...(why === "" ? {} : { reason: why }) },
      });
      onClose(
        answer.action.status === "pending_approval"
          ? "Your approval is recorded; it waits for others."
          : approve
            ? "You approved it."
            : "You denied it.",
      );
    } catch (refusal) {
      onClose(undefined, refusal);
    }
  };
  return html`<${Dialog} title=${`${verb} this request?`} onClose=${() => busy || onClose()}>
    <form class="vote" onSubmit=${decide}>
      <div class="asked" role="region" aria-label="What is asked for" tabindex="0">
        <p><${What} action=${action} /></p>
        <${Asked} action=${action} />
      </div>
      <div class="field">
        <label for="reason">Reason <span class="quiet">(recorded in the ledger; optional)</span></label
        ><textarea
          id="reason"
          ref=${reason}
          defaultValue=${draft.current}
          onInput=${(event) => (draft.current = event.target.value)}
          rows="3"
          maxlength="2000"
          data-focus
        ></textarea>
      </div>
      <div class="row end">
        <button type="submit" class=${approve ? "primary" : "danger"} disabled=${busy}>
          ${busy ? "Deciding…" : verb}
        </button>
        <button type="button" disabled=${busy} onClick=${() => onClose()}>Cancel</button>
      </div>
    </form>
  <//>`;
}

/** The link itself is no good, or the service is not there. @param {{ error: unknown, again: () => void }} props */
function Refused({ error, again }) {
  const broken = error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;
  if (!broken) return html`<${Problem} error=${error} again=${again} />`;
  return html`<${Problem} error=${error} />
    <p>
      Nothing was decided. Open the link exactly as it was sent to you, or decide in
      <a href="/#/approvals">the console</a> with an API key.
    </p>`;
}

/** Out of the address, where it would be read over a shoulder or kept in a history; beside it, for a reload. */
function takeToken() {
  const given = tokenOf(location.hash.slice(1));
  if (given === "") return typeof history.state?.token === "string" ? history.state.token : "";
  history.replaceState({ token: given }, "", location.pathname);
  return given;
}

/** @param {string} fragment whatever a mail program made of it */
function tokenOf(fragment) {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

const isApprovalId = /^[0-9a-f-]{36}$/.test(token);
if (isApprovalId) location.replace(`/#/approvals/${at(token)}`);
else
  show(
    token === ""
      ? html`<main class="approve">
          <h1>Approve or deny</h1>
          <${Notice} kind="busy"
            >This page is opened by a link that was sent to you. Decide in <a href="/#/approvals">the console</a> with
            an API key.<//
          >
        </main>`
      : html`<${Approve} />`,
  );

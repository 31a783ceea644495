/** One action: what was asked, what was decided and why, what happened since, and whether that can be proved. */
import { at, call } from "../core/api.ts";
import { follow } from "../core/live.ts";
import { Who } from "../ui/person.tsx";
import { Proof } from "../proof.js";
import { Request } from "../ui/request.tsx";
import { plain } from "../ui/format.ts";
import { outcomeOf } from "../inbox/outcome.tsx";
import { Votes, Waiting } from "../inbox/pane.tsx";
import { Rejection } from "../inbox/rejection.tsx";
import { findVoteAvailability } from "../inbox/vote-availability.ts";
import { castVote } from "../inbox/vote.ts";
import { VoteBar } from "../inbox/vote-bar.tsx";
import { Timeline } from "../ui/timeline.tsx";
import {
  Badge,
  Data,
  Facts,
  Hash,
  Left,
  Live,
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
  useNow,
  useState,
} from "../ui.js";

/** @param {{ id: string }} props */
export function ActionDetail({ id }) {
  const [live, setLive] = useState({ state: "starting", why: "" });
  const { data, error, reload } = useLoad(
    async (signal) => {
      const [action, { events }] = await Promise.all([
        call(`/v1/actions/${at(id)}`, { signal }),
        call(`/v1/actions/${at(id)}/events`, { signal }),
      ]);
      return { action, events };
    },
    [id],
  );
  useEffect(() => {
    const over = new AbortController();
    follow({
      filters: { action_id: /^[0-9a-f-]{36}$/.test(id) ? id : undefined },
      signal: over.signal,
      onEvent: reload,
      // What happened between the first look and the stream is in neither.
      onState: (state, why) => (setLive({ state, why }), state === "live" && reload()),
    });
    return () => over.abort();
  }, [id]);
  const [said, setSaid] = useState("");
  const [refused, setRefused] = useState(/** @type {unknown} */ (null));
  const time = useNow();
  if (data === null)
    return html`<${Page} title="Action"
      >${error === null ? html`<${Loading} what="the action" />` : html`<${Problem} error=${error} again=${reload} />`}<//
    >`;
  const { action, events } = data;
  const availability = findVoteAvailability({ action, outcome: outcomeOf(action), isFull: true });
  const vote = async (approve, reason) => {
    const result = await castVote(action, approve, reason);
    setRefused(result.kind === "failed" ? result.error : null);
    setSaid(
      { settled: result.outcome?.text, recorded: "Your approval is recorded; it needs more approvals." }[result.kind] ??
        "Your vote was not recorded.",
    );
    reload();
    return result.kind === "settled" || result.kind === "recorded";
  };
  const decided = events.find((event) => event.type === "decision")?.entry;
  return html`<${Page} title=${`${action.tool} ${action.operation}`} side=${html`<${Live} ...${live} />`}>
    <p><a href="#/actions">All actions</a></p>
    <${Problem} error=${error} again=${reload} />
    <p class="row">
      <${Badge} value=${action.status} />
      ${availability === "settled" ? null : html`<${Left} at=${action.expires_at} time=${time} />`}
      ${
        (action.status === "allowed" || action.status === "approved") && action.approved_until !== null
          ? html`<span class="quiet">may start until <${Time} at=${action.approved_until} /></span>`
          : null
      }
      ${action.status === "pending_approval" ? html`<a href=${`#/approvals/${at(id)}`}>Open it in the inbox</a>` : null}
    </p>
    <div role="status">${said === "" ? null : html`<${Notice}>${said}<//>`}</div>
    <${Problem} error=${refused} />
    <${Rejection}
      action=${action}
      onRefused=${setRefused}
      onLifted=${() => (setSaid("The rejection is lifted."), reload())}
    />
    <section class="card" aria-labelledby="request">
      <h2 id="request">Request</h2>
      <${Request} action=${action} />
      <p class="quiet">Action <${Hash} value=${action.id} /></p>
      ${
        action.status === "pending_approval"
          ? html`<p><${Waiting} action=${action} /></p>
              <${Votes} action=${action} />
              ${availability === "open" ? html`<${VoteBar} subject=${action.id} cast=${vote} />` : null}`
          : null
      }
    </section>
    <section class="card" aria-labelledby="timeline">
      <h2 id="timeline">History</h2>
      <${Timeline}
        label="History"
        steps=${events.map((event) => ({
          key: event.seq,
          at: event.at,
          kind: kindOf(event.entry),
          content: html`<${Step} event=${event} />`,
        }))}
      />
    </section>
    ${
      action.result === null
        ? null
        : html`<section class="card" aria-labelledby="result">
            <h2 id="result">Result</h2>
            <${Badge}
              value=${action.result.success ? "succeeded" : "failed"}
            />${action.result.error ? html`<p><${Text} value=${action.result.error} lines /></p>` : null}${Object.keys(action.result.meta ?? {}).length > 0 ? html`<${Data} value=${action.result.meta} label="What was reported" />` : null}
          </section>`
    }
    ${
      decided === undefined
        ? null
        : html`<section class="card" aria-labelledby="trace">
            <h2 id="trace">Decision as recorded</h2>
            <${Facts}
              rows=${[
                ["Effect", html`<${Badge} value=${decided.decision.effect} />`],
                [
                  "Policy set",
                  decided.policy_set === null ? "none was active" : html`<${Hash} value=${decided.policy_set} />`,
                ],
              ]}
            />
            ${
              decided.decision.shadow.length === 0
                ? null
                : html`<h3>What shadow policies would have decided</h3>
                    <${Data} value=${decided.decision.shadow} label="Shadow decisions" />`
            }
            <details>
              <summary>Entry, with the facts that it was decided from</summary>
              <${Data} value=${decided} label="Decision entry" />
            </details>
          </section>`
    }
    <section class="card" aria-labelledby="proof">
      <h2 id="proof">Proof</h2>
      <p>Leaf hash of the decision in the ledger:</p>
      <${Proof} hash=${action.decision_hash} />
    </section>
    <section class="card" aria-labelledby="replay">
      <h2 id="replay">Replay</h2>
      ${
        action.erased_at === null
          ? html`<${Replay} id=${action.id} />`
          : html`<p class="quiet">What was asked was erased: the decision cannot be made again. Its proof stands.</p>`
      }
    </section>
  <//>`;
}

/** @param {any} entry */
function kindOf({ status, decision, verdict }) {
  return (
    { allow: "good", deny: "bad", require_approval: "busy" }[decision?.effect] ??
    { approve: "good" }[verdict] ??
    { approved: "good", succeeded: "good", denied: "bad", failed: "bad", unknown: "bad", executing: "busy" }[status]
  );
}

/** @param {{ event: { seq: number, type: string, at: string, hash: string, entry: any } }} props */
function Step({ event }) {
  const { entry } = event;
  const said = {
    decision: () => html`<${Badge} value=${entry.decision.effect} /> <${Text} value=${entry.decision.reason} />`,
    approval: () =>
      html`<${Badge}
          value=${{ approve: "approved", deny: "denied", rejection_lifted: "rejection lifted" }[entry.verdict] ?? entry.verdict}
        />
        ${entry.by === null ? "by the clock" : html`by <${Who} principal=${entry.by.principal} />`} (${entry.approvals}
        of
        ${entry.quorum})${entry.comment ? html`: <${Text} value=${entry.comment} />` : null}${entry.self_approval ? " – a self-approval" : ""}`,
    redecision: () =>
      html`<${Badge} value=${entry.status} /> decided again
        ${{ vote: "at a vote of", start: "at the start by", permit: "for a permit for" }[entry.occasion]}
        <${Who}
          principal=${entry.by.principal}
        />${entry.status === "pending_approval" ? ` (${entry.quorum} have to approve)` : ""}:
        <${Text} value=${entry.decision.reason} />`,
    erasure: () =>
      html`<${Badge} value="erasure" label="erased" />
        ${entry.by === null ? "by retention" : html`by <${Who} principal=${entry.by.principal} />`}:
        <${Text} value=${entry.reason} />`,
    execution: () =>
      html`<${Badge} value=${entry.status} /> ${
          entry.by === null
            ? "no result was reported in time"
            : html`${executionVerb(entry)} by <${Who} principal=${entry.by.principal} />`
        }${entry.comment === null ? "" : html`: <${Text} value=${entry.comment} />`}`,
  }[event.type];
  return html`${said === undefined ? html`<${Text} value=${event.type} />` : said()}
    <a class="quiet" href=${`#/provenance/${at(event.hash)}`} aria-label=${plain(`entry ${event.seq} in the ledger`)}
      >#${event.seq}</a
    >`;
}

/** @param {{ phase: string, permit: string | null, comment: string | null }} entry */
function executionVerb({ phase, permit, comment }) {
  if (phase === "start") return permit === null ? "started" : "started with a permit";
  return comment === null ? "reported" : "settled";
}

/** @param {{ id: string }} props */
function Replay({ id }) {
  const [state, setState] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    try {
      setState({
        result: await call("/v1/replay", { method: "POST", body: { action_id: id, policy_set: "current" } }),
      });
    } catch (error) {
      setState({ error });
    } finally {
      setBusy(false);
    }
  };
  const result = state?.result;
  return html` <p>
      Decides again with the policies, facts and clock of the record, and compares every field; then with today's
      policies.
    </p>
    <button type="button" disabled=${busy} onClick=${run}>Replay</button>
    <${Problem} error=${state?.error} />
    ${
      result === undefined
        ? null
        : html` <${Notice} kind=${result.equal ? "good" : "bad"}
              >${
                !result.equal
                  ? "Another decision came out. The fields that differ are marked."
                  : result.redecisions.length === 0
                    ? "The same decision, field by field."
                    : `The same decision, field by field, and so the ${result.redecisions.length} that were made again since.`
              }<//
            >
            <${Table} label="Fields" head=${["Field", "Recorded", "Replayed", ""]}
              >${[result, ...result.redecisions.filter(({ equal }) => !equal)]
                .flatMap(({ fields }) => fields)
                .map(
                  (field) =>
                    html`<tr>
                      <td>${field.field}</td>
                      <td data-label="Recorded"><${Text} value=${JSON.stringify(field.recorded)} /></td>
                      <td data-label="Replayed"><${Text} value=${JSON.stringify(field.replayed)} /></td>
                      <td>${field.equal ? "equal" : html`<${Badge} value="failed" label="differs" />`}</td>
                    </tr>`,
                )}<//
            >
            ${
              result.now === undefined
                ? null
                : html`<h3>Today</h3>
                    <p>
                      <${Badge} value=${result.now.decision.effect} />
                      ${result.now.changed ? html`Otherwise than then: <${Text} value=${result.now.decision.reason} />` : "As then."}
                    </p>`
            }`
    }`;
}

/** One action: its request, the decision and its reasons, its history, and its proof. */
import { useEffect, useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { encodeSegment, request } from "../core/api.ts";
import { followLiveEvents } from "../core/live-events.ts";
import { findOutcome } from "../inbox/outcome.tsx";
import { AgentWaitStatus, VoteElsewhere } from "../inbox/request-pane.tsx";
import { RequiredApprovals } from "../inbox/required-approvals.tsx";
import { Recall } from "../inbox/recall.tsx";
import { Rejection } from "../inbox/rejection.tsx";
import { findVoteAvailability } from "../inbox/vote-availability.ts";
import { VoteBar } from "../inbox/vote-bar.tsx";
import { castVote, type VoteResult } from "../inbox/vote.ts";
import { ActionHistory, describeActionEntry, type ActionEvent } from "../ui/action-history.tsx";
import {
  Badge,
  JsonBlock,
  FactList,
  Hash,
  StreamStatus,
  Notice,
  ErrorNotice,
  MarkedValue,
  TimeLeft,
} from "../ui/elements.tsx";
import { useLoad } from "../ui/hooks.ts";
import { LoadedPage } from "../ui/loaded-page.tsx";
import { Panels } from "../ui/panels.tsx";
import { ActionTitle, describeRequest, FullRequest, MachineReviews, RequestHeadline } from "../ui/request-view.tsx";

const TEXTS = {
  title: "Action",
  all: "Actions",
  inInbox: "Open it in the inbox",
  history: "History",
  approvals: "Approvals",
  result: "Result",
  decision: "Decision as recorded",
  noPolicySet: "none was active",
  shadow: "What shadow policies would have decided",
  entry: "Entry, with the facts that it was decided from",
  votes: {
    recorded: "Your approval is recorded; the request needs more approvals.",
    none: "Your vote was not recorded.",
  },
} as const;

export function ActionDetail({ id }: { id: string }) {
  const [live, setLive] = useState({ state: "starting", why: "" });
  const loaded = useLoad(
    async (signal) => {
      const [action, { events }] = await Promise.all([
        request("GET /v1/actions/{id}", { path: [id], signal }),
        request("GET /v1/actions/{id}/events", { path: [id], signal }),
      ]);
      return { action, events };
    },
    [id],
  );
  const { data, reload } = loaded;
  useEffect(() => {
    const over = new AbortController();
    followLiveEvents({
      filters: /^[0-9a-f-]{36}$/.test(id) ? { action_id: id } : {},
      signal: over.signal,
      onEvent: reload,
      onState(state, why) {
        setLive({ state, why });
        // An event between the first read and the start of the stream is in neither, so read again.
        if (state === "live") reload();
      },
    });
    return () => over.abort();
  }, [id]);
  return (
    <LoadedPage
      title={data === null ? TEXTS.title : describeRequest(data.action)}
      {...(data === null ? {} : { heading: <RequestHeadline action={data.action} /> })}
      back={{ href: "#/actions", text: TEXTS.all }}
      what="the action"
      loaded={loaded}
      side={data === null ? null : <StreamStatus {...live} />}
    >
      {({ action, events }) => <Detail action={action} events={events} reload={reload} />}
    </LoadedPage>
  );
}

interface DetailProps {
  action: Action;
  events: readonly ActionEvent[];
  reload(): void;
}

function Detail({ action, events, reload }: DetailProps) {
  const [message, setMessage] = useState("");
  const [refused, setRefused] = useState<unknown>(null);
  const availability = findVoteAvailability({ action, outcome: findOutcome(action), isFull: true, error: null });
  const isPending = action.status === "pending_approval";
  const vote = async (approve: boolean, reason: string): Promise<boolean> => {
    const result = await castVote(action, { approve, reason });
    setRefused(result.kind === "failed" ? result.error : null);
    setMessage(describeVote(result));
    reload();
    return result.kind === "settled" || result.kind === "recorded";
  };
  return (
    <>
      <div class="row">
        <Badge value={action.status} />
        {availability === "settled" || action.expires_at === null ? null : <TimeLeft at={action.expires_at} />}
        {(action.status === "allowed" || action.status === "approved") && action.approved_until !== null ? (
          <span class="quiet">
            <TimeLeft at={action.approved_until} /> to start
          </span>
        ) : null}
        {isPending ? <a href={`#/approvals/${encodeSegment(action.id)}`}>{TEXTS.inInbox}</a> : null}
        <Panels place="settled" action={action} />
      </div>
      <div role="status">{message === "" ? null : <Notice>{message}</Notice>}</div>
      <ErrorNotice error={refused} />
      <Panels place="action-outcome" action={action} onChanged={reload} />
      <Rejection action={action} />
      <Recall
        action={action}
        onDone={(_, done) => {
          setMessage(done);
          reload();
        }}
      />
      <Panels
        place="action-allowed"
        action={action}
        entries={events.map(({ entry }) => entry)}
        onChange={(changed) => {
          setMessage(changed);
          reload();
        }}
      />
      <section class="card" aria-labelledby="request">
        <h2 id="request">Request</h2>
        <p>
          <ActionTitle action={action} />
        </p>
        <FullRequest action={action} />
        <p class="quiet">
          Action <Hash value={action.id} />
        </p>
        {isPending ? (
          <>
            <p>
              <AgentWaitStatus action={action} />
            </p>
            <RequiredApprovals action={action} />
            {availability === "open" ? <VoteBar subject={action.id} cast={vote} /> : null}
            {availability === "elsewhere" ? <VoteElsewhere action={action} /> : null}
          </>
        ) : null}
      </section>
      <Approvals action={action} events={events} />
      <section class="card" aria-labelledby="timeline">
        <h2 id="timeline">{TEXTS.history}</h2>
        <ActionHistory events={events} />
      </section>
      <Result result={action.result} />
      <Decision entry={events.find(({ type }) => type === "decision")?.entry} />
      <Panels place="action" action={action} />
    </>
  );
}

/** Says who let the action run, or did not, and how: people or machine reviewers. */
function Approvals({ action, events }: Pick<DetailProps, "action" | "events">) {
  const votes = events.filter(
    ({ type, entry }) => type === "approval" && ["approve", "deny"].includes(String(entry["verdict"])),
  );
  if (votes.length === 0 && (action.reviews ?? []).length === 0) return null;
  return (
    <section class="card" aria-labelledby="approvals">
      <h2 id="approvals">{TEXTS.approvals}</h2>
      <ul class="votes">
        {votes.map(({ seq, type, entry }) => (
          <li key={seq}>{describeActionEntry({ type, entry })}</li>
        ))}
      </ul>
      <MachineReviews action={action} level={3} />
    </section>
  );
}

function describeVote(result: VoteResult): string {
  if (result.kind === "settled") return result.outcome.text;
  return result.kind === "recorded" ? TEXTS.votes.recorded : TEXTS.votes.none;
}

function Result({ result }: { result: Action["result"] }) {
  if (result === null) return null;
  const meta = "meta" in result ? result.meta : {};
  return (
    <section class="card" aria-labelledby="result">
      <h2 id="result">{TEXTS.result}</h2>
      <Badge value={result.success ? "succeeded" : "failed"} />
      {result.error ? (
        <p>
          <MarkedValue value={result.error} lines />
        </p>
      ) : null}
      {Object.keys(meta ?? {}).length > 0 ? <JsonBlock value={meta} label="Reported metadata" /> : null}
    </section>
  );
}

/** The members of a decision entry that the page reads. */
interface DecisionEntry {
  decision: { effect: string; shadow: readonly unknown[] };
  policy_set: string | null;
}

function Decision({ entry }: { entry: Record<string, unknown> | undefined }) {
  if (entry === undefined) return null;
  const { decision, policy_set } = entry as unknown as DecisionEntry;
  return (
    <section class="card" aria-labelledby="trace">
      <h2 id="trace">{TEXTS.decision}</h2>
      <FactList
        rows={[
          ["Effect", <Badge value={decision.effect} />],
          ["Policy set", policy_set === null ? TEXTS.noPolicySet : <Hash value={policy_set} />],
        ]}
      />
      {decision.shadow.length === 0 ? null : (
        <>
          <h3>{TEXTS.shadow}</h3>
          <JsonBlock value={decision.shadow} label="Shadow decisions" />
        </>
      )}
      <details>
        <summary>{TEXTS.entry}</summary>
        <JsonBlock value={entry} label="Decision entry" />
      </details>
    </section>
  );
}

/** Cards of the page about a person. */
import { useState } from "preact/hooks";
import {
  Ago,
  type Api,
  encodeSegment,
  ErrorNotice,
  hasScope,
  LoadedCard,
  MarkedValue,
  PersonLink,
  request,
  RequestHeadline,
  ResultNotice,
  Table,
  TimeLeft,
  useLoad,
} from "../../console/app/kit.ts";
import type { Session } from "./api-types.ts";
import { describeLimit } from "./access-review.tsx";
import { DelegationTable } from "./delegations.tsx";
import { PERSON_TEXTS as TEXTS } from "./person-strings.ts";

/** Maximum number of pending requests on the card. */
const MAX_PENDING = 10;
const MAX_DELEGATIONS = 50;

export function RightsCard({ id }: { id: string }) {
  const loaded = useLoad((signal) => request("GET /v1/users/{id}/rights", { path: [id], signal }), [id]);
  return (
    <LoadedCard id="rights" title={TEXTS.rights} what="rights" loaded={loaded}>
      {(rights) => <Rights rights={rights} />}
    </LoadedCard>
  );
}

function Rights({
  rights: { may_approve, limits, delegators },
}: {
  rights: Api["GET /v1/users/{id}/rights"]["response"];
}) {
  if (!may_approve) return <p class="quiet">{TEXTS.nothing}</p>;
  return (
    <>
      <p>{limits === null ? TEXTS.everything : TEXTS.limits}</p>
      {limits === null ? null : (
        <ul>
          {limits.map((limit, i) => (
            <li key={i}>
              <MarkedValue value={describeLimit(limit)} />
            </li>
          ))}
        </ul>
      )}
      {delegators.map((principal) => (
        <p key={principal}>
          {TEXTS.inPlaceOf} <PersonLink principal={principal} />
        </p>
      ))}
    </>
  );
}

export function PendingRequestsCard({ id, isOwn }: { id: string; isOwn: boolean }) {
  const loaded = useLoad(
    (signal) => {
      const query = { view: "mine" as const, limit: MAX_PENDING, ...(isOwn ? {} : { user_id: id }) };
      return request("GET /v1/approvals", { query, signal });
    },
    [id, isOwn],
  );
  return (
    <LoadedCard
      id="pending"
      title={TEXTS.pending}
      what="pending requests"
      loaded={loaded}
      side={isOwn ? <a href="#/approvals">{TEXTS.openPending}</a> : null}
    >
      {({ actions, total, next_cursor }) =>
        actions.length === 0 ? (
          <p class="quiet">{TEXTS.noPending}</p>
        ) : (
          <>
            <Table label={TEXTS.pendingRequests} head={["Request", "Time left"]}>
              {actions.map((action) => (
                <tr key={action.id}>
                  <td>
                    <a href={`#/approvals/${encodeSegment(action.id)}`}>
                      <RequestHeadline action={action} />
                    </a>{" "}
                    <span class="quiet">
                      by <MarkedValue value={action.agent_id} />
                    </span>
                  </td>
                  <td data-label="Time left">
                    {action.expires_at === null ? null : <TimeLeft at={action.expires_at} />}
                  </td>
                </tr>
              ))}
            </Table>
            {next_cursor === null ? null : (
              <p class="quiet">
                {TEXTS.cut(actions.length, total === null ? "more than 1,000" : total.toLocaleString("en"))}
              </p>
            )}
          </>
        )
      }
    </LoadedCard>
  );
}

export function DelegationCard({ id, isOwn }: { id: string; isOwn: boolean }) {
  const loaded = useLoad(
    (signal) => request("GET /v1/delegations", { query: { user_id: id, limit: MAX_DELEGATIONS }, signal }),
    [id],
  );
  return (
    <LoadedCard
      id="absence"
      title={TEXTS.absence}
      what="delegations"
      loaded={loaded}
      side={<a href="#/delegations">{TEXTS.allDelegations}</a>}
    >
      {({ delegations }) =>
        delegations.length === 0 ? (
          <p class="quiet">
            {TEXTS.noAbsence} {isOwn ? TEXTS.absenceNext : null}
          </p>
        ) : (
          <DelegationTable rows={delegations} />
        )
      }
    </LoadedCard>
  );
}

export function SessionCard({ id, isOwn }: { id: string; isOwn: boolean }) {
  const [done, setDone] = useState("");
  const [error, setError] = useState<unknown>(null);
  const loaded = useLoad((signal) => request("GET /v1/users/{id}/sessions", { path: [id], signal }), [id]);
  const mayEnd = isOwn || hasScope("users:manage");
  const end = async (session: Session | null): Promise<void> => {
    setError(null);
    try {
      if (session === null) await request("DELETE /v1/users/{id}/sessions", { path: [id] });
      else await request("DELETE /v1/users/{id}/sessions/{session_id}", { path: [id, session.id] });
      setDone(session === null ? TEXTS.endedAll : TEXTS.endedOne);
      loaded.reload();
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <LoadedCard
      id="sessions"
      title={TEXTS.sessions}
      what="sessions"
      loaded={loaded}
      side={
        mayEnd && (loaded.data?.sessions.length ?? 0) > 0 ? (
          <button type="button" class="small danger" onClick={() => void end(null)}>
            {TEXTS.endAll}
          </button>
        ) : null
      }
    >
      {({ sessions }) => (
        <>
          <ResultNotice text={done} />
          <ErrorNotice error={error} />
          {sessions.length === 0 ? (
            <p class="quiet">{TEXTS.noSessions}</p>
          ) : (
            <SessionTable sessions={sessions} {...(mayEnd ? { onEnd: (session: Session) => void end(session) } : {})} />
          )}
        </>
      )}
    </LoadedCard>
  );
}

function SessionTable({ sessions, onEnd }: { sessions: readonly Session[]; onEnd?: (session: Session) => void }) {
  return (
    <Table
      label={TEXTS.openSessions}
      head={["Browser", "Signed in", "Last seen", ...(onEnd === undefined ? [] : [""])]}
    >
      {sessions.map((session) => (
        <tr key={session.id}>
          <td>
            <MarkedValue value={session.browser === "" ? TEXTS.unknownBrowser : session.browser} />{" "}
            {session.current ? <span class="quiet">({TEXTS.thisSession})</span> : null}
          </td>
          <td data-label="Signed in">
            <Ago at={session.started_at} />{" "}
            <span class="quiet">
              <MarkedValue value={session.method.replace("_", " ")} />
            </span>
          </td>
          <td data-label="Last seen">
            <Ago at={session.seen_at} />
          </td>
          {onEnd === undefined ? null : (
            <td>
              <button
                type="button"
                class="small"
                aria-label={`End the session ${session.id.slice(-6)}`}
                onClick={() => onEnd(session)}
              >
                {TEXTS.endSession}
              </button>
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}

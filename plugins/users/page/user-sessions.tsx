/** The dialog with the sessions of a user. Admins and the user can end one or all of them. */
import { useState } from "preact/hooks";
import {
  Ago,
  currentMe,
  Dialog,
  EmptyState,
  ErrorNotice,
  hasScope,
  Loading,
  MarkedValue,
  request,
  ResultNotice,
  useLoad,
} from "../../console/app/kit.ts";
import type { UserDetails } from "./api-types.ts";

const METHODS: Readonly<Record<string, string>> = {
  passkey: "passkey",
  link: "enrolment link",
  recovery_code: "recovery code",
};

export function UserSessionsDialog({ user: { id, name, principal }, onClose }: { user: UserDetails; onClose(): void }) {
  const { data, error, reload } = useLoad(
    (signal) => request("GET /v1/users/{id}/sessions", { path: [id], signal }),
    [id],
  );
  const [failure, setFailure] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const [done, setDone] = useState("");
  const mayEnd = hasScope("users:manage") || currentMe()?.principal === principal;
  const end = async (session: string | null): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      if (session === null) await request("DELETE /v1/users/{id}/sessions", { path: [id] });
      else await request("DELETE /v1/users/{id}/sessions/{session_id}", { path: [id, session] });
      setDone(session === null ? "All sessions have ended." : "The session has ended.");
    } catch (problem) {
      setFailure(problem);
    } finally {
      setBusy(false);
      reload();
    }
  };
  return (
    <Dialog title={`Sessions of ${name}`} onClose={onClose} hotkey={false}>
      <ErrorNotice error={error} onRetry={reload} />
      <ErrorNotice error={failure} />
      <ResultNotice text={done} />
      {data === null ? (
        error === null ? (
          <Loading what="sessions" />
        ) : null
      ) : data.sessions.length === 0 ? (
        <EmptyState text="No session is open." />
      ) : (
        <ul class="plain-list">
          {data.sessions.map((session, i) => (
            <li key={session.id}>
              <article class="card" aria-label={`Session ${i + 1}`}>
                <p>
                  <strong>{METHODS[session.method] ?? <MarkedValue value={session.method} />}</strong>
                  {session.current ? <span class="quiet"> (this session)</span> : null}
                  <br />
                  <span class="quiet">
                    signed in <Ago at={session.started_at} />, last used <Ago at={session.seen_at} />
                  </span>
                  <br />
                  <span class="quiet">
                    <MarkedValue value={session.browser === "" ? "unknown browser" : session.browser} />
                  </span>
                </p>
                {mayEnd ? (
                  <button
                    type="button"
                    class="small danger"
                    aria-label={`End session ${i + 1}`}
                    disabled={isBusy}
                    onClick={() => void end(session.id)}
                  >
                    End
                  </button>
                ) : null}
              </article>
            </li>
          ))}
        </ul>
      )}
      <div class="row end">
        {mayEnd && (data?.sessions.length ?? 0) > 1 ? (
          <button type="button" class="danger" disabled={isBusy} onClick={() => void end(null)}>
            End all sessions
          </button>
        ) : null}
        <button type="button" data-focus="" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

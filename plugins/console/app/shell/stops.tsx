/** Stops: the bar that every page shows while a stop is active, and the dialogs that place and lift stops. */
import { useCallback, useEffect, useState } from "preact/hooks";
import type { Stop } from "../core/api-types.ts";
import { ApiError, request } from "../core/api.ts";
import { hasScope, currentMe } from "../core/me.ts";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorNotice, MarkedValue, Time } from "../ui/elements.tsx";
import { formatCounted } from "../ui/format.ts";
import { Field, FormButtons, readFormValues } from "../ui/forms.tsx";
import { Icon } from "../ui/icons.tsx";
import { PrincipalName } from "../ui/person.tsx";

/** Poll interval for the active stops. Milliseconds. */
const POLL_MS = 5000;
const HOUR = 3_600_000;
const READ_SCOPES = [
  "actions:submit",
  "actions:read_own",
  "actions:read",
  "actions:execute",
  "approvals:decide",
  "stop:write",
];

/** Returns whether the credential may place and lift stops. */
export function canStop(): boolean {
  return hasScope("stop:write") && currentMe()?.key.agent_id === null;
}

/**
 * Returns the active stops and polls them.
 * @param isReady whether the signed-in credential is known
 */
export function useStops(isReady: boolean): { stops: readonly Stop[]; refresh: () => void } {
  const [stops, setStops] = useState<readonly Stop[]>([]);
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!isReady || !READ_SCOPES.some(hasScope)) return undefined;
    const over = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = async (): Promise<void> => {
      try {
        if (!document.hidden) setStops((await request("GET /v1/stop", { signal: over.signal })).stops);
      } catch (error) {
        // The service does not have the stop plugin, so stop polling. Other errors are temporary, and other parts of
        // the page display them.
        if (error instanceof ApiError && error.status === 404) return;
      }
      if (!over.signal.aborted) timer = setTimeout(() => void poll(), POLL_MS);
    };
    void poll();
    return () => {
      over.abort();
      clearTimeout(timer);
    };
  }, [isReady, round]);
  return { stops, refresh: useCallback(() => setRound((n) => n + 1), []) };
}

export function Stops({ stops, onChange }: { stops: readonly Stop[]; onChange: () => void }) {
  const [lifting, setLifting] = useState<Stop | null>(null);
  return (
    <>
      <div class="stops" role="status" aria-live="assertive">
        {stops.map((stop) => (
          <div class="stopped" key={stop.id}>
            <Icon name="stop" />
            <p>
              <strong>
                Stopped: <Cover stop={stop} />.
              </strong>{" "}
              {stop.reason === null ? null : <MarkedValue value={stop.reason} />}
              <span class="since">
                Since <Time at={stop.placed_at} />
                {stop.placed_by === null ? null : (
                  <>
                    , by <PrincipalName principal={stop.placed_by} />
                  </>
                )}
                {stop.until === null ? null : (
                  <>
                    , until <Time at={stop.until} />
                  </>
                )}
                {stop.lift.asked.length === 0
                  ? null
                  : `; ${stop.lift.asked.length} of ${stop.lift.needed} people requested to lift it`}
              </span>
            </p>
            {canStop() ? (
              <button type="button" class="small" onClick={() => setLifting(stop)}>
                Lift…
              </button>
            ) : null}
          </div>
        ))}
      </div>
      {lifting === null ? null : (
        <Lift
          stop={lifting}
          onClose={() => setLifting(null)}
          onDone={() => {
            setLifting(null);
            onChange();
          }}
        />
      )}
    </>
  );
}

function Cover({ stop: { agent, tool, policy } }: { stop: Stop }) {
  const parts = Object.entries({ agent, tool, policy }).filter(([, value]) => value !== null);
  if (parts.length === 0) return <>everything</>;
  return (
    <>
      {parts.map(([name, value], i) => (
        <span key={name}>
          {i === 0 ? "" : ", "}
          {name} <MarkedValue value={value} />
        </span>
      ))}
    </>
  );
}

const SELECTED: Readonly<Record<string, string>> = { agent: "Agents", tool: "Tools", policy: "Policy" };

/** @param props.agent initial value of the agent field */
export function StopDialog({ agent, onClose, onDone }: { agent?: string; onClose: () => void; onDone: () => void }) {
  const [error, setError] = useState<unknown>(null);
  const [what, setWhat] = useState(agent === undefined ? "" : "agent");
  const [idempotencyKey] = useState(() => crypto.getRandomValues(new Uint32Array(4)).join("-"));
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const { reason = "", selected, hours = "" } = readFormValues(form);
    const body = {
      reason,
      ...(what === "" ? {} : { [what]: selected }),
      ...(hours === "" ? {} : { until: new Date(Date.now() + Number(hours) * HOUR).toISOString() }),
    };
    try {
      await request("POST /v1/stop", { body, headers: { "idempotency-key": idempotencyKey } });
      onDone();
    } catch (refusal) {
      setError(refusal);
    }
  };
  return (
    <Dialog title="Stop decisions?" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <p>
          Takes effect at once, in every process: submissions are denied, and nothing is approved or started, whatever
          the policies say. Pending requests stay pending, and their time runs on. Actions that are running continue.
        </p>
        <Field name="what" label="What">
          <select id="what" value={what} onChange={(event) => setWhat(event.currentTarget.value)}>
            <option value="">Everything</option>
            <option value="agent">Actions of some agents</option>
            <option value="tool">Actions with some tools</option>
            <option value="policy">Decisions of one policy</option>
          </select>
        </Field>
        {what === "" ? null : (
          <Field
            key={what}
            name="selected"
            label={SELECTED[what] ?? ""}
            help={what === "policy" ? "Its name." : "A name, or a pattern: * matches anything."}
            error={error}
            defaultValue={what === "agent" ? (agent ?? "") : ""}
            required
            maxLength={256}
          />
        )}
        <Field name="hours" label="Ends">
          <select id="hours" name="hours">
            <option value="">When it is lifted</option>
            <option value="1">After an hour</option>
            <option value="24">After a day</option>
          </select>
        </Field>
        <Field
          name="reason"
          label="Reason"
          help="Recorded in the ledger, and sent to the notification channels."
          error={error}
          required
          maxLength={500}
        />
        <ErrorNotice error={error} />
        <FormButtons look="danger" onClose={onClose}>
          {what === "" ? "Stop everything" : "Stop this"}
        </FormButtons>
      </form>
    </Dialog>
  );
}

function Lift({ stop, onClose, onDone }: { stop: Stop; onClose: () => void; onDone: () => void }) {
  const [error, setError] = useState<unknown>(null);
  const { needed, asked } = stop.lift;
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const { reason = "" } = readFormValues(form);
    try {
      await request("POST /v1/stop/{id}/lift", { path: [stop.id], body: reason === "" ? {} : { reason } });
      onDone();
    } catch (refusal) {
      setError(refusal);
    }
  };
  return (
    <Dialog title="Lift this stop?" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <p>
          <strong>
            <Cover stop={stop} />
          </strong>
          {stop.reason === null ? null : (
            <>
              : <MarkedValue value={stop.reason} />
            </>
          )}
        </p>
        <p>
          {needed === 1
            ? "Pending requests that have not expired continue immediately."
            : `Lifting it requires ${formatCounted(needed, "person", "people")}; ${asked.length === 0 ? "no one has requested it yet" : `${asked.length} requested it so far`}. The stop stays active until then.`}
        </p>
        <Field name="reason" label="Reason" help="Recorded in the ledger." error={error} maxLength={500} />
        <ErrorNotice error={error} />
        <FormButtons onClose={onClose}>{needed === 1 ? "Lift it" : "Ask to lift it"}</FormButtons>
      </form>
    </Dialog>
  );
}

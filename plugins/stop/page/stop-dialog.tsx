/** The dialog that places a stop. */
import { useState } from "preact/hooks";
import { Dialog, ErrorNotice, Field, FormButtons, readFormValues, request, useSubmit } from "../../console/app/kit.ts";
import { refreshStops } from "./active-stops.ts";

const HOUR = 3_600_000;
const SELECTED: Readonly<Record<string, string>> = { agent: "Agents", tool: "Tools", policy: "Policy" };

/** @param props.agent initial value of the agent field */
export function StopDialog({ agent, onClose }: { agent?: string; onClose(): void }) {
  const [what, setWhat] = useState(agent === undefined ? "" : "agent");
  const [idempotencyKey] = useState(() => crypto.getRandomValues(new Uint32Array(4)).join("-"));
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { reason = "", selected, hours = "" } = readFormValues(form);
    const body = {
      reason,
      ...(what === "" ? {} : { [what]: selected }),
      ...(hours === "" ? {} : { until: new Date(Date.now() + Number(hours) * HOUR).toISOString() }),
    };
    await request("POST /v1/stop", { body, headers: { "idempotency-key": idempotencyKey } });
    refreshStops();
    onClose();
  });
  return (
    <Dialog title="Stop decisions?" onClose={onClose}>
      <form onSubmit={submit}>
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
        <FormButtons look="danger" isDisabled={isBusy} onClose={onClose}>
          {what === "" ? "Stop everything" : "Stop this"}
        </FormButtons>
      </form>
    </Dialog>
  );
}

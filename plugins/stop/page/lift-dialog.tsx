/** The dialog that lifts a stop. */
import { useState } from "preact/hooks";
import {
  Dialog,
  ErrorNotice,
  Field,
  formatCounted,
  FormButtons,
  MarkedValue,
  readFormValues,
  request,
} from "../../console/app/kit.ts";
import type { Stop } from "./api-types.ts";
import { StopCover } from "./stop-cover.tsx";

export function LiftDialog({ stop, onClose, onDone }: { stop: Stop; onClose(): void; onDone(): void }) {
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
            <StopCover stop={stop} />
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

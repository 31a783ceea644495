/** The dialog that lifts a stop. */
import {
  Dialog,
  ErrorNotice,
  Field,
  formatCounted,
  FormButtons,
  MarkedValue,
  readFormValues,
  request,
  useSubmit,
} from "../../console/app/kit.ts";
import type { Stop } from "./api-types.ts";
import { StopCover } from "./stop-cover.tsx";

export function LiftDialog({ stop, onClose, onDone }: { stop: Stop; onClose(): void; onDone(): void }) {
  const { needed, asked } = stop.lift;
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { reason = "" } = readFormValues(form);
    await request("POST /v1/stop/{id}/lift", { path: [stop.id], body: reason === "" ? {} : { reason } });
    onDone();
  });
  return (
    <Dialog title="Lift this stop?" onClose={onClose}>
      <form onSubmit={submit}>
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
        <FormButtons isDisabled={isBusy} onClose={onClose}>
          {needed === 1 ? "Lift it" : "Ask to lift it"}
        </FormButtons>
      </form>
    </Dialog>
  );
}

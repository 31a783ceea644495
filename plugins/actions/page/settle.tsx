/** Records what happened to an action whose outcome is unknown. */
import { useState } from "preact/hooks";
import {
  type Action,
  Dialog,
  ErrorNotice,
  Field,
  FormButtons,
  Notice,
  readFormValues,
  request,
  useSubmit,
} from "../../console/app/kit.ts";

const TEXTS = {
  unknown: "No result was reported in time, so it is unknown whether the action had its effect.",
  button: "Record what happened…",
  title: "Record what happened",
  succeeded: "It had its effect",
  failed: "It had no effect",
  reason: "How do you know?",
  reasonHelp: "Recorded in the ledger.",
  save: "Record it",
} as const;

export function SettleOutcome({ action, onChanged }: { action: Action; onChanged(): void }) {
  const [isOpen, setOpen] = useState(false);
  if (action.status !== "unknown") return null;
  return (
    <>
      <Notice kind="busy">
        {TEXTS.unknown}{" "}
        <button type="button" class="small" onClick={() => setOpen(true)}>
          {TEXTS.button}
        </button>
      </Notice>
      {isOpen ? (
        <SettleDialog
          id={action.id}
          onClose={() => setOpen(false)}
          onDone={() => {
            setOpen(false);
            onChanged();
          }}
        />
      ) : null}
    </>
  );
}

function SettleDialog({ id, onClose, onDone }: { id: string; onClose(): void; onDone(): void }) {
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { outcome, reason = "" } = readFormValues(form);
    await request("POST /v1/actions/{id}/settle", { path: [id], body: { success: outcome === "succeeded", reason } });
    onDone();
  });
  return (
    <Dialog title={TEXTS.title} onClose={onClose}>
      <form onSubmit={submit}>
        {(["succeeded", "failed"] as const).map((outcome) => (
          <label key={outcome} class="check">
            <input type="radio" name="outcome" value={outcome} required /> {TEXTS[outcome]}
          </label>
        ))}
        <Field name="reason" label={TEXTS.reason} help={TEXTS.reasonHelp} error={error} maxLength={2000} required />
        <ErrorNotice error={error} />
        <FormButtons isDisabled={isBusy} onClose={onClose}>
          {TEXTS.save}
        </FormButtons>
      </form>
    </Dialog>
  );
}

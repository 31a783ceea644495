/** The button with which a person flags an action that a standing permission allowed without a vote. */
import { useState } from "preact/hooks";
import { hasScope } from "../core/me.ts";
import { Dialog } from "./dialog.tsx";
import { ErrorNotice, MarkedValue } from "./elements.tsx";
import { Field, FormButtons, readFormValues, useSubmit } from "./forms.tsx";

interface Props {
  texts: { button: string; title: string; help: string };
  /** Name of the permission. */
  name: string;
  /** Sends the flag. */
  flag(reason: string): Promise<void>;
}

/** Renders nothing unless the credential may flag. */
export function FlagUse({ texts, name, flag }: Props) {
  const [isFlagging, setFlagging] = useState(false);
  const { error, isBusy, submit } = useSubmit(async (form) => {
    await flag(readFormValues(form)["reason"] ?? "");
    setFlagging(false);
  });
  const close = (): void => setFlagging(false);
  if (!hasScope("approvals:decide")) return null;
  return (
    <>
      <button type="button" class="danger" onClick={() => setFlagging(true)}>
        {texts.button}
      </button>
      {isFlagging ? (
        <Dialog title={texts.title} onClose={close}>
          <form onSubmit={submit}>
            <p>
              <strong>
                <MarkedValue value={name} />
              </strong>
              : {texts.help}
            </p>
            <Field name="reason" label="Reason" help="Recorded in the ledger." error={error} maxLength={500} required />
            <ErrorNotice error={error} />
            <FormButtons look="danger" isDisabled={isBusy} onClose={close}>
              Flag
            </FormButtons>
          </form>
        </Dialog>
      ) : null}
    </>
  );
}

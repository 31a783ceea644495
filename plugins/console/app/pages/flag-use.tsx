/** Flags an action that a grant or a suggested rule allowed. A flag ends the grant or reverts the rule. */
import { useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { request } from "../core/api.ts";
import { hasScope } from "../core/me.ts";
import type { ActionEvent } from "../ui/action-history.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorNotice, MarkedValue } from "../ui/elements.tsx";
import { Field, FormButtons, useSubmit, readFormValues } from "../ui/forms.tsx";

const TEXTS = {
  grant: {
    button: "Flag this use of the grant…",
    title: "Flag this use of the grant?",
    help: "The action should not have been covered. The grant ends, so later actions require approval again.",
    done: "The use is flagged, and the grant has ended.",
  },
  rule: {
    button: "Flag this use of the suggested rule…",
    title: "Flag this use of the suggested rule?",
    help: "The action should not have been allowed. The rule reverts: its actions require approval again, until a person restores it.",
    done: "The use is flagged, and the rule is reverted.",
  },
} as const;

/** The grant (by its id) or the suggested policy (by its name) that allowed the action. */
interface AllowanceSource {
  by: "grant" | "rule";
  name: string;
}

/** Returns the grant or the suggested policies that allowed the action without a vote. */
function findAllowed(action: Action, events: readonly ActionEvent[]): AllowanceSource[] {
  const policies = events.flatMap(({ entry }) => {
    const { facts } = entry as { facts?: { suggested?: readonly string[] } };
    return facts?.suggested ?? [];
  });
  return [
    ...(action.grant === null ? [] : [{ by: "grant", name: action.grant } as const]),
    ...[...new Set(policies)].map((name) => ({ by: "rule", name }) as const),
  ];
}

interface Props {
  action: Action;
  events: readonly ActionEvent[];
  /** Receives the message to display. */
  onFlagged(message: string): void;
}

export function FlagUse({ action, events, onFlagged }: Props) {
  const [flagging, setFlagging] = useState<AllowanceSource | null>(null);
  const allowed = findAllowed(action, events);
  if (allowed.length === 0 || !hasScope("approvals:decide")) return null;
  return (
    <p class="row">
      {allowed.map((each) => (
        <button key={`${each.by} ${each.name}`} type="button" class="danger" onClick={() => setFlagging(each)}>
          {TEXTS[each.by].button}
        </button>
      ))}
      {flagging === null ? null : (
        <FlagDialog
          action={action}
          allowed={flagging}
          onClose={() => setFlagging(null)}
          onDone={() => {
            setFlagging(null);
            onFlagged(TEXTS[flagging.by].done);
          }}
        />
      )}
    </p>
  );
}

interface DialogProps {
  action: Action;
  allowed: AllowanceSource;
  onClose(): void;
  onDone(): void;
}

function FlagDialog({ action, allowed: { by, name }, onClose, onDone }: DialogProps) {
  const { title, help } = TEXTS[by];
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const body = { action_id: action.id, reason: readFormValues(form)["reason"] ?? "" };
    if (by === "grant") await request("POST /v1/grants/{id}/flag", { path: [name], body });
    else await request("POST /v1/suggested-rules/{policy}/flag", { path: [name], body });
    onDone();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          <strong>
            <MarkedValue value={name} />
          </strong>
          : {help}
        </p>
        <Field name="reason" label="Reason" help="Recorded in the ledger." error={error} maxLength={500} required />
        <ErrorNotice error={error} />
        <FormButtons look="danger" isDisabled={isBusy} onClose={onClose}>
          Flag
        </FormButtons>
      </form>
    </Dialog>
  );
}

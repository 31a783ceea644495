/** The dialogs that deactivate a user, and reactivate a deactivated user. */
import {
  currentMe,
  Dialog,
  ErrorNotice,
  Field,
  formatCounted,
  FormButtons,
  MarkedValue,
  Notice,
  readFormValues,
  request,
  useSubmit,
} from "../../console/app/kit.ts";
import type { UserDetails } from "./api-types.ts";

interface Props {
  user: UserDetails;
  onClose(): void;
  onDone(text: string): void;
}

export function DeactivateUserDialog({ user: { id, name }, onClose, onDone }: Props) {
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { reason = "" } = readFormValues(form);
    const body = reason === "" ? {} : { reason };
    const { revoked_keys } = await request("POST /v1/users/{id}/end", { path: [id], body });
    const keys = revoked_keys.length === 0 ? "" : ` ${formatCounted(revoked_keys.length, "key")} revoked.`;
    onDone(`${name} was deactivated.${keys}`);
  });
  return (
    <Dialog title="Deactivate this user?" onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          <strong>
            <MarkedValue value={name} />
          </strong>{" "}
          can no longer sign in, from now on and in every process. This ends their sessions, grants and delegations,
          revokes the keys that they created or own, agents’ keys included, and cancels the actions that were submitted
          with these keys and have not started.
        </p>
        {currentMe()?.principal === `user:${id}` ? (
          <Notice kind="bad">This is you: you will be signed out.</Notice>
        ) : null}
        <Field name="reason" label="Reason" help="Recorded in the ledger; optional." error={error} maxLength={1000} />
        <ErrorNotice error={error} />
        <FormButtons look="danger" isDisabled={isBusy} onClose={onClose}>
          Deactivate the user
        </FormButtons>
      </form>
    </Dialog>
  );
}

export function ReactivateUserDialog({ user: { id, name }, onClose, onDone }: Props) {
  const { error, isBusy, submit } = useSubmit(async () => {
    await request("POST /v1/users/{id}/resume", { path: [id] });
    onDone(`${name} can sign in again.`);
  });
  return (
    <Dialog title="Reactivate this user?" onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          <strong>
            <MarkedValue value={name} />
          </strong>{" "}
          can sign in again with the roles and groups that they had. Their sessions, keys and grants stay ended.
        </p>
        <ErrorNotice error={error} />
        <FormButtons isDisabled={isBusy} onClose={onClose}>
          Reactivate
        </FormButtons>
      </form>
    </Dialog>
  );
}

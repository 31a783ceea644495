/** The dialog that revokes a key, and displays the consequences. */
import {
  Ago,
  Dialog,
  ErrorNotice,
  FormButtons,
  MarkedValue,
  Notice,
  request,
  useSubmit,
} from "../../console/app/kit.ts";
import type { ApiKey } from "./api-types.ts";
import { isOwnKey } from "./own-key.ts";
import { useScopes } from "./scopes.ts";
import { TEXTS } from "./strings.ts";

export function RevokeKeyDialog({ apiKey, onClose, onDone }: { apiKey: ApiKey; onClose(): void; onDone(): void }) {
  const { id, name, prefix, owner, agent_id, scopes, last_used_at } = apiKey;
  const meanings = useScopes();
  const { error, isBusy, submit } = useSubmit(async () => {
    await request("DELETE /v1/api-keys/{id}", { path: [id] });
    onDone();
  });
  return (
    <Dialog title={TEXTS.revokeTitle} onClose={onClose} hotkey={false}>
      <form onSubmit={submit}>
        <p>
          <strong>
            <MarkedValue value={name} />
          </strong>{" "}
          <code>{prefix}…</code>
          {owner === null ? null : (
            <>
              {" "}
              of <MarkedValue value={owner} />
            </>
          )}
          {last_used_at === null ? (
            ", never used"
          ) : (
            <>
              , last used <Ago at={last_used_at} />
            </>
          )}
        </p>
        <p>
          From the next request on, its holder can no longer do this
          {agent_id === null ? null : (
            <>
              {" "}
              as{" "}
              <strong>
                <MarkedValue value={agent_id} />
              </strong>
            </>
          )}
          :
        </p>
        <ul>
          {scopes.map((scope) => (
            <li key={scope}>{meanings[scope] ?? scope}</li>
          ))}
        </ul>
        <p>{TEXTS.revokeHelp}</p>
        {isOwnKey(apiKey) ? <Notice kind="bad">{TEXTS.revokeOwn}</Notice> : null}
        <ErrorNotice error={error} />
        <FormButtons look="danger" isDisabled={isBusy} cancel="Keep it" focusCancel onClose={onClose}>
          Revoke
        </FormButtons>
      </form>
    </Dialog>
  );
}

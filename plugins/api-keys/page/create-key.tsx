/** The dialog that creates a key, and the key's value, which is displayed once. */
import { useEffect, useRef, useState } from "preact/hooks";
import {
  type Api,
  Checklist,
  CopyButton,
  Dialog,
  ErrorNotice,
  Field,
  FormButtons,
  Hash,
  hasScope,
  isUserSession,
  MarkedValue,
  Notice,
  readFormValues,
  renderPlain,
  request,
  useLoad,
  useSubmit,
} from "../../console/app/kit.ts";
import { type KeyScope, useScopes } from "./scopes.ts";
import { type KeyPreset, PRESETS, TEXTS } from "./strings.ts";

export type CreatedKey = Api["POST /v1/api-keys"]["response"];

export function CreateKeyDialog({ onClose, onCreated }: { onClose(): void; onCreated(created: CreatedKey): void }) {
  const [preset, setPreset] = useState<KeyPreset | "">("approver");
  const scopes = useScopes();
  const isUser = isUserSession();
  const { data: users } = useLoad(
    async (signal) =>
      isUser && ["users:read", "users:manage"].some(hasScope)
        ? request("GET /v1/users", { query: { status: "live", limit: 1000 }, signal })
        : null,
    [],
  );
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { name = "", agent_id = "", owner = "", expires_at = "" } = readFormValues(form);
    const fields = new FormData(form);
    const chosen = fields.getAll("scopes") as KeyScope[];
    const isShared = fields.has("shared");
    const body = {
      name,
      ...(preset === "" ? { scopes: chosen } : { preset }),
      agent_id: agent_id === "" ? null : agent_id,
      // If `owner` is omitted, a key that a signed-in user creates belongs to that user.
      ...(isShared ? { owner: null } : owner === "" ? {} : { owner }),
      expires_at: expires_at === "" ? null : new Date(expires_at).toISOString(),
    };
    onCreated(await request("POST /v1/api-keys", { body }));
  });
  return (
    <Dialog title={TEXTS.newTitle} onClose={onClose}>
      <form onSubmit={submit}>
        <Field name="name" label="Name" help={TEXTS.help.name} error={error} required maxLength={100} />
        <Field name="preset" label={TEXTS.preset}>
          <select
            id="preset"
            value={preset}
            onChange={(event) => setPreset(event.currentTarget.value as KeyPreset | "")}
          >
            {Object.entries(PRESETS).map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
            <option value="">{TEXTS.eachScope}</option>
          </select>
        </Field>
        {preset === "" ? <Checklist legend="Scopes" name="scopes" options={scopes} /> : null}
        <Field name="agent_id" label="Agent" help={TEXTS.help.agent_id} error={error} maxLength={256} />
        <Field
          name="owner"
          label="Owner"
          help={TEXTS.help.owner(isUser)}
          error={error}
          maxLength={1000}
          list="owners"
        />
        <datalist id="owners">
          {(users?.users ?? []).map(({ principal, name }: { principal: string; name: string }) => (
            <option key={principal} value={principal} label={renderPlain(name)} />
          ))}
        </datalist>
        {isUser ? (
          <label class="check">
            <input type="checkbox" name="shared" /> {TEXTS.shared}
          </label>
        ) : null}
        <Field name="expires_at" label="Ends" help={TEXTS.help.expires_at} error={error} type="datetime-local" />
        <ErrorNotice error={error} />
        <FormButtons isDisabled={isBusy} onClose={onClose}>
          {TEXTS.submit}
        </FormButtons>
      </form>
    </Dialog>
  );
}

export function NewKey({ created: { name, key: value, warnings }, onDone }: { created: CreatedKey; onDone(): void }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <section class="card made" aria-labelledby="made">
      <h2 id="made" tabIndex={-1} ref={heading}>
        The key “<MarkedValue value={name} />”
      </h2>
      <p>{TEXTS.once}</p>
      <p>
        <Hash value={value ?? ""} />
      </p>
      {warnings.map((warning) => (
        <Notice key={warning} kind="busy">
          <MarkedValue value={warning} />
        </Notice>
      ))}
      <div class="row">
        <CopyButton value={value ?? ""} label="Copy the key" />
        <button type="button" onClick={onDone}>
          I have it
        </button>
      </div>
    </section>
  );
}

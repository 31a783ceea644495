/** The dialog in which a user lets another approver vote on their behalf. */
import { useState } from "preact/hooks";
import {
  Dialog,
  ErrorNotice,
  Field,
  formatTime,
  Loading,
  readFormValues,
  renderPlain,
  request,
  serviceNow,
  splitList,
  toLocalInput,
  useLoad,
  useSubmit,
} from "../../console/app/kit.ts";

const WEEK_MS = 7 * 86_400_000;
const TEXTS = {
  title: "Delegate your approvals",
  nobody: "There is no other approver. An admin can give someone the role.",
  until: "At most 90 days. It ends earlier if either of you revokes it.",
  starts: "Empty: now.",
  globs: "Globs, separated by spaces. Empty: all.",
} as const;

interface Delegate {
  id: string;
  name: string;
}

/** @param props.user id of the signed-in user */
export function DelegateDialog({
  user,
  onClose,
  onDone,
}: {
  user: string;
  onClose(): void;
  onDone(text: string): void;
}) {
  const { data, error: loadError, reload } = useLoad((signal) => loadDelegates(user, signal), [user]);
  const [isLimited, setLimited] = useState(false);
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const body = readForm(form, isLimited);
    const { to, until } = await request("POST /v1/users/{id}/delegations", { path: [user], body });
    onDone(`${to.name} can approve on your behalf until ${formatTime(until)}.`);
  });
  return (
    <Dialog title={TEXTS.title} onClose={onClose}>
      <ErrorNotice error={loadError} onRetry={reload} />
      {data === null ? (
        loadError === null ? (
          <Loading what="approvers" />
        ) : null
      ) : data.delegates.length === 0 ? (
        <p>{TEXTS.nobody}</p>
      ) : (
        <form id="delegate" onSubmit={submit}>
          <Field name="to" label="Who approves on your behalf" error={error}>
            <select id="to" name="to" required data-focus="">
              <option value="">Choose an approver</option>
              {data.delegates.map((each) => (
                <option key={each.id} value={each.id}>
                  {optionLabel(each, data.delegates)}
                </option>
              ))}
            </select>
          </Field>
          <Field
            name="until"
            label="Until"
            type="datetime-local"
            help={TEXTS.until}
            error={error}
            defaultValue={toLocalInput(serviceNow() + WEEK_MS)}
            required
          />
          <Field name="starts_at" label="From" type="datetime-local" help={TEXTS.starts} error={error} />
          <label class="check">
            <input type="checkbox" checked={isLimited} onChange={(event) => setLimited(event.currentTarget.checked)} />{" "}
            Only some of what I can approve
          </label>
          {isLimited ? <Limits groups={data.groups} error={error} /> : null}
          <Field
            name="comment"
            label="Comment"
            help="Recorded in the ledger; optional."
            error={error}
            maxLength={1000}
          />
          <ErrorNotice error={error} />
        </form>
      )}
      <div class="row end">
        {data !== null && data.delegates.length > 0 ? (
          <button type="submit" form="delegate" class="primary" disabled={isBusy}>
            Delegate
          </button>
        ) : null}
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

function Limits({ groups, error }: { groups: readonly string[]; error: unknown }) {
  return (
    <>
      {groups.length === 0 ? null : (
        <fieldset>
          <legend>Groups that the votes count for</legend>
          <p class="quiet">None chosen: all of yours.</p>
          <div class="checks">
            {groups.map((group) => (
              <label key={group} class="check">
                <input type="checkbox" name="groups" value={group} /> {renderPlain(group)}
              </label>
            ))}
          </div>
        </fieldset>
      )}
      <Field name="agents" label="Agents" help={TEXTS.globs} error={error} />
      <Field name="tools" label="Tools" help={TEXTS.globs} error={error} />
    </>
  );
}

async function loadDelegates(user: string, signal: AbortSignal) {
  const delegates: Delegate[] = [];
  let cursor: string | undefined;
  for (;;) {
    const query = { limit: 1000, ...(cursor === undefined ? {} : { cursor }) };
    const page = await request("GET /v1/users/{id}/delegates", { path: [user], query, signal });
    delegates.push(...page.delegates);
    if (page.next_cursor === null) {
      delegates.sort((a, b) => a.name.localeCompare(b.name));
      return { delegates, groups: page.groups };
    }
    cursor = page.next_cursor;
  }
}

/** Returns the label of a user in the list. Adds the id if several users have the same name. */
function optionLabel({ id, name }: Delegate, all: readonly Delegate[]): string {
  const isUnique = all.filter((other) => renderPlain(other.name) === renderPlain(name)).length === 1;
  return isUnique ? renderPlain(name) : `${renderPlain(name)} (…${id.slice(-6)})`;
}

/** Reads the form. Throws RangeError for a time that the browser cannot parse. */
function readForm(form: HTMLFormElement, isLimited: boolean) {
  const { to = "", until = "", starts_at = "", agents = "", tools = "", comment = "" } = readFormValues(form);
  const groups = new FormData(form).getAll("groups").map(String);
  const limits = {
    ...(groups.length === 0 ? {} : { groups }),
    ...(agents === "" ? {} : { agents: splitList(agents) }),
    ...(tools === "" ? {} : { tools: splitList(tools) }),
  };
  return {
    to,
    until: toRfc3339(until),
    ...(starts_at === "" ? {} : { starts_at: toRfc3339(starts_at) }),
    ...(isLimited ? limits : {}),
    ...(comment === "" ? {} : { comment }),
  };
}

function toRfc3339(local: string): string {
  const time = new Date(local);
  if (Number.isNaN(time.getTime())) throw new RangeError(`"${local}" is not a valid time; choose a day and a time`);
  return time.toISOString();
}

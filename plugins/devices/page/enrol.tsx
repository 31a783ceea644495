/** The page that `assent devices enrol` links to: a person types the code that the machine shows. */
import {
  ErrorNotice,
  Field,
  isUserSession,
  MarkedValue,
  Notice,
  Page,
  readFormValues,
  request,
  ResultNotice,
  useState,
  useSubmit,
} from "../../console/app/kit.ts";

const TEXTS = {
  title: "Enrol a machine",
  help: "Confirm only if you just ran “assent devices enrol” on this machine yourself. It gets an API key that belongs to you, with which agents on it can ask for decisions. The key cannot vote.",
  code: "Code that the machine shows",
  confirm: "Enrol",
  done: "The machine gets its key now. You can close this page.",
  session: "Sign in as a person to enrol a machine. An API key cannot.",
  broken: "The link is not complete. Copy the whole link that the command printed.",
} as const;

export function EnrolDevice({ query }: { query: URLSearchParams }) {
  const [isDone, setDone] = useState(false);
  const [challenge, id, name, platform] = ["challenge", "id", "name", "platform"].map(
    (each) => query.get(each) ?? "",
  ) as [string, string, string, string];
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { code = "" } = readFormValues(form);
    await request("POST /v1/devices/confirm", { body: { challenge, code, machine: { id, name, platform } } });
    setDone(true);
  });
  const isComplete = [challenge, id, name, platform].every((part) => part !== "");
  return (
    <Page title={TEXTS.title}>
      {!isUserSession() ? (
        <Notice kind="bad">{TEXTS.session}</Notice>
      ) : !isComplete ? (
        <Notice kind="bad">{TEXTS.broken}</Notice>
      ) : isDone ? (
        <ResultNotice text={TEXTS.done} />
      ) : (
        <form onSubmit={submit}>
          <p>
            <strong>
              <MarkedValue value={name} />
            </strong>{" "}
            (<MarkedValue value={platform} />)
          </p>
          <p>{TEXTS.help}</p>
          <Field name="code" label={TEXTS.code} required maxLength={20} />
          <ErrorNotice error={error} />
          <button type="submit" class="primary" disabled={isBusy}>
            {TEXTS.confirm}
          </button>
        </form>
      )}
    </Page>
  );
}

/** The console's sign-in page: the ways that features add, and a form for API keys. */
import { useEffect, useRef, useState } from "preact/hooks";
import { request } from "../core/api.ts";
import { storeMe } from "../core/me.ts";
import { hasPanels } from "../core/parts.ts";
import { signIn } from "../core/session.ts";
import { droppedVotes } from "../inbox/held-votes.ts";
import { ErrorNotice, Notice } from "../ui/elements.tsx";
import { formatCounted } from "../ui/format.ts";
import { Panels } from "../ui/panels.tsx";

/** @param props.why why the person was signed out; empty if they chose to sign out */
export function SignIn({ why }: { why: string }) {
  useEffect(() => {
    document.title = "Sign in · Assent";
  }, []);
  // If people cannot sign in to the service, an API key is the only way to sign in here.
  const [isKeyOpen, setKeyOpen] = useState(!hasPanels("sign-in"));
  return (
    <main class="sign-in">
      <h1>Assent</h1>
      <p class="quiet">Sign in to vote on requests and to see what agents do.</p>
      {why === "" ? null : <ErrorNotice error={new Error(`You were signed out: ${why}`)} />}
      {droppedVotes.value === 0 ? null : (
        <Notice kind="bad">
          {formatCounted(droppedVotes.value, "vote")} may not be recorded. Sign in and check the requests under
          Approvals.
        </Notice>
      )}
      <Panels place="sign-in" />
      {isKeyOpen ? (
        <KeyForm />
      ) : (
        <p>
          <button type="button" class="link" onClick={() => setKeyOpen(true)}>
            Use an API key
          </button>
        </p>
      )}
    </main>
  );
}

function KeyForm() {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = async (): Promise<void> => {
    const value = field.current?.value.trim() ?? "";
    setBusy(true);
    setError(null);
    try {
      // Headers accept printable ASCII only, and the error of fetch would not state this reason.
      if (!/^[\x21-\x7e]+$/.test(value))
        throw new Error("this is not an API key: a key starts with assent_ and has only letters, digits, - and _");
      storeMe(await request("GET /v1/me", { key: value }));
      signIn(value);
    } catch (refusal) {
      setError(refusal);
      setBusy(false);
      field.current?.focus();
    }
  };
  return (
    <form
      class="card"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <label for="key">API key</label>
      <input
        id="key"
        ref={field}
        type="password"
        autocomplete="off"
        spellcheck={false}
        required
        aria-describedby="key-help"
      />
      <p id="key-help" class="quiet">
        Stored for the tabs of this browser, until you close the last of them or sign out. You can see and do what the
        key's scopes permit.
      </p>
      <ErrorNotice error={error} />
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? "Signing in…" : "Sign in"}
      </button>
    </form>
  );
}

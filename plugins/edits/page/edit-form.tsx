/** The form with which an approver changes parameters of the open request, if its rules allow changes. */
import { type Action, ErrorNotice, listLeaves, request, useState } from "../../console/app/kit.ts";

type Editable = NonNullable<Action["approval_terms"]>["editable"][number];

export function EditForm({ action, onChanged }: { action: Action; onChanged(action: Action): void }) {
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { approval_terms: terms, approval_token: token } = action;
  const before = new Map(listLeaves(action.params, "params"));
  const editable = (terms?.editable ?? []).filter(({ path }) => before.has(path));
  if (editable.length === 0 || token === undefined) return null;
  const textOf = (path: string): string => {
    const value: unknown = JSON.parse(before.get(path) ?? '""');
    return typeof value === "string" ? value : String(value);
  };
  const changes = Object.fromEntries(
    editable.flatMap(({ path }) => {
      const text = values[path];
      if (text === undefined || text === textOf(path)) return [];
      return [[path, toValue(text, JSON.parse(before.get(path) ?? '""'))]];
    }),
  );
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      onChanged(await request("POST /v1/actions/{id}/edit", { path: [action.id], body: { token, changes } }));
      setValues({});
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <details class="edit">
      <summary>Change the request</summary>
      <form onSubmit={(event) => void send(event)}>
        <p class="quiet">This voids earlier votes, and someone else has to approve the changed request.</p>
        {editable.map(({ path, ...bounds }) => (
          <label key={path}>
            {path} <span class="quiet">{describeBounds(bounds)}</span>{" "}
            <input
              value={values[path] ?? textOf(path)}
              onInput={(event) => setValues({ ...values, [path]: event.currentTarget.value })}
            />
          </label>
        ))}{" "}
        <button type="submit" disabled={isBusy || Object.keys(changes).length === 0}>
          Change
        </button>
        <ErrorNotice error={error} />
      </form>
    </details>
  );
}

/** Returns the values that the rules accept, such as "from 1 to 100"; empty without bounds. */
function describeBounds({ min, max, one_of, max_length }: Omit<Editable, "path">): string {
  if (one_of !== undefined) return `one of ${one_of.map(String).join(", ")}`;
  if (max_length !== undefined) return `up to ${max_length} characters`;
  if (min !== undefined && max !== undefined) return `from ${min} to ${max}`;
  return min !== undefined ? `at least ${min}` : max !== undefined ? `at most ${max}` : "";
}

/** Returns the text as a value of the same type as `before`. The service rejects an invalid value. */
function toValue(text: string, before: unknown): string | number | boolean {
  if (typeof before === "number" && text.trim() !== "" && Number.isFinite(Number(text))) return Number(text);
  if (typeof before === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

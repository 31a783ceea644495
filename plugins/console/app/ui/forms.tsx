/** Form fields with their labels and errors. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ApiError } from "../core/api.ts";
import { MarkedValue } from "./elements.tsx";

/** Attributes that the console's forms set on an input. */
interface Input {
  type?: "text" | "password" | "number" | "email" | "date" | "datetime-local";
  value?: string;
  defaultValue?: string;
  placeholder?: string;
  required?: boolean;
  maxLength?: number;
  /** Id of a datalist with suggestions. */
  list?: string;
  onInput?: (event: InputEvent & { currentTarget: HTMLInputElement }) => void;
}

/**
 * Renders a field with its label.
 * @param props.name name of the field, unique on the page; equals the name of the member that an error refers to
 * @param props.error an `ApiError`; its messages about this member appear below the field
 */
export function Field({
  name,
  label,
  help,
  error,
  children,
  ...input
}: Input & { name: string; label: string; help?: string; error?: unknown; children?: ComponentChildren }) {
  const errors = (error instanceof ApiError ? error.errors : [])
    .filter(({ pointer }) => pointer === `/${name}` || pointer?.startsWith(`/${name}/`))
    .map(({ detail }) => detail);
  const described = [help === undefined ? "" : `${name}-help`, errors.length === 0 ? "" : `${name}-said`]
    .filter((id) => id !== "")
    .join(" ");
  return (
    <div class="field">
      <label for={name}>{label}</label>
      {children ?? (
        <input
          id={name}
          name={name}
          autocomplete="off"
          {...(described === "" ? {} : { "aria-describedby": described })}
          {...(errors.length > 0 ? { "aria-invalid": "true" as const } : {})}
          {...(input as object)}
        />
      )}
      {help === undefined ? null : (
        <span id={`${name}-help`} class="quiet">
          {help}
        </span>
      )}
      {errors.length === 0 ? null : (
        <span id={`${name}-said`} class="said">
          {errors.join("; ")}
        </span>
      )}
    </div>
  );
}

/** Renders a checkbox for each option, with an explanation unless it is empty. */
export function Checklist({
  legend,
  name,
  options,
  checked = [],
}: {
  legend: string;
  name: string;
  options: Readonly<Record<string, string>>;
  /** Options that are checked at first. */
  checked?: readonly string[];
}) {
  return (
    <fieldset>
      <legend>{legend}</legend>
      <div class="checks">
        {Object.entries(options).map(([option, meaning]) => (
          <label key={option} class="check">
            <input type="checkbox" name={name} value={option} defaultChecked={checked.includes(option)} />{" "}
            <code>
              <MarkedValue value={option} />
            </code>
            {meaning === "" ? null : (
              <>
                <br />
                <span class="quiet">{meaning}</span>
              </>
            )}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** Renders the buttons of a dialog's form: the first submits it, the second closes the dialog. */
export function FormButtons({
  look = "primary",
  isDisabled = false,
  cancel = "Cancel",
  focusCancel = false,
  onClose,
  children,
}: {
  look?: "primary" | "danger" | "";
  isDisabled?: boolean;
  cancel?: string;
  /** Whether the second button has the focus when the dialog opens. */
  focusCancel?: boolean;
  onClose(): void;
  children: ComponentChildren;
}) {
  return (
    <div class="row end">
      <button type="submit" class={look} disabled={isDisabled}>
        {children}
      </button>
      <button type="button" {...(focusCancel ? { "data-focus": "" } : {})} onClick={onClose}>
        {cancel}
      </button>
    </div>
  );
}

/** Returns the trimmed values of the form, keyed by field name. */
export function readFormValues(form: HTMLFormElement): Record<string, string> {
  return Object.fromEntries(
    [...new FormData(form)].map(([name, value]) => [name, typeof value === "string" ? value.trim() : ""]),
  );
}

/**
 * Returns the state of a form that sends one request. After a failure the form can be sent again. After a success it
 * stays busy, because its dialog closes.
 * @param send sends the form; rejects with the error to display
 */
export function useSubmit(send: (form: HTMLFormElement) => Promise<void>): {
  error: unknown;
  isBusy: boolean;
  submit(event: SubmitEvent & { currentTarget: HTMLFormElement }): void;
} {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const run = async (form: HTMLFormElement): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await send(form);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  const submit = (event: SubmitEvent & { currentTarget: HTMLFormElement }): void => {
    event.preventDefault();
    void run(event.currentTarget);
  };
  return { error, isBusy, submit };
}

/** The field that names a task, shown where a voter adds a grant to an approval. */
import { useId } from "preact/hooks";
import type { Places } from "../../console/app/kit.ts";

const TEXTS = {
  label: "Only for a task",
  placeholder: "such as release 2.4",
  help: "With a name, the approval starts a task of the agent. It ends at its time, when someone ends it, and at any rejection, flag or stop of the agent.",
} as const;
const MAX_TITLE = 100;

export function NameTask({ onName }: Places["grant-offer"]) {
  const help = useId();
  return (
    <>
      <label>
        {TEXTS.label}{" "}
        <input
          maxLength={MAX_TITLE}
          placeholder={TEXTS.placeholder}
          aria-describedby={help}
          onInput={({ currentTarget: { value } }) => onName(value.trim() === "" ? null : value.trim())}
        />
      </label>
      <p id={help} class="quiet">
        {TEXTS.help}
      </p>
    </>
  );
}

/** Lines to paste into a terminal or a file. */
import { CopyButton } from "./elements.tsx";

/** @param props.label what the lines do, such as "Submit an action with curl" */
export function Snippet({ label, text }: { label: string; text: string }) {
  return (
    <figure class="snippet">
      <figcaption>
        <span>{label}</span>
        <CopyButton value={text} />
      </figcaption>
      <pre class="data" tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
    </figure>
  );
}

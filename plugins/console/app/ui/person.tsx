/** Renders keys and people by their names. */
import { useEffect, useState } from "preact/hooks";
import { encodeSegment } from "../core/api.ts";
import { currentMe, nameOfKey, watchKeyNames } from "../core/me.ts";
import { hasPage } from "../core/parts.ts";
import { MarkedValue } from "./elements.tsx";

/** Renders the name of a key; its id if the name is unknown, and an ellipsis until the name is read. */
export function KeyName({ id }: { id: string }) {
  const [, redraw] = useState(0);
  useEffect(() => watchKeyNames(() => redraw((n) => n + 1)), []);
  const name = nameOfKey(id);
  if (name === null) return <code class="hash">{id}</code>;
  if (name === "") return <span class="quiet">…</span>;
  return (
    <span title={id}>
      <MarkedValue value={name} />
    </span>
  );
}

/** Renders a principal: the name of a user, or "the key laptop" for a key without an owner. */
export function PrincipalName({ principal }: { principal: string }) {
  if (principal.startsWith("user:")) return <KeyName id={principal.slice(5)} />;
  if (!principal.startsWith("key:")) return <MarkedValue value={principal} />;
  return (
    <>
      the key <KeyName id={principal.slice(4)} />
    </>
  );
}

/** Returns the address of the page about a principal; null if the principal is not a person, or has no page. */
export function personAddress(principal: string): string | null {
  return principal.startsWith("user:") && hasPage("people")
    ? `/#/people/${encodeSegment(principal.slice("user:".length))}`
    : null;
}

/** Renders a principal as a link to the page about the person. Renders plain text if no one is signed in. */
export function PersonLink({ principal }: { principal: string }) {
  const address = currentMe() === null ? null : personAddress(principal);
  return address === null ? (
    <PrincipalName principal={principal} />
  ) : (
    <a href={address}>
      <PrincipalName principal={principal} />
    </a>
  );
}

/** Keys and people by their names. */
import { useEffect, useState } from "preact/hooks";
import { nameOfKey, whenNamesCome } from "../core/me.ts";
import { Text } from "./elements.tsx";

/** Renders a key's name; its id if the name is unknown. */
export function Key({ id }: { id: string }) {
  const [, redraw] = useState(0);
  useEffect(() => whenNamesCome(() => redraw((n) => n + 1)), []);
  const name = nameOfKey(id);
  if (name === null) return <code class="hash">{id}</code>;
  return (
    <span title={id}>
      <Text value={name} />
    </span>
  );
}

/** Renders a principal: "ada" for owner:ada, the name of a user, "the key laptop" for a key without an owner. */
export function Who({ principal }: { principal: string }) {
  if (principal.startsWith("owner:")) return <Text value={principal.slice(6)} />;
  if (principal.startsWith("user:")) return <Key id={principal.slice(5)} />;
  if (!principal.startsWith("key:")) return <Text value={principal} />;
  return (
    <>
      the key <Key id={principal.slice(4)} />
    </>
  );
}

/** The history of the open request, which is read when it is expanded. */
import { useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { request } from "../core/api.ts";
import { Loading, ErrorNotice } from "../ui/elements.tsx";
import { useLoad } from "../ui/hooks.ts";
import { ActionHistory } from "./lazy-parts.tsx";
import { TEXTS } from "./strings.ts";

export function RequestHistory({ action }: { action: Pick<Action, "id" | "updated_at"> }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{TEXTS.history}</summary>
      {isOpen ? <LoadedHistory action={action} /> : null}
    </details>
  );
}

function LoadedHistory({ action: { id, updated_at } }: { action: Pick<Action, "id" | "updated_at"> }) {
  const { data, error, reload } = useLoad(
    (signal) => request("GET /v1/actions/{id}/events", { path: [id], signal }),
    [id, updated_at],
  );
  if (data === null)
    return error === null ? <Loading what="the history" /> : <ErrorNotice error={error} onRetry={reload} />;
  return <ActionHistory events={data.events} />;
}

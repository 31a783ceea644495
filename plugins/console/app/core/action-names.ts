/** Names of actions, for records that identify an action only by its id. */
import { signal } from "@preact/signals";
import { request } from "./api.ts";
import { hasScope } from "./me.ts";

/**
 * Previews such as `Refund 480 "EUR"`, or else names such as "stripe refund", keyed by the id of the action; null for an
 * action that is being read or is unknown.
 */
const names = signal<ReadonlyMap<string, string | null>>(new Map());

const store = (id: string, name: string | null): void => void (names.value = new Map(names.value).set(id, name));

/** Stores a name that a response contains, unless the preview is known. */
export function storeActionName(id: string, name: string): void {
  if ((names.peek().get(id) ?? null) === null) store(id, name);
}

/** Returns the name of the action. If it is not known yet, reads the action, and redraws the components that called it. */
export function nameOfAction(id: string): string | null {
  const name = names.value.get(id);
  if (name !== undefined) return name;
  if (!hasScope("actions:read")) return null;
  // Not while a component renders, because that would redraw it at once.
  queueMicrotask(() => {
    if (names.peek().has(id)) return;
    store(id, null);
    request("GET /v1/actions/{id}", { path: [id] }).then(
      ({ tool, operation, preview }) => store(id, preview || `${tool} ${operation}`),
      () => undefined,
    );
  });
  return null;
}

/**
 * Expires cached facts after a write: when the result of an action is recorded, the service reads again the facts whose
 * inputs contain a value of the request, and the facts that the policies read for the action. A result that this process
 * records takes effect with its response; one of another process, when this process reads its entry.
 */
import { type CoreHost, type ExecutionEntry, decodeEntry, type JsonValue, listFactCalls } from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { createEvaluation, readRequest } from "./prefetch-redecision.ts";

/** Expires the cached facts that the action may have changed. Does not reject, because the result is recorded. */
export async function expireFactsAfter(host: CoreHost, row: ActionRow): Promise<void> {
  if (host.factSources.list().length === 0) return;
  const request = readRequest(row);
  const subjects = request === null ? [] : listSubjects([request.params, request.context]);
  // Expire by value first, because the calls below need a read of the store.
  host.factSources.expire([], subjects);
  try {
    const evaluation = await createEvaluation(host, row);
    if (evaluation === null) return;
    const calls = listFactCalls(evaluation).flatMap((call) => call ?? []);
    host.factSources.expire(calls, []);
  } catch (error) {
    host.log.error("some cached facts could not be expired after a result", { action: row.id, error: String(error) });
  }
}

/** Returns the strings and numbers in a value. */
function listSubjects(value: JsonValue): (string | number)[] {
  if (typeof value === "string" || typeof value === "number") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(listSubjects);
}

/** Follows the results that other processes record. */
export function createFactWrites(host: CoreHost) {
  let unsubscribe: (() => void) | null = null;

  async function follow(actionId: string): Promise<void> {
    try {
      const row = await host.storage.action(actionId);
      if (row !== null) await expireFactsAfter(host, row);
    } catch (error) {
      host.log.error("the action of a result could not be read", { action: actionId, error: String(error) });
    }
  }

  return {
    start(): void {
      if (host.factSources.list().length === 0) return;
      unsubscribe = host.subscribe((entries) => {
        for (const { type, action_id, bytes } of entries)
          if (type === "execution" && action_id !== null && decodeEntry<ExecutionEntry>(bytes).phase === "result")
            void follow(action_id);
      });
    },
    stop(): void {
      unsubscribe?.();
    },
  };
}

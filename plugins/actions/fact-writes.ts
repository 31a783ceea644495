/**
 * Expires cached facts after a write, when the result of an action is recorded or overdue. It expires the facts that the
 * policies read for the action, and the facts with an input that equals a value of its request. The process that records
 * the result does so before it responds; other processes do so when they read the entry.
 */
import {
  type CoreHost,
  type ExecutionEntry,
  decodeEntry,
  type JsonValue,
  listFactCalls,
  MAX_FACT_INPUT,
} from "../../src/core.ts";
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

/** Returns the different strings and numbers in a value that can be an input of a fact. */
function listSubjects(value: JsonValue): (string | number)[] {
  const subjects = new Set<string | number>();
  const collect = (part: JsonValue): void => {
    if (typeof part === "number" || (typeof part === "string" && part.length <= MAX_FACT_INPUT)) subjects.add(part);
    else if (typeof part === "object" && part !== null) Object.values(part).forEach(collect);
  };
  collect(value);
  return [...subjects];
}

/** Follows the results that other processes record, and the actions whose result is overdue. */
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
          if (type === "execution" && action_id !== null && decodeEntry<ExecutionEntry>(bytes).phase !== "start")
            void follow(action_id);
      });
    },
    stop(): void {
      unsubscribe?.();
    },
  };
}

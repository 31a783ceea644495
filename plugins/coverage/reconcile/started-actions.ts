/** Reads the actions that were started around a window from the service. */
import { type JsonObject, parseRfc3339, toRfc3339 } from "../../../src/plugin.ts";
import type { StartedAction } from "./match-effects.ts";

/** Response of `GET /v1/coverage/executions`. */
interface ExecutionPage {
  executions: {
    action_id: string;
    phase: "start" | "no_result" | "result";
    at: string;
    success: boolean | null;
    tool: string;
    operation: string;
    params: JsonObject | null;
  }[];
  next_cursor: string | null;
}

type Call = <T>(method: string, path: string) => Promise<T>;

/**
 * Maximum run time of an action. An action whose result or effect is in the window started at most this long before the
 * window.
 */
const LONGEST_RUN_MS = 24 * 3_600_000;

/**
 * Returns the actions that may have run in the window: actions whose start or result was recorded between one day
 * before `from` and `to`. Both times are in milliseconds.
 */
export async function readStartedActions(call: Call, from: number, to: number): Promise<Map<string, StartedAction>> {
  const actions = new Map<string, StartedAction>();
  const query = `since=${toRfc3339(from - LONGEST_RUN_MS)}&until=${toRfc3339(to)}&limit=1000`;
  for (let cursor: string | null = null; ;) {
    const page: ExecutionPage = await call(
      "GET",
      `/v1/coverage/executions?${query}${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    for (const { action_id: id, phase, at, success, tool, operation, params } of page.executions) {
      const time = parseRfc3339(at) ?? 0;
      const before = actions.get(id);
      const isResult = phase === "result";
      actions.set(id, {
        id,
        tool,
        operation,
        params,
        // If the executions do not include the start, the action started before all of them.
        started_at: before?.started_at ?? (phase === "start" ? time : 0),
        // After `no_result`, the action explains no further effect: an agent that never reports a result could otherwise
        // use one decision again in each window. A late result replaces this end.
        ended_at: phase === "start" ? null : time,
        success: isResult ? success : (before?.success ?? null),
      });
    }
    cursor = page.next_cursor;
    if (cursor === null) return actions;
  }
}

/** Finds actions for the command palette. */
import { encodeSegment, request } from "../core/api.ts";
import type { FoundObject } from "../core/parts.ts";
import { renderPlain } from "../ui/format.ts";
import { describeRequest } from "../ui/request-view.tsx";

const MAX_ACTIONS = 5;

/** Returns the newest actions that contain all words of the text, or whose id begins with it. */
export async function findActions(text: string, signal: AbortSignal): Promise<FoundObject[]> {
  const { actions } = await request("GET /v1/actions", { query: { q: text, limit: MAX_ACTIONS }, signal });
  return actions.map((action) => ({
    address: `#/actions/${encodeSegment(action.id)}`,
    title: describeRequest(action),
    kind: `action of ${renderPlain(action.agent_id)}, ${action.status.replace("_", " ")}`,
  }));
}

/** Finds registered agents for the command palette. */
import { encodeSegment, type FoundObject, renderPlain, request } from "../../console/app/kit.ts";

/** Returns the agents whose id contains the text. */
export async function findAgents(text: string, signal: AbortSignal): Promise<FoundObject[]> {
  const { agents } = await request("GET /v1/agents", { query: { limit: 1000 }, signal });
  return agents
    .filter(({ id }) => id.toLowerCase().includes(text))
    .map(({ id }) => ({ address: `#/agents/${encodeSegment(id)}`, title: renderPlain(id), kind: "agent" }));
}

/** Finds the agent id with which the proxy submits calls. */
import { RequestRefused, type Assent } from "../../typescript/index.ts";

/**
 * Returns a function that resolves to the configured agent id, or else to the agent that the key is bound to. The
 * function fetches the id on first use and caches it. It repeats a failed fetch.
 */
export function createAgentIdResolver(assent: Assent, configured: string | undefined): () => Promise<string> {
  let pending: Promise<string> | null = configured === undefined ? null : Promise.resolve(configured);
  return () => {
    pending ??= fetchBoundAgentId(assent).catch((error: unknown) => {
      pending = null;
      throw error;
    });
    return pending;
  };
}

async function fetchBoundAgentId(assent: Assent): Promise<string> {
  const { key } = await assent.call<{ key?: { agent_id?: string | null } }>("GET", "/v1/me");
  const id = key?.agent_id;
  if (typeof id === "string") return id;
  throw new RequestRefused("the key is not bound to an agent: use a key that is bound to one, or set --agent", {
    status: 403,
    code: "AGENT_UNBOUND",
  });
}

/** Finds the agent id with which a proxy submits. */
import { RequestRefused, type Assent } from "./index.ts";

/**
 * Returns a function that resolves to the configured agent id, or else to the agent that the key is bound to. The
 * function fetches the id on first use and caches it. It repeats a failed fetch.
 * @param option name of the option that sets the agent id, for the error message if the key is bound to no agent
 */
export function createAgentIdResolver(
  assent: Assent,
  configured: string | undefined,
  option: string,
): () => Promise<string> {
  let pending: Promise<string> | null = configured === undefined ? null : Promise.resolve(configured);
  return () => {
    pending ??= fetchBoundAgentId(assent, option).catch((error: unknown) => {
      pending = null;
      throw error;
    });
    return pending;
  };
}

async function fetchBoundAgentId(assent: Assent, option: string): Promise<string> {
  const { key } = await assent.call<{ key?: { agent_id?: string | null } }>("GET", "/v1/me");
  const id = key?.agent_id;
  if (typeof id === "string") return id;
  throw new RequestRefused(`the key is not bound to an agent: use a key that is bound to one, or set ${option}`, {
    status: 403,
    code: "AGENT_UNBOUND",
  });
}

/** As whom calls are submitted. */
import { RequestRefused, type Assent } from "../../client/index.ts";

/** The agent that is configured, or the one that the key is bound to: asked for when it is needed, until it is known. */
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
  throw new RequestRefused("the key is bound to no agent: give the proxy one that is, or name the agent with --agent", {
    status: 403,
    code: "AGENT_UNBOUND",
  });
}

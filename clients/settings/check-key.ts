/** Checks that a client can reach the service and submit actions with its key. */
import { selectPrivileges } from "../../src/domain/scopes.ts";
import { AssentError, createAssent, type Assent } from "../typescript/index.ts";

/** Scope that lets a key request session tokens. */
const SESSION_SCOPE = "sessions:issue";

export interface KeyCheck {
  /** The agent for which the client submits; null if a fault makes it unknown. */
  agent: string | null;
  /** Faults of the configuration and of the key; empty if the client can use them. */
  faults: string[];
}

/**
 * Checks that the key can submit for one agent and has no other privileges. With `sessions`, the key must also be able
 * to request session tokens.
 */
export async function checkKey({
  url,
  apiKey,
  agent,
  sessions = false,
}: {
  url: string;
  apiKey: string;
  agent: string | null;
  sessions?: boolean;
}): Promise<KeyCheck> {
  let me: { key?: { agent_id?: unknown }; scopes?: unknown };
  try {
    me = await createCheckClient(url, apiKey).call("GET", "/v1/me");
  } catch (error) {
    const reason = error instanceof AssentError ? `${error.code}: ${error.message}` : String(error);
    if (error instanceof AssentError && error.status === 401)
      return { agent: null, faults: [`the service at ${url} does not accept this key (${reason})`] };
    return { agent: null, faults: [`${url} does not respond like the service: ${reason}`] };
  }
  const faults: string[] = [];
  const bound = typeof me.key?.agent_id === "string" ? me.key.agent_id : null;
  if (bound === null && agent === null)
    faults.push("the key is not bound to an agent; set `agent` in the hook's configuration");
  if (bound !== null && agent !== null && bound !== agent) faults.push(`the key is bound to ${bound}, not to ${agent}`);
  const scopes = Array.isArray(me.scopes) ? me.scopes.map(String) : [];
  if (sessions && !scopes.includes(SESSION_SCOPE))
    faults.push(`\`sessions\` is true, and the key lacks the scope ${SESSION_SCOPE}, so every call would be denied`);
  if (selectPrivileges(scopes).some((scope) => !sessions || scope !== SESSION_SCOPE))
    faults.push(
      "the key may do more than submit: an agent that reads it could approve its own calls or receive credentials; create a key with --preset agent",
    );
  return { agent: faults.length === 0 ? (bound ?? agent) : null, faults };
}

/** Request timeout in seconds. */
const TIMEOUT_SECONDS = 15;

export const createCheckClient = (url: string, apiKey: string, timeout = TIMEOUT_SECONDS): Assent =>
  createAssent({ url, apiKey, timeout, retries: 0 });

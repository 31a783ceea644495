/** Checks that the hook can reach the service and submit actions. Used to install and to diagnose hooks. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AssentError, createAssent, type ActionRequest, type Assent } from "../../typescript/index.ts";
import { selectPrivileges } from "../../../src/domain/scopes.ts";
import { toCanonicalAction } from "../action/canonical-action.ts";
import { loadConfig, type HookConfig } from "../hook-config.ts";
import type { Host } from "../hosts/answers.ts";
import type { JsonObject } from "../payload.ts";

/** Scope that lets a key request session tokens. */
const SESSION_SCOPE = "sessions:issue";

type Variables = Readonly<Record<string, string | undefined>>;

interface ConfigCheck {
  config: HookConfig | null;
  /** The agent for which the hook submits; null if a fault makes it unknown. */
  agent: string | null;
  /** Faults of the configuration and of the key; empty if the hook can use them. */
  faults: string[];
}

/** Reads the hook's configuration and checks its key with the service. */
export async function checkConfig(env: Variables): Promise<ConfigCheck> {
  let config: HookConfig;
  try {
    config = loadConfig(env);
  } catch (error) {
    return { config: null, agent: null, faults: [error instanceof Error ? error.message : String(error)] };
  }
  return { config, ...(await checkKey(config)) };
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
}: Pick<HookConfig, "url" | "apiKey" | "agent"> & { sessions?: boolean }): Promise<Omit<ConfigCheck, "config">> {
  let me: { key?: { agent_id?: unknown }; scopes?: unknown };
  try {
    me = await createCheckClient(url, apiKey).call("GET", "/v1/me");
  } catch (error) {
    const reason = error instanceof AssentError ? `${error.code}: ${error.message}` : String(error);
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
const TIMEOUT = 15;

export const createCheckClient = (url: string, apiKey: string, timeout = TIMEOUT): Assent =>
  createAssent({ url, apiKey, timeout, retries: 0 });

/** Returns typical calls of a coding agent. Every host's parser knows these tools by these names. */
export function typicalToolCalls(folder: string): Record<string, { tool: string; input: JsonObject }> {
  const file = join(folder, "README.md");
  return {
    Read: { tool: "Read", input: { file_path: file } },
    Edit: { tool: "Edit", input: { file_path: file, old_string: "a", new_string: "b" } },
    "git status": { tool: "Bash", input: { command: "git status" } },
  };
}

interface PolicyAnswer {
  call: string;
  decision: "allow" | "deny" | "require_approval";
  reason: string;
}

/** Returns the service's decisions on typical calls. Records nothing. */
export async function evaluateTypicalCalls(
  config: HookConfig,
  agent: string,
  host: Host,
  home: string | null,
): Promise<PolicyAnswer[]> {
  const assent = createCheckClient(config.url, config.apiKey);
  const answers: PolicyAnswer[] = [];
  for (const [call, request] of await typicalRequests(agent, host, home)) {
    const { decision, reason } = await assent.gate(request);
    // A null decision means that the rules allow the call, but a limit applies or obligations change the request.
    answers.push({ call, decision: decision ?? "allow", reason });
  }
  return answers;
}

/** Returns the requests that the hook would submit for typical calls, each with the name of its call. */
export async function typicalRequests(
  agent: string,
  host: Host,
  home: string | null,
): Promise<[call: string, request: ActionRequest][]> {
  // Use a separate folder, which does not have to exist. The working folder may be the home folder, which cannot be a
  // workspace.
  const folder = join(tmpdir(), "assent-hook-check");
  const environment = { cwd: folder, home, project: folder, codexProgram: null };
  const requests: [string, ActionRequest][] = [];
  for (const [call, { tool, input }] of Object.entries(typicalToolCalls(folder))) {
    // Skip this call: only a real Codex reports the folder of a command, so the hook would require approval here.
    if (host === "codex" && tool === "Bash") continue;
    const event = {
      host,
      kind: "before" as const,
      session: null,
      callId: null,
      tool,
      input,
      cwd: folder,
      workspace: folder,
      success: true,
      outcomeReported: false,
    };
    const { request } = await toCanonicalAction(event, agent, environment);
    requests.push([call, request]);
  }
  return requests;
}

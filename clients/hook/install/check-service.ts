/** Checks that the hook can reach the service and submit actions. Used to install and to diagnose hooks. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkKey, createCheckClient, type KeyCheck } from "../../settings/check-key.ts";
import type { ActionRequest } from "../../typescript/index.ts";
import { toCanonicalAction } from "../action/canonical-action.ts";
import { loadConfig, type HookConfig } from "../hook-config.ts";
import type { Host } from "../hosts/answers.ts";
import type { JsonObject } from "../payload.ts";

type Variables = Readonly<Record<string, string | undefined>>;

interface ConfigCheck extends KeyCheck {
  config: HookConfig | null;
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

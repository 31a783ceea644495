/** Runs the hook as its hosts do, in a separate process, against a running service. */
import { existsSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serve } from "../../src/serve/index.ts";
import { runProgram, type Run } from "./cli.ts";
import { NODE, scriptOf } from "./runtimes.ts";
import { approve, startService, type Service } from "./service.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { eventually } from "./wait.ts";

/** The bundled hook. It exists only where the tests run as built JavaScript. */
const WHOLE = scriptOf("clients/hook/bin").replace(/[jt]s$/, "cjs");
export const HOOK: readonly string[] = existsSync(WHOLE) ? [WHOLE] : [...NODE, scriptOf("clients/hook/bin")];

/** Denies shell commands that contain "denied", requires approval for "asked", and allows other shell commands. */
const HOOK_POLICY = `
policy: test
rules:
  - { name: denied, tool: shell, when: params.command.contains("denied"), effect: deny, reason: not this one }
  - { name: asked, tool: shell, when: params.command.contains("asked"), effect: require_approval, reason: somebody looks }
  - { name: allowed, tool: shell, effect: allow }
`;

export interface HookService {
  service: Service;
  url: string;
  /** API key of the agent "coder". */
  key: { id: string; value: string };
  /** Environment variables of the hook. Its state is stored in a temporary folder. */
  env: Record<string, string>;
  close(): Promise<void>;
}

/** Starts a service for the hook to call. @param policy YAML of the only policy */
export async function startHookService(policy = HOOK_POLICY): Promise<HookService> {
  const service = await startService({
    policy,
    change(config) {
      config.approvals.trust_key_makers = true;
    },
  });
  const listening = await serve((request, info) => service.runtime.fetch(request, info), {
    host: "127.0.0.1",
    port: 0,
  });
  const { body } = await service.call("POST", "/v1/api-keys", {
    key: service.admin,
    body: { name: "coder", preset: "agent", agent_id: "coder" },
  });
  const folder = temporaryFolder("assent-hook-state-");
  return {
    service,
    url: listening.url,
    key: { id: body.id as string, value: body.key as string },
    env: environment(folder, listening.url, body.key as string),
    async close() {
      await listening.stop(1000);
      await service.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export function environment(folder: string, url: string, key: string): Record<string, string> {
  return {
    ASSENT_URL: url,
    ASSENT_API_KEY: key,
    ASSENT_AGENT: "coder",
    ASSENT_HOOKD: "off",
    XDG_CONFIG_HOME: join(folder, "config"),
    XDG_STATE_HOME: join(folder, "state"),
    XDG_RUNTIME_DIR: join(folder, "run"),
    CLAUDE_PROJECT_DIR: "",
    GEMINI_PROJECT_DIR: "",
    CURSOR_PROJECT_DIR: "",
  };
}

export function runHook(host: string, input: string, env: Record<string, string>, args: string[] = []): Promise<Run> {
  return runProgram(process.execPath, [...HOOK, "--host", host, ...args], { env, input, cwd: tmpdir() });
}

/** Waits for an action that is pending approval, approves it and returns its id. */
export async function approveNext({ service }: HookService): Promise<string> {
  const id = await eventually(
    async () => {
      const { body } = await service.call("GET", "/v1/actions?status=pending_approval", { key: service.admin });
      return (body.actions as { id: string }[])[0]?.id;
    },
    () => "no action is pending",
  );
  await approve(service, id);
  return id;
}

/**
 * Coding agents as npm packages. They run offline against a fake model on loopback (`models.ts`).
 * @needs hook
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { CACHE } from "./cache.ts";
import type { Host } from "../../clients/hook/hosts/answers.ts";
import type { ModelCall, ModelDialect } from "./models.ts";

/** The command that starts an MCP server. */
export interface Started {
  command: string;
  args: readonly string[];
  env: Record<string, string>;
}

/** Settings files below the home folder, and extra arguments for the agent. */
export interface McpSettings {
  files: Record<string, unknown>;
  args?: string[];
}

export interface CodingAgent {
  host: Host;
  spec: string;
  model: ModelDialect;
  /** True for a large package that starts slowly. Its tests run only if ASSENT_TEST_SLOW is set. */
  slow?: true;
  /** Returns the command line. @param folder the `node_modules` folder that contains the package */
  program(folder: string): [program: string, args: string[]];
  args: string[];
  /** Other settings files that the agent needs, by path below the home folder. Values are strings or JSON. */
  files(url: string): Record<string, unknown>;
  env(url: string): Record<string, string>;
  shell(command: string): ModelCall;
  /** Returns the settings that register an MCP server under the name `notes`. */
  mcp(server: Started, url: string): McpSettings;
  /** Returns a call of a tool of the server `notes`. */
  tool(name: string, input: Record<string, unknown>): ModelCall;
}

const PLATFORM = `${process.platform}-${process.arch}`;

const openCode = (url: string): Record<string, unknown> => ({
  model: "own/m",
  small_model: "own/m",
  autoupdate: false,
  share: "disabled",
  permission: "allow",
  provider: {
    own: {
      npm: "@ai-sdk/anthropic",
      options: { baseURL: `${url}/v1`, apiKey: "none" },
      models: { m: { tool_call: true, limit: { context: 100_000, output: 4096 } } },
    },
  },
});
const gemini = {
  security: { auth: { selectedType: "gemini-api-key" } },
  general: { disableAutoUpdate: true },
  privacy: { usageStatisticsEnabled: false },
};
const codex = (url: string): string =>
  `model = "m"\nmodel_provider = "own"\n[model_providers.own]\nname = "own"\nbase_url = "${url}/v1"\nwire_api = "responses"\n`;

export const CODING_AGENTS: readonly CodingAgent[] = [
  {
    host: "claude-code",
    spec: "@anthropic-ai/claude-code@2.1.330",
    model: "messages",
    program: (folder) => [join(folder, `@anthropic-ai/claude-code-${PLATFORM}/claude`), []],
    args: ["-p", "go", "--allowedTools", "Bash,mcp__notes"],
    files: () => ({}),
    env: (url) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "none",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    }),
    shell: (command) => ({ name: "Bash", input: { command, description: "a step" } }),
    mcp: (notes) => ({ files: { "mcp.json": { mcpServers: { notes } } }, args: ["--mcp-config", "home/mcp.json"] }),
    tool: (name, input) => ({ name: `mcp__notes__${name}`, input }),
  },
  {
    host: "codex",
    spec: "@openai/codex@0.169.0",
    model: "responses",
    program: (folder) => [process.execPath, [join(folder, "@openai/codex/bin/codex.js")]],
    // Codex asks a person once to trust each hook. No one can answer here.
    args: ["exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "-s", "danger-full-access", "go"],
    files: (url) => ({ ".codex/config.toml": codex(url) }),
    env: () => ({}),
    shell: (command) => ({ name: "exec_command", input: { cmd: command, yield_time_ms: 20_000 } }),
    mcp: ({ command, args, env }, url) => ({
      files: {
        ".codex/config.toml": `${codex(url)}[mcp_servers.notes]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\nrequired = true\nstartup_timeout_sec = 60\n[mcp_servers.notes.env]\n${Object.entries(
          env,
        )
          .map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`)
          .join("")}`,
      },
    }),
    tool: (name, input) => ({ namespace: "mcp__notes", name, input }),
  },
  {
    host: "gemini",
    spec: "@google/gemini-cli@0.61.0",
    model: "contents",
    program: (folder) => [process.execPath, [join(folder, "@google/gemini-cli/bundle/gemini.js")]],
    args: ["-p", "go", "--yolo", "--skip-trust", "-m", "gemini-2.5-pro"],
    files: () => ({ ".gemini/settings.json": gemini }),
    env: (url) => ({ GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: url }),
    shell: (command) => ({ name: "run_shell_command", input: { command } }),
    mcp: (notes) => ({ files: { ".gemini/settings.json": { ...gemini, mcpServers: { notes } } } }),
    tool: (name, input) => ({ name: `mcp_notes_${name}`, input }),
  },
  {
    host: "copilot",
    spec: "@github/copilot@1.0.102",
    slow: true,
    model: "messages",
    program: (folder) => [join(folder, `@github/copilot-${PLATFORM}/copilot`), []],
    args: ["-p", "go", "--allow-all-tools", "--allow-all-paths"],
    files: () => ({}),
    env: (url) => ({
      COPILOT_OFFLINE: "true",
      COPILOT_AUTO_UPDATE: "false",
      COPILOT_PROVIDER_TYPE: "anthropic",
      COPILOT_PROVIDER_BASE_URL: url,
      COPILOT_PROVIDER_API_KEY: "none",
      COPILOT_MODEL: "claude-sonnet-4.5",
      // The package unpacks itself into this folder.
      XDG_CACHE_HOME: join(CACHE, "assent-test-copilot-cache"),
    }),
    shell: (command) => ({ name: "bash", input: { command, description: "a step" } }),
    mcp: (notes) => ({
      files: { ".copilot/mcp-config.json": { mcpServers: { notes: { type: "local", tools: ["*"], ...notes } } } },
    }),
    tool: (name, input) => ({ name: `notes-${name}`, input }),
  },
  {
    host: "opencode",
    spec: "opencode-ai@1.18.33",
    slow: true,
    model: "messages",
    program: (folder) => [join(folder, `opencode-${PLATFORM}/bin/opencode`), []],
    args: ["run", "go"],
    files: (url) => ({ ".config/opencode/opencode.json": openCode(url) }),
    env: () => ({
      XDG_CONFIG_HOME: "",
      XDG_DATA_HOME: "",
      XDG_CACHE_HOME: "",
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    }),
    shell: (command) => ({ name: "bash", input: { command, description: "a step" } }),
    mcp: ({ command, args, env }, url) => ({
      files: {
        ".config/opencode/opencode.json": {
          ...openCode(url),
          mcp: { notes: { type: "local", command: [command, ...args], environment: env, timeout: 60_000 } },
        },
      },
    }),
    tool: (name, input) => ({ name: `notes_${name}`, input }),
  },
];

/** Returns a value for the `skip` option of a test: false, or the reason why the agent is not tested here. */
export function withoutAgent({ spec, slow }: CodingAgent): string | false {
  return slow === true && !process.env["ASSENT_TEST_SLOW"]
    ? `${spec} is 270 MB, and takes 40 s to begin: ASSENT_TEST_SLOW=1 runs it`
    : false;
}

/** Installs an agent and returns its command line. The packages are large, so they stay in the cache between runs. */
export async function installAgent({ spec, program: of }: CodingAgent): Promise<[string, string[]]> {
  const folder = join(CACHE, `assent-test-${spec.replaceAll(/[^a-z0-9.]+/g, "-")}`);
  const [name, args] = of(join(folder, "node_modules"));
  if (![name, ...args].every((path) => existsSync(path))) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), "{}");
    await promisify(execFile)("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", spec], {
      cwd: folder,
      timeout: 240_000,
    });
  }
  await promisify(execFile)(name, [...args, "--version"], { timeout: 60_000 });
  return [name, args];
}

/** Returns settings files with their JSON values serialized. */
export const textsOf = (files: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(files).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );

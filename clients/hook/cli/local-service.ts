/**
 * A service for one person on this machine: its folder, its first keys and its process. `assent hook setup` uses it.
 */
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  CommandError,
  describeSystemError,
  loadServeConfig,
  programArguments,
  siteOrigin,
  startService,
} from "../../../src/command.ts";
import type { Config, Runtime } from "../../../src/index.ts";
import { runProgram, startBackgroundProgram } from "../../../src/programs/run-program.ts";

type Variables = Readonly<Record<string, string | undefined>>;

const PACK = fileURLToPath(new URL("../../../policies/packs/coding-agents.yaml", import.meta.url));
const READY_MS = 60_000;
const END_MS = 30_000;
/** Name prefix of temporary keys. A temporary key creates an agent's key and is then revoked. */
const TEMPORARY_KEY_PREFIX = "setup-";

interface KeyView {
  name: string;
  scopes: string[];
  revoked_at: string | null;
}

/** Returns the policy pack "coding-agents" as YAML, changed so that no rule requires a second approver. */
export function readPackForOneApprover(): string {
  const text = readFileSync(PACK, "utf8").replace(/^# yaml-language-server:.*\n/, "");
  return text.replaceAll("quorum: 2, ", "");
}

export class LocalService {
  readonly folder: string;
  private readonly env: Variables;

  constructor(folder: string, env: Variables) {
    this.folder = folder;
    // Remove variables that configure another service, because this service would use them, too. Remove npm's
    // variables, because a service that npm started stops with npm, and this one must outlive `npx assent hook setup`.
    const inheritedVariables = Object.entries(env).filter(
      ([name]) => !/^(?:ASSENT|npm)_/.test(name) || name === "ASSENT_STATE",
    );
    this.env = Object.fromEntries(inheritedVariables);
  }

  /** The service in the folder for this user's data. */
  static ofUser(home: string, env: Variables): LocalService {
    return new LocalService(join(env["XDG_DATA_HOME"] || join(home, ".local", "share"), "assent"), env);
  }

  get exists(): boolean {
    return existsSync(this.configFile);
  }

  /** The address of the service, even if it is stopped; null if the service does not exist. */
  get url(): string | null {
    if (!this.exists) return null;
    const { host, port } = this.config().server;
    return `http://${host}:${port}`;
  }

  /** The address of the console; null if the service does not exist. */
  get consoleUrl(): string | null {
    if (!this.exists) return null;
    const { server } = this.config();
    return siteOrigin(server, server.port);
  }

  private config(): Config {
    return loadServeConfig({ ...this.env }, this.configFile, this.folder);
  }

  /** Writes the configuration and the policy pack. Does not overwrite existing files. */
  create(port: number): void {
    mkdirSync(join(this.folder, "policies"), { recursive: true, mode: 0o700 });
    writeNew(join(this.folder, "policies", "coding-agents.yaml"), readPackForOneApprover());
    // Write this file last, because its existence means that the folder is complete.
    writeNew(
      this.configFile,
      `# Written by "assent hook setup". Options: docs/configuration.md.
server:
  host: 127.0.0.1
  port: ${port}
data: ./data
policies: ./policies
`,
    );
  }

  /**
   * Creates the agent's key while the service is stopped. If the store has no admin key, also creates an admin key and
   * passes it to `show`. The creator of a key cannot approve the key's actions, so a temporary key creates the agent's
   * key.
   */
  async createKeys(
    { agent, owner }: { agent: string; owner: string | null },
    show: (adminKey: string) => void,
  ): Promise<{ id: string; key: string }> {
    return this.asAdmin(async (runtime, maker) => {
      const { api_keys: keys } = await call<{ api_keys: KeyView[] }>(runtime, maker, "GET", "/v1/api-keys?limit=1000");
      // Ignore temporary keys that an interrupted setup left, because no one has their values.
      const hasAdmin = keys.some(
        ({ name, scopes, revoked_at }) =>
          !name.startsWith(TEMPORARY_KEY_PREFIX) && revoked_at === null && scopes.includes("admin"),
      );
      const made = await call<{ id: string; key: string }>(
        runtime,
        maker,
        "POST",
        "/v1/api-keys",
        agentKeyRequest(agent, owner),
      );
      if (!hasAdmin) show((await runtime.createAdminKey("admin")).key);
      return made;
    });
  }

  /** Revokes a key while the service is stopped. */
  async revokeKey(id: string): Promise<void> {
    await this.asAdmin((runtime, maker) => call(runtime, maker, "DELETE", `/v1/api-keys/${id}`));
  }

  /** Opens the store while the service is stopped, and passes on the value of an admin key that is then revoked. */
  private async asAdmin<T>(work: (runtime: Runtime, key: string) => Promise<T>): Promise<T> {
    const runtime = await startService({ ...this.config(), log: { level: "error" } });
    try {
      const maker = await runtime.createAdminKey(`${TEMPORARY_KEY_PREFIX}${randomBytes(6).toString("hex")}`);
      try {
        return await work(runtime, maker.key);
      } finally {
        await call(runtime, maker.key, "DELETE", `/v1/api-keys/${maker.id}`);
      }
    } finally {
      await runtime.stop();
    }
  }

  /**
   * Starts the service in the background. Resolves to its URL when it is ready. If another process starts it, waits for
   * that process.
   */
  async start(): Promise<string> {
    const url = this.url as string;
    const startFile = join(this.folder, "service.starting");
    if (!claim(startFile)) {
      if (await waitUntilReady(url, () => !existsSync(startFile))) return url;
      throw new CommandError(`another process starts the service in ${this.folder}, which is not ready at ${url}`);
    }
    try {
      return await this.startProcess(url);
    } finally {
      rmSync(startFile, { force: true });
    }
  }

  private async startProcess(url: string): Promise<string> {
    const logFile = join(this.folder, "service.log");
    const log = openSync(logFile, "a", 0o600);
    const [program, ...args] = programArguments() as [string, ...string[]];
    const bin = args.at(-1) as string;
    const service = startBackgroundProgram(program, [...args, "serve", "--config", this.configFile], {
      // A service that runs from its sources needs the TypeScript loader of the clone, so start it in the clone's
      // folder.
      cwd: bin.endsWith(".ts") ? dirname(bin) : this.folder,
      env: this.env,
      output: log,
    });
    closeSync(log);
    if ((await waitUntilReady(url, service.hasExited)) && !service.hasExited()) {
      writeFileSync(this.pidFile, `${service.pid}\n`, { mode: 0o600 });
      return url;
    }
    await service.end();
    const lines = readFileSync(logFile, "utf8").trim().split("\n").slice(-3).join("\n");
    throw new CommandError(`the service in ${this.folder} did not start; ${logFile} ends with:\n${lines}`);
  }

  /** Stops the process that `start` started, and waits until it has ended. Resolves to true if it was running. */
  async stop(): Promise<boolean> {
    let pid: number;
    try {
      pid = Number(readFileSync(this.pidFile, "utf8"));
    } catch {
      return false;
    }
    rmSync(this.pidFile, { force: true });
    // The process id may belong to another process by now.
    if (!(pid > 1) || !(await commandLineOf(pid)).includes(this.configFile)) return false;
    process.kill(pid, "SIGTERM");
    const end = performance.now() + END_MS;
    while (isRunning(pid)) {
      if (performance.now() > end) throw new CommandError(`the service (process ${pid}) does not end`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return true;
  }

  /** Deletes the service's files, its store included. */
  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private get configFile(): string {
    return join(this.folder, "assent.yaml");
  }

  private get pidFile(): string {
    return join(this.folder, "service.pid");
  }
}

/**
 * Returns the request body for a key with the `agent` preset that is bound to the agent. The key's name is random,
 * because an earlier key for the agent might still exist.
 */
export const agentKeyRequest = (agent: string, owner: string | null): object => ({
  name: `hook-${agent}-${randomBytes(4).toString("hex")}`,
  preset: "agent",
  agent_id: agent,
  owner,
});

/** Resolves to true if a service at this URL is ready. */
export async function isServiceReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2000), redirect: "error" });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

/**
 * Waits until a service at this URL is ready, `hasEnded` returns true, or the time is over. Resolves to whether it is
 * ready.
 */
async function waitUntilReady(url: string, hasEnded: () => boolean): Promise<boolean> {
  const end = performance.now() + READY_MS;
  while (!hasEnded() && performance.now() < end) {
    if (await isServiceReady(url)) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  // The service may have become ready since the last request.
  return isServiceReady(url);
}

/** Creates the file. Returns false if another process has created it and may still be starting the service. */
function claim(path: string): boolean {
  // A process that was killed leaves its file.
  if ((statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity) < Date.now() - READY_MS)
    rmSync(path, { force: true });
  try {
    writeFileSync(path, `${process.pid}\n`, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw writeError(path, error);
  }
}

/** Returns an error that names the cause. Deletes the file, which can be incomplete. */
function writeError(path: string, error: unknown): CommandError {
  rmSync(path, { force: true });
  return new CommandError(`${path} cannot be written: ${describeSystemError(error) ?? (error as Error).message}`);
}

/**
 * Returns true if the process exists. A process that has ended is removed when this process, its parent, is notified.
 */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function call<T>(runtime: Runtime, key: string, method: string, path: string, body?: object): Promise<T> {
  const response = await runtime.fetch(
    new Request(`http://localhost${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
  const answer = (await response.json()) as T & { code?: string; detail?: string };
  if (!response.ok) throw new CommandError(`${answer.code ?? response.status}: ${answer.detail ?? ""}`);
  return answer;
}

function writeNew(path: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: "wx", mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw writeError(path, error);
  }
}

async function commandLineOf(pid: number): Promise<string> {
  try {
    if (existsSync(`/proc/${pid}/cmdline`)) return readFileSync(`/proc/${pid}/cmdline`, "utf8");
    const { stdout } = await runProgram("ps", ["-ww", "-o", "command=", "-p", String(pid)], {
      env: process.env,
      timeoutMs: 5_000,
      maxOutput: 1_000_000,
    });
    return stdout.toString("utf8");
  } catch {
    return "";
  }
}

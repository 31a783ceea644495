/** The report of a machine about itself: its identity, and whether its hosts run the hook. */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { HookConfigError, loadConfig } from "../hook-config.ts";
import { HOSTS, type Host } from "../hosts/answers.ts";
import { readTextOrNull } from "./diagnose-hook.ts";
import { findDisabledReason } from "./disabled-hooks.ts";
import { isOnPath } from "./hook-program.ts";
import { findUnreadableReason, hasHook, settingsFile, type SettingsFolders } from "./host-settings.ts";
import { userConfigFolder } from "../../settings/settings-files.ts";

type Variables = Readonly<Record<string, string | undefined>>;

export interface HostReport {
  host: Host;
  state: "present" | "disabled" | "missing";
}

/** The program and the folder in the home folder by which a host is recognized. VS Code has project settings only. */
const HOST_TRACES: Readonly<Record<Exclude<Host, "vscode">, readonly [program: string, folder: string]>> = {
  "claude-code": ["claude", ".claude"],
  codex: ["codex", ".codex"],
  copilot: ["copilot", ".copilot"],
  cursor: ["cursor", ".cursor"],
  gemini: ["gemini", ".gemini"],
  kiro: ["kiro", ".kiro"],
  opencode: ["opencode", ".config/opencode"],
};

/**
 * Returns the hosts of this user on this machine, with the state of the hook in their user and managed settings. Hooks
 * in projects are not reported, because they apply only in that project.
 * @param command command line with which the hook was installed; default: as `assent hook install` writes it
 * @example
 * reportHosts(process.env, homedir()); // [{ host: "claude-code", state: "present" }]
 */
export function reportHosts(env: Variables, home: string, command?: string): HostReport[] {
  // The home folder stands for the project, because the state must not depend on the working folder.
  const folders: SettingsFolders = { home, project: home };
  return HOSTS.flatMap((host): HostReport[] => {
    if (host === "vscode") return [];
    const [program, folder] = HOST_TRACES[host];
    const isInstalled = isOnPath(program, env) || existsSync(join(home, folder));
    const state = readState(host, folders, command);
    return isInstalled || state !== "missing" ? [{ host, state }] : [];
  });
}

function readState(host: Host, folders: SettingsFolders, command: string | undefined): HostReport["state"] {
  const texts = (["managed", "user"] as const).map((scope) => {
    const path = settingsFile(host, scope, folders);
    return path === null ? null : readTextOrNull(path);
  });
  try {
    const withHook = texts.filter((text) => hasHook(text, host, command)) as string[];
    if (withHook.length === 0) return "missing";
    if (withHook.every((text) => findUnreadableReason(host, text) !== null)) return "disabled";
  } catch {
    // The host cannot read such settings either.
    return "missing";
  }
  return findDisabledReason(host, folders, readTextOrNull, command) === null ? "present" : "disabled";
}

/**
 * Returns the identity of this machine for the service. The id is a hash of systemd's machine id, which must not be
 * sent unhashed (machine-id(5)), or of a random id that is stored next to the hook's configuration.
 */
export function describeMachine(env: Variables): { id: string; name: string; platform: string } {
  const id = createHash("sha256")
    .update(`assent-device/1\n${readMachineId(env)}`)
    .digest("hex");
  const name =
    hostname()
      .replaceAll(/[^\x20-\x7e]/g, "?")
      .trim()
      .slice(0, 100) || "unnamed";
  return { id, name, platform: process.platform };
}

function readMachineId(env: Variables): string {
  const id = readTextOrNull("/etc/machine-id")?.trim() ?? "";
  if (/^[0-9a-f]{32}$/.test(id)) return id;
  const folder = userConfigFolder(env);
  if (folder === null) throw new HookConfigError("the home folder is unknown; set HOME");
  const path = join(folder, "machine-id");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    writeFileSync(path, randomUUID(), { flag: "wx", mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return readFileSync(path, "utf8");
}

/** Returns the address of the service that the hook uses, even if it has no key yet. Throws HookConfigError. */
export function readServiceUrl(env: Variables): string {
  return loadConfig({ ...env, ASSENT_API_KEY: env["ASSENT_API_KEY"] || "none" }).url;
}

/**
 * `assent hook setup` sets up the service, key, policies and hook for one person on one machine, and tests the hook.
 */
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  colourText,
  CommandError,
  describeSystemError,
  EXIT_CODES,
  type Output,
  parseArguments,
  parseChoice,
  REQUEST_TIMEOUT,
  serviceUrl,
  type Subcommand,
  toPrintable,
  usageError,
  withJsonReport,
  withServiceErrors,
} from "../../../src/command.ts";
import { loadConfig, MissingApiKeyError, userConfigFile, type HookConfig } from "../hook-config.ts";
import { HOSTS, type Host } from "../hosts/answers.ts";
import { createCheckClient } from "../../settings/check-key.ts";
import { Unauthorized } from "../../typescript/index.ts";
import { evaluateTypicalCalls, typicalRequests, checkConfig, typicalToolCalls } from "../install/check-service.ts";
import { testInstalledHook } from "../install/diagnose-hook.ts";
import { readSettings, writeSettings } from "../../settings/settings-files.ts";
import { loadWritten, planConfig, writeConfig } from "../install/write-config.ts";
import { installedCommands, SCOPES, settingsFile, type Scope } from "../install/host-settings.ts";
import {
  applyChange,
  assertHookEnabled,
  CODEX_TRUST_HINT,
  parseHost,
  settingsFolders,
  planInstall,
  planUninstall,
  withCommandError,
} from "./install.ts";
import { isServiceReady, agentKeyRequest, LocalService, readPackForOneApprover } from "./local-service.ts";
import { INSTALL_SCOPES, isClient, readClientSettings, readServers } from "../../settings/mcp-servers.ts";

type Variables = Readonly<Record<string, string | undefined>>;

export const setup: Subcommand = {
  summary: "set up a coding agent: service, key, policies, hook, proof",
  help: `usage: assent hook setup --host HOST [--agent AGENT] [--owner OWNER] [--scope ${SCOPES.join("|")}] [--command COMMAND] [--json]
       assent hook setup --host HOST [--scope SCOPE] [--command COMMAND] --undo [--json]

Does all that a coding agent needs, and skips steps that are already done:

  1. finds the service, or starts one for this user in ~/.local/share/assent
  2. creates a key with the preset "agent" that is bound to the agent, and writes ~/.config/assent/hook.json
  3. installs the policy pack "coding-agents" for one person, if the policies do not allow everyday calls yet
  4. installs the hook into the host's settings
  5. tests the hook: sends a Read, an Edit and "git status" through the hook and must be allowed. With Codex, sends
     "cat .env" instead of "git status" and must be refused

If the service already runs, set ASSENT_API_KEY to a key that may create keys and write policies, for this command
only. A new service prints its admin key once, on a terminal. You approve with that key. It is not stored on this machine,
because a coding agent could read it there.

  --host HOST        ${HOSTS.join(", ")}
  --agent AGENT      the agent that the key is for; default: the host's name
  --owner OWNER      the user who works with the agent: user:<id>, a verified e-mail address, or <issuer>#<subject>. They cannot
                     approve its calls, except with a passkey where a rule says self_confirm. Without it, no person is
                     behind the agent
  --scope SCOPE      project, user or managed; default: user where the host has such settings
  --command COMMAND  command that starts the hook; default: this program by its path
  --json             print the steps as JSON
  --undo             remove the hook and its key from this machine, and stop the service that setup started; the store stays

examples:
  assent hook setup --host claude-code
  assent hook setup --host claude-code --undo
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      host: { type: "string" },
      agent: { type: "string" },
      owner: { type: "string" },
      scope: { type: "string" },
      command: { type: "string" },
      undo: { type: "boolean" },
      json: { type: "boolean" },
    });
    if (positionals.length > 0) throw usageError("assent hook setup takes options only");
    const host = parseHost(values.host);
    const scope =
      values.scope === undefined
        ? settingsFile(host, "user", settingsFolders()) === null
          ? "project"
          : "user"
        : parseChoice("--scope", values.scope, SCOPES);
    const { command } = values;
    const { agent = null, owner = null } = values;
    return withJsonReport(io, values.json, (report) =>
      values.undo === true
        ? removeSetup(report, host, scope, command)
        : setUp(report, { host, scope, command, agent, owner }),
    );
  },
};

async function setUp(
  io: Output,
  {
    host,
    scope,
    command,
    ...wanted
  }: { host: Host; scope: Scope; command: string | undefined; agent: string | null; owner: string | null },
): Promise<number> {
  // Fail before anything is created if the program is in a temporary cache, or if the settings are unreadable.
  await planInstall(host, scope, command);

  const env = withoutCredentials(process.env);
  const changes: Rollback[] = [];
  try {
    const { config, agent } = await prepareKey(io, env, wanted, host, changes);
    await preparePolicies(io, config, agent, host, changes);
    const change = await planInstall(host, scope, command);
    if (applyChange(io, change))
      // A hook that does not work denies every call.
      changes.push({ what: change.path, undo: () => writeSettings(change.path, change.after, change.before) });
    await testHook(io, host, scope, command, env);
  } catch (error) {
    const left = await rollBack(changes);
    const cause = error instanceof CommandError ? error.message : describeSystemError(error);
    if (cause === null) throw error;
    const outcome = left.length === 0 ? "nothing was changed" : `this stays: ${left.join(", ")}`;
    throw new CommandError(
      `${cause.replace(/; nothing was changed$/, "")}; ${outcome}`,
      error instanceof CommandError ? error.exit : undefined,
    );
  }
  assertHookEnabled(host, command);
  noteServers(io, host);
  if (host === "codex") io.err(CODEX_TRUST_HINT);
  return EXIT_CODES.ok;
}

/** A change that setup made, and how to undo it. */
interface Rollback {
  what: string;
  /** Null if the change stays. */
  undo: (() => unknown) | null;
}

/** Undoes the changes, the last one first. Resolves to the changes that remain. */
async function rollBack(changes: readonly Rollback[]): Promise<string[]> {
  const left: string[] = [];
  for (const { what, undo } of [...changes].reverse())
    try {
      if (undo === null) left.push(what);
      else await undo();
    } catch (error) {
      left.push(`${what} (${(error as Error).message})`);
    }
  return left;
}

/** Removes the variables that a host does not pass to its hook. ASSENT_API_KEY may be an admin key in this shell. */
function withoutCredentials(env: Variables): Variables {
  const excluded = new Set(["ASSENT_API_KEY", "ASSENT_AGENT", "ASSENT_URL", "ADMIN_KEY"]);
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !excluded.has(name) && !name.endsWith("_PROJECT_DIR")),
  );
}

function done(io: Output, text: string): void {
  io.out(`${colourText(io, "green", "ok   ")} ${toPrintable(text)}`);
}

/** Finds or starts the service, and writes a configuration with a key that the service accepts. */
async function prepareKey(
  io: Output,
  env: Variables,
  { agent: wanted, owner }: { agent: string | null; owner: string | null },
  host: Host,
  changes: Rollback[],
): Promise<{ config: HookConfig; agent: string }> {
  const local = LocalService.ofUser(settingsFolders().home, process.env);
  const before = savedConfig(env);
  const url = before?.url ?? (process.env["ASSENT_URL"] ? serviceUrl() : (local.url ?? serviceUrl()));
  let key: string | null = null;
  if (await isServiceReady(url)) done(io, `the service runs at ${url}`);
  else {
    if (!isLoopback(url)) throw new CommandError(`no service is ready at ${url}`, EXIT_CODES.unreachable);
    if (local.url !== null && local.url !== url)
      throw new CommandError(
        `no service is ready at ${url}, and the one in ${local.folder} is for ${local.url}`,
        EXIT_CODES.unreachable,
      );
    key = await startLocal(io, local, url, before === null ? { agent: wanted ?? host, owner } : null, changes);
  }

  if (key === null && before !== null) {
    const { agent, faults } = await checkConfig(env);
    if (agent !== null) {
      if (wanted !== null && wanted !== agent)
        throw new CommandError(`the hook acts as ${agent} already; run setup with --undo first to change that`);
      if (owner !== null)
        throw new CommandError("the hook has a key already; run setup with --undo first to change its owner");
      done(io, `the hook has a key, for the agent ${agent}`);
      return { config: loadConfig(env), agent };
    }
    if (!process.env["ASSENT_API_KEY"])
      throw new CommandError(
        `${faults.join("; ")}. Run this again in your own terminal, with ASSENT_API_KEY set, for this command only, to a key that ` +
          "may create keys, so that the hook gets a new one",
      );
  }
  const agent = wanted ?? before?.agent ?? host;
  if (key === null) {
    const admin = adminClient(url);
    await assertAccepted(admin, url);
    await assertPackSuffices(admin, agent, host);
    const made = await withServiceErrors(() =>
      admin.call<{ id: string; key: string }>("POST", "/v1/api-keys", agentKeyRequest(agent, owner)),
    );
    changes.push({
      what: `the key of the agent ${agent}`,
      undo: () => admin.call("DELETE", `/v1/api-keys/${made.id}`),
    });
    ({ key } = made);
  }
  const config = saveConfig(env, { url, key, agent, service: local.url === url ? local.folder : null }, changes);
  done(io, `the hook has a key of its own, for the agent ${agent}`);
  return { config, agent };
}

/** Returns the hook's configuration; null if no file contains a configuration with a key. */
function savedConfig(env: Variables): HookConfig | null {
  try {
    return loadConfig(env);
  } catch (error) {
    if (error instanceof MissingApiKeyError) return null;
    throw new CommandError((error as Error).message);
  }
}

/**
 * Starts this user's service. Creates it if it does not exist. Resolves to the key of `agent`, or to null.
 * @param requestedAgent agent for which to create a key, with the owner of the key; null if the hook already has a key
 */
async function startLocal(
  io: Output,
  local: LocalService,
  url: string,
  requestedAgent: { agent: string; owner: string | null } | null,
  changes: Rollback[],
): Promise<string | null> {
  let key: string | null = null;
  let isAdminShown = false;
  const isNew = !local.exists;
  if (!local.exists) {
    if (requestedAgent === null)
      throw new CommandError(
        `no service is ready at ${url}, which the hook's configuration names; start it, or run setup with --undo first`,
        EXIT_CODES.unreachable,
      );
    if (!io.watched)
      throw new CommandError(
        "setup would start a service and print its admin key, which can approve. Run it yourself in a terminal: " +
          "an agent that reads the output could approve its own calls",
      );
    changes.push(
      existsSync(local.folder)
        ? { what: `the files in ${local.folder}`, undo: null }
        : {
            what: local.folder,
            undo: () => {
              local.remove();
              if (isAdminShown) io.err("The admin key above does not exist any more.");
            },
          },
    );
    local.create(Number(new URL(url).port || 80));
  }
  if (requestedAgent !== null) {
    const made = await local.createKeys(requestedAgent, (admin) => {
      isAdminShown = true;
      io.err(
        `\nYour admin key. It is printed once and not stored; keep it where no agent can read it, such as a password manager:\n`,
      );
      io.err(`  ${admin}\n`);
      io.err(`Use it to approve in the console at ${local.consoleUrl ?? url}/.\n`);
    });
    ({ key } = made);
    if (!isNew)
      changes.push({ what: `the key of the agent ${requestedAgent.agent}`, undo: () => local.revokeKey(made.id) });
  }
  changes.push({ what: `the service in ${local.folder}`, undo: () => local.stop() });
  await local.start();
  done(io, `a service runs at ${url}; its store and policies are in ${local.folder}`);
  return key;
}

const isLoopback = (url: string): boolean =>
  ["127.0.0.1", "localhost", "[::1]"].includes(new URL(url).hostname) && url.startsWith("http:");

function adminClient(url: string): ReturnType<typeof createCheckClient> {
  const key = process.env["ASSENT_API_KEY"];
  if (key === undefined || key === "")
    throw new CommandError(
      `the hook has no key for ${url}: run this again in your own terminal, with ASSENT_API_KEY set, for this ` +
        "command only, to a key that may create keys and write policies",
    );
  return createCheckClient(url, key, REQUEST_TIMEOUT);
}

function saveConfig(
  env: Variables,
  { url, key, agent, service }: { url: string; key: string; agent: string; service: string | null },
  changes: Rollback[],
): HookConfig {
  const change = withCommandError(() =>
    planConfig(env, { url, api_key: key, agent, service: service ?? undefined }, ["wait", "sessions"]),
  );
  const { path, before, after } = change;
  withCommandError(() => writeConfig(change));
  changes.push({ what: path, undo: () => writeSettings(path, after, before) });
  return withCommandError(() => loadWritten(env, change, url, key));
}

type AdminClient = ReturnType<typeof adminClient>;

async function assertAccepted(admin: AdminClient, url: string): Promise<void> {
  try {
    await admin.call("GET", "/v1/me");
  } catch (error) {
    if (!(error instanceof Unauthorized)) return withServiceErrors(() => Promise.reject(error as Error));
    throw new CommandError(
      `the service at ${url} does not accept the key in ASSENT_API_KEY: ${error.code}: ${toPrintable(error.message)}`,
    );
  }
}

/** Throws CommandError if everyday calls would not be allowed with the pack either. Changes nothing. */
async function assertPackSuffices(admin: AdminClient, agent: string, host: Host): Promise<void> {
  const requests = await typicalRequests(agent, host, settingsFolders().home);
  const { results } = await withServiceErrors(() =>
    admin.call<{ results: Record<"current" | "candidate", CandidateDecision>[] }>("POST", "/v1/policies/dry-run", {
      yaml: readPackForOneApprover(),
      actions: requests.map(([, request]) => request),
    }),
  );
  if (results.every(({ current }) => current.effect === "allow")) return;
  const refused = results.flatMap(({ candidate }, i) =>
    candidate.effect === "allow" ? [] : [{ call: requests[i]?.[0] ?? "", ...candidate }],
  );
  if (refused.length === 0) return;
  const policies = [...new Set(refused.flatMap(({ policy }) => (policy === null ? [] : [`"${policy}"`])))];
  throw new CommandError(
    'the policies would not allow everyday calls, even with the pack "coding-agents": ' +
      refused.map(({ call, effect, policy, rule }) => `${call}: ${effect} by ${policy} / ${rule}`).join("; ") +
      `. Change or remove ${policies.join(" and ")}, because the strictest policy wins, and run this again`,
  );
}

interface CandidateDecision {
  effect: string;
  policy: string | null;
  rule: string | null;
}

async function preparePolicies(
  io: Output,
  config: HookConfig,
  agent: string,
  host: Host,
  changes: Rollback[],
): Promise<void> {
  const ask = () => withServiceErrors(() => evaluateTypicalCalls(config, agent, host, settingsFolders().home));
  let answers = await ask();
  let refused = answers.filter(({ decision }) => decision !== "allow");
  if (refused.length > 0) {
    const refusals = refused.map(({ call, decision, reason }) => `${call}: ${decision} (${reason})`).join("; ");
    if (!process.env["ASSENT_API_KEY"])
      throw new CommandError(
        `the policies do not allow everyday calls: ${refusals}. Run this again with ASSENT_API_KEY set to a key that may ` +
          'write and activate policies, or install the pack "coding-agents" by hand (docs/packs.md)',
      );
    const admin = adminClient(config.url);
    await assertPackSuffices(admin, agent, host);
    await withServiceErrors(() => activatePack(admin, changes));
    done(io, 'the policy pack "coding-agents" is installed and active');
    answers = await ask();
    refused = answers.filter(({ decision }) => decision !== "allow");
  }
  if (refused.length > 0)
    throw new CommandError(
      `the policies still do not allow everyday calls: ${refused.map(({ call, decision, reason }) => `${call}: ${decision} (${reason})`).join("; ")}. ` +
        "The registered agent or a limit is stricter than the policies: change it, and run this again",
    );
  done(io, `the policies allow in a workspace: ${answers.map(({ call }) => call).join(", ")}`);
}

async function activatePack(admin: AdminClient, changes: Rollback[]): Promise<void> {
  const { policies: earlier } = await admin.call<{ policies: { active_version: number | null }[] }>(
    "GET",
    "/v1/policies?name=coding-agents",
  );
  const { policies } = await admin.call<{ policies: { id: string; outcome: string }[] }>(
    "POST",
    "/v1/policies/import-yaml?activate=true",
    { yaml: readPackForOneApprover() },
  );
  for (const { id, outcome } of policies) {
    const version = earlier[0]?.active_version ?? null;
    const path = `/v1/policies/${id}`;
    changes.push({
      what: 'the policy "coding-agents"',
      undo: () =>
        outcome === "created"
          ? admin.call("DELETE", path)
          : version === null
            ? admin.call("POST", `${path}/deactivate`)
            : admin.call("POST", `${path}/activate`, { version }),
    });
  }
}

/** Says which MCP servers of the host the hook governs, because no policy may allow their tools. */
function noteServers(io: Output, host: Host): void {
  if (!isClient(host)) return;
  let names: string[];
  try {
    const files = readClientSettings(host, INSTALL_SCOPES, settingsFolders());
    names = files.flatMap(({ text }) => Object.keys(readServers(text, host)));
  } catch {
    // The settings cannot be read.
    return;
  }
  if (names.length === 0) return;
  const tools = [...new Set(names)].map((name) => `mcp.${name}`).join(", ");
  io.err(
    toPrintable(
      `${host} has MCP servers. The hook decides their calls, too, as ${tools}: calls that no policy allows are denied (docs/mcp.md, "Set up")`,
    ),
  );
}

/** Sends typical calls through the hook. Starts the hook with the command line in the host's settings. */
async function testHook(
  io: Output,
  host: Host,
  scope: Scope,
  command: string | undefined,
  env: Variables,
): Promise<void> {
  const [line] = installedCommands(readSettings(settingsFile(host, scope, settingsFolders()) as string), host, command);
  if (line === undefined) throw new CommandError("the hook is not in the settings that were written");
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "assent-hook-")));
  try {
    for (const [call, tool] of Object.entries(typicalToolCalls(folder))) {
      // Only a real Codex reports the folder of a command, so the hook would require approval here.
      if (host === "codex" && tool.tool === "Bash") continue;
      const { isAllowed, text } = await testInstalledHook(host, line, tool, folder, env);
      if (!isAllowed) throw new CommandError(`${call} was denied by the hook (${line}): ${toPrintable(text)}`);
      done(io, `${call} was allowed through the hook`);
    }
    if (host === "codex") await testSecretCommand(io, host, line, folder, env);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Sends a command through the hook that the pack denies in every folder. */
async function testSecretCommand(io: Output, host: Host, line: string, folder: string, env: Variables): Promise<void> {
  writeFileSync(join(folder, ".env"), "");
  const call = { tool: "Bash", input: { command: "cat .env" } };
  const { isAllowed, isStarted, text } = await testInstalledHook(host, line, call, folder, env);
  // The pack denies the command. Other policies can require approval for it, or allow it.
  if (isAllowed && isStarted) io.err("the policies allow `cat .env`, so an agent can read secrets (docs/packs.md)");
  else if (/denied by|waits for approval/.test(text)) done(io, "cat .env was refused through the hook");
  else
    throw new CommandError(`cat .env was not refused by the service through the hook (${line}): ${toPrintable(text)}`);
}

async function removeSetup(io: Output, host: Host, scope: Scope, command: string | undefined): Promise<number> {
  applyChange(io, planUninstall(host, scope, command));
  const others = HOSTS.flatMap((each) =>
    SCOPES.map((scope) => settingsFile(each, scope, settingsFolders())).filter(
      (path) => path !== null && existsIn(path, each, command),
    ),
  );
  if (others.length > 0) {
    io.out(
      `${others.join(", ")} still ${others.length === 1 ? "has" : "have"} the hook, so its key and the service stay`,
    );
    return EXIT_CODES.ok;
  }
  const path = userConfigFile(process.env);
  if (path !== null && readSettings(path) !== null) {
    rmSync(path);
    io.out(`removed ${path}; revoke its key with "assent keys list" and "assent keys revoke"`);
  }
  const local = LocalService.ofUser(settingsFolders().home, process.env);
  if (await local.stop()) io.out(`stopped the service; its store stays in ${local.folder}`);
  return EXIT_CODES.ok;
}

function existsIn(path: string, host: Host, command: string | undefined): boolean {
  try {
    return installedCommands(readSettings(path), host, command).length > 0;
  } catch {
    return false;
  }
}

/** `assent doctor` checks the requirements of a working installation, and prints for each problem what to do. */
import { existsSync } from "node:fs";
import { ConfigError, loadConfig, type Config } from "../config/index.ts";
import { listBuiltInCommands } from "../config/built-in-plugins.ts";
import { AssentError, createAssent, type Assent } from "../../clients/typescript/index.ts";
import { findUnknownChannels } from "../domain/policy/check/unknown-channels.ts";
import { selectPrivileges } from "../domain/scopes.ts";
import { loadPolicyFolder } from "../policies/folder.ts";
import {
  colourText,
  CommandError,
  EXIT_CODES,
  parseArguments,
  toPrintable,
  usageError,
  printJson,
  type Command,
} from "./command.ts";
import { findAvailableKey, serviceUrl } from "./credentials.ts";
import { programCommand } from "./invocation.ts";
import { describeFailedChecks, listFailedChecks, readReadiness } from "./readiness.ts";
import type { Me } from "./remote.ts";
import { assertCurrentSchema, assertStorageUsable, withStore } from "./with-store.ts";

/** Timeout of one request in seconds. Short, because a person waits at the terminal. */
const TIMEOUT_SECONDS = 10;
/**
 * Maximum difference between the local clock and the service's clock. Permits and links expire by the service's clock.
 */
const MAX_CLOCK_OFFSET_MS = 5_000;
const EXPIRES_SOON_MS = 7 * 86_400_000;

export interface Finding {
  check: string;
  /** `note`: information that is not a problem, such as a skipped check. */
  state: "ok" | "problem" | "note";
  text: string;
  /** Advice on how to fix the problem. */
  fix?: string;
}

/** What a feature adds to `assent doctor`. */
export interface DoctorCheck {
  /** A command of the feature that checks more, for the help text, such as `"assent hook doctor" checks the hook`. */
  see?: string;
  find?(): Finding[] | Promise<Finding[]>;
}

/** Returns the command, with the checks that features add. */
export async function loadDoctor(): Promise<Command> {
  const loads = Object.values(listBuiltInCommands("doctor"));
  const checks = await Promise.all(loads.map(async (load) => (await load()).default as DoctorCheck));
  return {
    help: `usage: assent doctor [--config FILE] [--json]

Checks the configuration and the store of this folder, the service, the key, the policies, the notifications and the
clock. Changes nothing.

${checks.flatMap(({ see }) => (see === undefined ? [] : [`  ${see}`])).join("\n")}

  --config FILE   configuration file; assent.yaml in the working folder when absent
  --json          print JSON

exits 0 when there is no problem, else 1.

examples:
  assent doctor
  ASSENT_URL=https://assent.example.com assent doctor
`,
    async run(args, io) {
      const { values, positionals } = parseArguments(args, { config: { type: "string" }, json: { type: "boolean" } });
      if (positionals.length > 0) throw usageError("assent doctor takes options only");
      const { config, findings } = checkConfig(values.config);
      if (config !== null) findings.push(...(await checkStore(config)), ...(await checkNotifications(config)));
      findings.push(...(await checkService()));
      for (const { find } of checks) findings.push(...((await find?.()) ?? []));
      if (values.json === true) printJson(io, { findings });
      else
        for (const { check, state, text, fix } of findings) {
          const mark = { ok: "green", problem: "red", note: "yellow" } as const;
          io.out(`${colourText(io, mark[state], state.padEnd(7))}  ${check.padEnd(13)}  ${toPrintable(text)}`);
          if (fix !== undefined) io.out(`${" ".repeat(24)}${toPrintable(fix)}`);
        }
      return findings.some(({ state }) => state === "problem") ? EXIT_CODES.failure : EXIT_CODES.ok;
    },
  };
}

/**
 * Reads the configuration in the working folder. `config` is null if there is no configuration, which is not a problem
 * if the service runs elsewhere.
 */
function checkConfig(file: string | undefined): { config: Config | null; findings: Finding[] } {
  const check = "configuration";
  try {
    const { config, origin } = loadConfig({
      cwd: process.cwd(),
      env: process.env,
      ...(file === undefined ? {} : { file }),
    });
    if (origin !== null) return { config, findings: [{ check, state: "ok", text: `${origin} is valid` }] };
    if (config.database_url !== null || existsSync(config.data))
      return { config, findings: [{ check, state: "ok", text: "there is no assent.yaml; the defaults apply" }] };
    return {
      config: null,
      findings: [
        { check, state: "note", text: "this folder has no assent.yaml and no store; only the service is checked" },
      ],
    };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const fix = "correct the configuration; docs/configuration.md lists the keys";
    return { config: null, findings: [{ check, state: "problem", text: error.message, fix }] };
  }
}

async function checkStore(config: Config): Promise<Finding[]> {
  const check = "store";
  try {
    await assertStorageUsable(config);
    const isNew = config.database_url === null && !existsSync(config.data);
    if (isNew)
      return [{ check, state: "note", text: `${config.data} does not exist; the first "assent serve" creates it` }];
    const keys = await withStore(config, { readOnly: true }, async (storage) => {
      await assertCurrentSchema(storage);
      return (await storage.keys()).length;
    });
    return [{ check, state: "ok", text: `can be read and has the current schema; it contains ${keys} API keys` }];
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return [
      {
        check,
        state: "problem",
        text: error.message,
        fix: "check data and database_url in the configuration, and that this user may read the files",
      },
    ];
  }
}

/** Compares the channels in the policies with the configured channels. */
async function checkNotifications({ channels, policies, environment }: Config): Promise<Finding[]> {
  const check = "notifications";
  const names = Object.keys(channels);
  const { documents, faults } = existsSync(policies)
    ? await loadPolicyFolder(policies, { environment })
    : { documents: [], faults: [] };
  if (faults.length > 0)
    return [
      {
        check: "policies",
        state: "problem",
        text: `${policies} has ${faults.length} ${faults.length === 1 ? "fault" : "faults"}, so the service does not load it; the last valid policies, if any, stay active`,
        fix: `"${programCommand()} policy check" prints them`,
      },
    ];
  const unknown = findUnknownChannels(
    documents.map(({ document }) => document),
    names,
  );
  if (unknown.length === 0)
    return [
      names.length === 0
        ? { check, state: "note", text: "no channel is configured, and no policy of this folder names one" }
        : { check, state: "ok", text: `channels: ${names.join(", ")}` },
    ];
  const missing = [...new Set(unknown.map(({ channel }) => channel))].join(", ");
  return [
    {
      check,
      // If no channel is configured, approvers use the console. If channels are configured, the policy probably
      // misspells the name of a channel.
      state: names.length === 0 ? "note" : "problem",
      text: `policies name channels that the configuration does not define, so no one is notified there: ${missing}`,
      fix: "add them under channels in assent.yaml (docs/notifications.md)",
    },
  ];
}

async function checkService(): Promise<Finding[]> {
  let url: string;
  let apiKey: string | null;
  try {
    url = serviceUrl();
    apiKey = findAvailableKey(url);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return [{ check: "key", state: "problem", text: error.message }];
  }
  const service = createAssent({ url, apiKey, timeout: TIMEOUT_SECONDS, retries: 0 });
  const findings: Finding[] = [];
  try {
    const readiness = await readReadiness(service);
    findings.push(
      readiness.ready
        ? { check: "service", state: "ok", text: `${url} is ready` }
        : { check: "service", state: "problem", text: `${url} is not ready: ${describeFailedChecks(readiness)}` },
    );
    // The checks of features do not affect readiness.
    if (readiness.ready)
      for (const { name, detail, isHeld } of listFailedChecks(readiness))
        findings.push({ check: name, state: isHeld ? "note" : "problem", text: detail });
  } catch (error) {
    const fix = `start it with "${programCommand()} serve", or set ASSENT_URL to the address of the service`;
    return [{ check: "service", state: "problem", text: reasonOf(error), fix }];
  }
  findings.push(...(await checkClock(url)));
  if (apiKey === null)
    return [
      ...findings,
      {
        check: "key",
        state: "note",
        text: "no key is configured, so the key and the active policies were not checked",
        fix: `run "${programCommand()} login", or set ASSENT_API_KEY`,
      },
    ];
  try {
    const me = await service.call<Me>("GET", "/v1/me");
    return [...findings, ...checkKey(me), ...(await checkPolicies(service, me))];
  } catch (error) {
    const fix = `use another key: "${programCommand()} login", or ASSENT_API_KEY`;
    return [...findings, { check: "key", state: "problem", text: reasonOf(error), fix }];
  }
}

async function checkClock(url: string): Promise<Finding[]> {
  const check = "clock";
  const before = Date.now();
  let date: string | null;
  try {
    const response = await fetch(`${url}/readyz`, {
      signal: AbortSignal.timeout(TIMEOUT_SECONDS * 1000),
      redirect: "error",
    });
    await response.arrayBuffer();
    date = response.headers.get("date");
  } catch {
    return [];
  }
  const serverTime = Date.parse(date ?? "");
  if (Number.isNaN(serverTime)) return [{ check, state: "note", text: "the service does not send its time" }];
  // Allow for whole seconds in the Date header, and for the duration of the request.
  const early = before - serverTime - 1000;
  const late = serverTime - Date.now();
  const offset = Math.max(early, late);
  if (offset <= MAX_CLOCK_OFFSET_MS) return [{ check, state: "ok", text: "agrees with the clock of the service" }];
  return [
    {
      check,
      state: "problem",
      text: `this machine is ${Math.round(offset / 1000)} s ${late > 0 ? "behind" : "ahead of"} the service, so permits can look expired or not valid yet`,
      fix: "synchronise both clocks, for example with NTP",
    },
  ];
}

function checkKey({ key, scopes }: Me): Finding[] {
  const check = "key";
  const privileges = selectPrivileges(scopes);
  const details = [
    `"${key.name}"`,
    key.agent_id === null ? null : `for the agent ${key.agent_id}`,
    privileges.length === 0
      ? "cannot vote, change policies, manage keys or receive credentials"
      : `may ${privileges.join(", ")}`,
  ].filter((detail) => detail !== null);
  const findings: Finding[] = [{ check, state: "ok", text: details.join(", ") }];
  const left = key.expires_at === null ? Infinity : Date.parse(key.expires_at) - Date.now();
  if (left < EXPIRES_SOON_MS)
    findings.push({ check, state: "note", text: `expires at ${key.expires_at}`, fix: "create its successor in time" });
  return findings;
}

async function checkPolicies(service: Assent, { scopes }: Me): Promise<Finding[]> {
  const check = "policies";
  if (!scopes.includes("policies:read"))
    return [{ check, state: "note", text: "not checked, because the key lacks the scope policies:read" }];
  const page = await service.call<{ policies: { name: string; mode: string }[]; next_cursor: string | null }>(
    "GET",
    "/v1/policies?status=active&limit=100",
  );
  if (page.policies.length === 0)
    return [
      {
        check,
        state: "problem",
        text: "no policy is active, so the service denies every action",
        fix: `put policies into the policies folder ("${programCommand()} policy init" writes one), or activate one`,
      },
    ];
  const count = `${page.policies.length}${page.next_cursor === null ? "" : " or more"}`;
  return [{ check, state: "ok", text: `${count} active: ${page.policies.map(({ name }) => name).join(", ")}` }];
}

const reasonOf = (error: unknown): string =>
  error instanceof AssentError && error.status !== 0
    ? `${error.code}: ${error.message}`
    : String((error as Error).message);

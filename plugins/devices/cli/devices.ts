/** `assent devices`: enrols this machine, reports its hooks, lists devices and ends them. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { configFiles, loadConfig } from "../../../clients/hook/hook-config.ts";
import {
  describeMachine,
  readServiceUrl,
  reportHosts,
  type HostReport,
} from "../../../clients/hook/install/report-hooks.ts";
import { loadWritten, planConfig, writeConfig } from "../../../clients/hook/install/write-config.ts";
import { AssentError, createAssent, ServiceUnavailable, type Assent } from "../../../clients/typescript/index.ts";
import {
  colourText,
  type Command,
  CommandError,
  createClient,
  createPrivilegedClient,
  type DoctorCheck,
  EXIT_CODES,
  type Output,
  parseArguments,
  printJson,
  programCommand,
  readAllPages,
  toPrintable,
  usageError,
  VERSION,
  withNames,
  withServiceErrors,
} from "../../../src/command.ts";
import { readSignInOrigin, terminalChallenge, terminalCode } from "../../actions/api.ts";

/** Request timeout in seconds. Short, because a timer repeats reports. */
const TIMEOUT_SECONDS = 20;
/** Poll interval until the person has confirmed the machine. Milliseconds. */
const POLL_MS = 2000;
/** Time limit for the person to confirm. Milliseconds. */
const CONFIRM_MS = 10 * 60_000;

interface DeviceView {
  id: string;
  status: "active" | "attention" | "silent" | "ended";
  owner: string;
  agent_id: string;
  machine: { name: string; platform: string };
  reported_at: string | null;
  version: string | null;
  hooks: HostReport[];
}

export const devices: Command = {
  help: `usage: assent devices enrol [--url URL] [--json]
       assent devices report [--command COMMAND] [--json]
       assent devices list [--ended] [--json]
       assent devices end ID [--json]

enrol gives this machine a key of its own: you confirm it once in the console, and the key is written into
~/.config/assent/hook.json, which the hook reads. It belongs to you and is bound to an agent of yours.
Enrolling again replaces the key.
report tells the service which hosts on this machine run the hook. Run it at regular times (docs/fleet.md): the service notifies
when a hook is missing, or when a machine no longer reports.

  --url URL          the service; when absent, the address in the hook's configuration
  --command COMMAND  the command with which the hook was installed, if not by its path or as assent-hook
  --ended            list the devices whose key was revoked
  --json             print JSON

list and end need a key with keys:manage; list also works with users:read.

examples:
  assent devices enrol --url https://assent.example.com
  assent devices report
  assent devices end 019346a0-0000-7000-8000-000000000000
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      url: { type: "string" },
      command: { type: "string" },
      ended: { type: "boolean" },
      json: { type: "boolean" },
    });
    const [verb, target, ...more] = positionals;
    const { json = false } = values;
    if (more.length > 0) throw usageError(`unexpected argument "${more.join(" ")}"`);
    if (verb === "enrol" && target === undefined) await enrol(io, values.url, values.command, json);
    else if (verb === "report" && target === undefined) await report(io, values.command, json);
    else if (verb === "list" && target === undefined) await list(io, values.ended === true, json);
    else if (verb === "end" && target !== undefined) await end(io, target, json);
    else throw usageError("assent devices takes enrol, report, list, or end with the id of a device");
    return EXIT_CODES.ok;
  },
};

async function enrol(
  io: Output,
  givenUrl: string | undefined,
  command: string | undefined,
  json: boolean,
): Promise<void> {
  const { url, machine } = withConfigErrors(() => {
    // Check that the file can be changed before the service creates a key.
    planConfig(process.env, {}, []);
    return { url: givenUrl ?? readServiceUrl(process.env), machine: describeMachine(process.env) };
  });
  // The person waits at the terminal, and `waitForKey` repeats its request itself.
  const service = createAssent({ url, apiKey: null, timeout: TIMEOUT_SECONDS, retries: 0 });
  const origin = await readSignInOrigin(service, url);
  const verifier = randomBytes(32).toString("base64url");
  const challenge = terminalChallenge(verifier);
  const parameters = new URLSearchParams({ challenge, ...machine });
  io.err(
    `Open this link in a browser, sign in if needed, and type the code ${terminalCode(challenge)}:\n\n  ${origin}/#/enrol-device?${parameters}\n`,
  );
  const { device, key } = await withServiceErrors(() => waitForKey(service, verifier));
  const change = withConfigErrors(() => planConfig(process.env, { url, api_key: key }, ["wait"]));
  withConfigErrors(() => {
    writeConfig(change);
    loadWritten(process.env, change, url, key);
  });
  const reported = await sendReport(createAssent({ url, apiKey: key, timeout: TIMEOUT_SECONDS }), command);
  if (json) return printJson(io, { device: reported, file: change.path });
  io.out(
    `${colourText(io, "green", "enrolled")} ${toPrintable(device.machine.name)} as ${device.id}, for ${toPrintable(device.agent_id)} of ${toPrintable(device.owner)}; its key is in ${change.path}`,
  );
  printHooks(io, reported);
}

async function waitForKey(service: Assent, verifier: string): Promise<{ device: DeviceView; key: string }> {
  let advice = "";
  for (const end = performance.now() + CONFIRM_MS; performance.now() < end; await delay(POLL_MS))
    try {
      const { device, key } = (await service.call<{ device: unknown; key: unknown } | null>("POST", "/v1/devices", {
        verifier,
      })) ?? { device: null, key: null };
      if (typeof key === "string" && key !== "") return { device: readDevice(device), key };
      throw new CommandError(NOT_A_DEVICE, EXIT_CODES.failure);
    } catch (error) {
      const isWaiting =
        error instanceof ServiceUnavailable || (error instanceof AssentError && error.code === "DEVICE_UNCONFIRMED");
      if (!isWaiting) throw error;
      if (error instanceof ServiceUnavailable)
        advice = ", or the response with its key was lost; enrol again, which ends the device with that key";
    }
  throw new CommandError(`no one confirmed this machine within ten minutes${advice}`, EXIT_CODES.failure);
}

async function report(io: Output, command: string | undefined, json: boolean): Promise<void> {
  const { url, apiKey } = withConfigErrors(() => loadConfig(process.env));
  const device = await sendReport(createAssent({ url, apiKey, timeout: TIMEOUT_SECONDS }), command);
  if (json) printJson(io, device);
  else printHooks(io, device);
}

function sendReport(service: Assent, command: string | undefined): Promise<DeviceView> {
  const hooks = withConfigErrors(() => reportHosts(process.env, homedir(), command));
  const { id } = withConfigErrors(() => describeMachine(process.env));
  return withServiceErrors(async () =>
    readDevice(await service.call("POST", "/v1/devices/report", { machine_id: id, version: VERSION, hooks })),
  );
}

const NOT_A_DEVICE = "the response is not from Assent: it names no device; check the address of the service";

/**
 * Validates the members that this module prints, so that another program at the address cannot impersonate the service.
 */
function readDevice(value: unknown): DeviceView {
  const { id, machine, hooks } = (value ?? {}) as Partial<DeviceView>;
  const isReport = ({ host, state }: HostReport): boolean =>
    typeof host === "string" && ["present", "disabled", "missing"].includes(state);
  if (typeof id === "string" && typeof machine?.name === "string" && Array.isArray(hooks) && hooks.every(isReport))
    return value as DeviceView;
  throw new CommandError(NOT_A_DEVICE, EXIT_CODES.failure);
}

function printHooks(io: Output, { hooks }: DeviceView): void {
  if (hooks.length === 0) io.out("no host that runs agents was found for this user");
  for (const { host, state } of hooks)
    if (state === "present") io.out(`${colourText(io, "green", "ok     ")} ${toPrintable(host)} runs the hook`);
    else
      io.out(
        `${colourText(io, "red", state.padEnd(7))} ${toPrintable(host)}: ${
          state === "missing"
            ? `"assent hook install --host ${toPrintable(host)} --scope user" installs the hook`
            : `"assent hook doctor --host ${toPrintable(host)}" says which setting turns the hook off`
        }`,
      );
}

/**
 * Checks for `assent doctor` whether the hook's key belongs to a device, and the state of that device at the service.
 */
export async function findDeviceProblems(): Promise<Awaited<ReturnType<NonNullable<DoctorCheck["find"]>>>> {
  if (!configFiles(process.env).some((path) => existsSync(path))) return [];
  const check = "device";
  const program = programCommand();
  try {
    const { url, apiKey } = loadConfig(process.env);
    const service = createAssent({ url, apiKey, timeout: 10, retries: 0 });
    // The key of a device sees this device only.
    const found = (await service.call<{ devices?: DeviceView[] } | null>("GET", "/v1/devices"))?.devices;
    if (!Array.isArray(found)) throw new Error(NOT_A_DEVICE);
    const [device, other] = found;
    if (device === undefined || other !== undefined) return [];
    const { status, reported_at: last } = device;
    const reported = last === null ? "has never reported" : `reported at ${toPrintable(last)}`;
    if (status !== "active")
      return [
        {
          check,
          state: "problem",
          text: `this machine is enrolled, needs attention (${toPrintable(status)}), and ${reported}`,
          fix: `"${program} devices report" says which hook is missing`,
        },
      ];
    return [{ check, state: "ok", text: `this machine is enrolled, and ${reported}` }];
  } catch (error) {
    const text = `it could not be checked whether this machine is enrolled: ${toPrintable((error as Error).message)}`;
    return [{ check, state: "note", text, fix: `"${program} devices report" tries again` }];
  }
}

async function list(io: Output, ended: boolean, json: boolean): Promise<void> {
  const service = await createClient();
  const found = await readAllPages<DeviceView>(service, `/v1/devices?limit=100&ended=${ended}`, "devices");
  if (json) return printJson(io, { devices: found });
  if (found.length === 0) io.out(ended ? "no device has ended" : "no machine is enrolled");
  for (const { id, status, owner, machine, hooks, reported_at, version } of await withNames(service, found)) {
    const hosts = hooks.map(({ host, state }) => (state === "present" ? host : `${host} ${state.toUpperCase()}`));
    const last = reported_at === null ? "never reported" : `reported ${reported_at} with ${version}`;
    const summary = [machine.name, `of ${owner}`, hosts.join(", ") || "no host", last].join("; ");
    io.out(`${id} ${status === "active" ? status : status.toUpperCase()} ${toPrintable(summary)}`);
  }
}

async function end(io: Output, id: string, json: boolean): Promise<void> {
  const service = await createPrivilegedClient();
  const device = await withServiceErrors(() =>
    service.call<DeviceView>("DELETE", `/v1/devices/${encodeURIComponent(id)}`),
  );
  if (json) printJson(io, device);
  else io.out(`ended ${toPrintable(device.machine.name)}: its key is revoked`);
}

/** Converts an error of the hook's files to a CommandError with the same message. */
function withConfigErrors<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new CommandError((error as Error).message);
  }
}

/** `assent mcp doctor` checks that every server of a client is behind the proxy, and that the proxy starts. */
import {
  colourText,
  CommandError,
  EXIT_CODES,
  type Output,
  parseArguments,
  printJson,
  programCommand,
  readLogin,
  type StoredLogin,
  toPrintable,
  usageError,
} from "../../../src/command.ts";
import { checkKey } from "../../settings/check-key.ts";
import { checkServers, type FindingState, needsStoredKey } from "./check-servers.ts";
import { parseClient, readExistingSettings } from "./client-settings.ts";

export async function doctor(args: string[], io: Output): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    client: { type: "string" },
    scope: { type: "string" },
    json: { type: "boolean" },
  });
  if (positionals.length > 0) throw usageError("assent mcp doctor takes options only");
  const client = parseClient(values.client);
  const findings: { state: FindingState; text: string }[] = [];
  const report = (state: FindingState, text: string): void => {
    const mark = { ok: "green", problem: "red", note: "yellow" } as const;
    if (values.json !== true) io.out(`${colourText(io, mark[state], state.padEnd(7))}  ${toPrintable(text)}`);
    findings.push({ state, text });
  };

  const files = readExistingSettings(client, values.scope);
  if (files.length === 0) report("note", `${client} has no settings with servers here`);
  const usesStoredKey = files.length === 0 || files.some(({ text }) => needsStoredKey(text, client));
  const { login, fault } = usesStoredKey ? await readKey() : { login: null, fault: null };
  if (usesStoredKey)
    report(fault === null ? "ok" : "problem", fault ?? "the stored key is valid, and acts as one agent");
  for (const { path, text } of files) await checkServers({ path, text, client, login, agent: null }, report);
  if (values.json === true) printJson(io, { findings });
  return findings.some(({ state }) => state === "problem") ? EXIT_CODES.failure : EXIT_CODES.ok;
}

/** Returns the stored login and a fault of it. The login is null if it does not work. */
async function readKey(): Promise<{ login: StoredLogin | null; fault: string | null }> {
  try {
    const login = readLogin();
    if (login === null)
      return {
        login,
        fault: `no key is stored for the proxy; run "${programCommand()} login" with a key of the agent`,
      };
    const { faults } = await checkKey({ ...login, agent: null });
    return faults.length === 0
      ? { login, fault: null }
      : { login: null, fault: `the stored key does not work: ${faults.join("; ")}` };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return { login: null, fault: error.message };
  }
}

import {
  actionExitCode,
  askYesOrNo,
  canAsk,
  CommandError,
  EXIT_CODES,
  type Output,
  parseArguments,
  toPrintable,
  usageError,
  withJsonReport,
  withServiceErrors,
} from "../../../src/command.ts";
import { createAssent } from "../../typescript/index.ts";
import {
  acceptDefinitions as acceptChanges,
  reviewDefinitions,
  definitionText,
  type DefinitionReview,
} from "../tools/acceptance.ts";
import { createDefinitionStore, INSTRUCTIONS_KEY, type DefinitionChange } from "../tools/accepted-definitions.ts";
import { createAgentIdResolver } from "../../typescript/agent-id.ts";
import { PROXY_FLAGS, readProxySetting, splitCommand } from "./proxy-flags.ts";

export async function accept(args: string[], io: Output): Promise<number> {
  const { ours, command } = splitCommand(args);
  const options = { ...PROXY_FLAGS, yes: { type: "boolean", short: "y" }, json: { type: "boolean" } } as const;
  const { values, positionals } = parseArguments(ours, options);
  const { json, ...rest } = values;
  return withJsonReport(io, json, (report) => acceptAll(rest, positionals, command, report));
}

async function acceptAll(
  { yes, ...values }: Parameters<typeof readProxySetting>[0] & { yes?: boolean },
  positionals: readonly string[],
  command: string[],
  io: Output,
): Promise<number> {
  const { config, url, apiKey, folder, log } = readProxySetting(values, command, io);
  const unknown = positionals.find((name) => !config.servers.some((server) => server.name === name));
  if (unknown !== undefined)
    throw usageError(`there is no server "${unknown}"; there are ${config.servers.map(({ name }) => name).join(", ")}`);
  const store = createDefinitionStore(folder);
  const assent = createAssent({ url, apiKey });
  const agentId = createAgentIdResolver(assent, config.agent, "--agent");
  let exit: number = EXIT_CODES.ok;
  for (const server of config.servers.filter(({ name }) => positionals.length === 0 || positionals.includes(name))) {
    const examined = await reviewDefinitions(server, store, log).catch((error: unknown) => {
      throw new CommandError(error instanceof Error ? error.message : String(error));
    });
    if (examined.changes.length === 0) {
      io.out(`${server.name}: unchanged since it was accepted`);
      continue;
    }
    show(examined, io);
    if (yes !== true && !(await isAgreed(server.name, io))) {
      io.err(`${server.name}: nothing was accepted`);
      exit = EXIT_CODES.failure;
      continue;
    }
    const action = await withServiceErrors(async () =>
      acceptChanges(examined, { assent, agentId: await agentId(), store, wait: config.wait ?? 0 }),
    );
    if (action.status === "succeeded") io.out(`${server.name}: accepted, recorded as action ${action.id}`);
    else {
      io.err(`${server.name}: not accepted: action ${action.id} is ${action.status}: ${toPrintable(action.reason)}`);
      exit = actionExitCode(action);
    }
  }
  return exit;
}

/** Prints the changed definitions. Replaces control characters, because the definitions come from the server. */
function show({ server, changes }: DefinitionReview, io: Output): void {
  io.out(`${server.name}: ${changes.length} ${changes.length === 1 ? "definition differs" : "definitions differ"}`);
  for (const change of changes) for (const line of linesOf(change)) io.out(line);
}

function linesOf({ name, kind, before, now }: DefinitionChange): string[] {
  const signed = (sign: string, text: string): string[] =>
    text === "" ? [] : text.split("\n").map((line) => `    ${sign} ${toPrintable(line)}`);
  const texts =
    definitionText(before) === definitionText(now)
      ? []
      : [...signed("-", definitionText(before)), ...signed("+", definitionText(now))];
  const others = [...new Set([...Object.keys(before?.definition ?? {}), ...Object.keys(now?.definition ?? {})])].filter(
    (key) =>
      key !== "description" &&
      key !== "instructions" &&
      kind === "changed" &&
      JSON.stringify(before?.definition[key]) !== JSON.stringify(now?.definition[key]),
  );
  return [
    `  ${kind.padEnd(8)}${name === INSTRUCTIONS_KEY ? "(the server's instructions)" : toPrintable(name)}`,
    ...texts,
    ...others.flatMap((key) => [
      ...signed("-", `${key}: ${JSON.stringify(before?.definition[key]) ?? ""}`),
      ...signed("+", `${key}: ${JSON.stringify(now?.definition[key]) ?? ""}`),
    ]),
  ];
}

function isAgreed(name: string, io: Output): Promise<boolean> {
  if (!canAsk(io)) throw usageError("a person must review the changes; run this in a terminal, or pass --yes");
  return askYesOrNo(`accept these definitions of ${name}?`);
}

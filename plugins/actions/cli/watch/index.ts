/** `assent watch`: lists the requests that wait for approval as they arrive, and votes on them. */
import { clearScreenDown, createInterface, cursorTo, type Interface, moveCursor } from "node:readline";
import { type ActionRecord, type Assent, AssentError } from "../../../../clients/typescript/index.ts";
import {
  type Command,
  CommandError,
  createClient,
  EXIT_CODES,
  type Output,
  parseArguments,
  printJson,
  serviceUrl,
  toPrintable,
  usageError,
  withServiceErrors,
} from "../../../../src/command.ts";
import { HELP, WatchCommands } from "./commands.ts";
import { followPending, type PendingQuery } from "./follow-pending.ts";
import { requestCells } from "./rows.ts";
import { signInTerminal, type TerminalSession } from "./terminal-session.ts";

export const watch: Command = {
  help: `usage: assent watch [--agent AGENT] [--tool TOOL] [--list] [--json]

On a terminal, it first asks you to sign in: open the link that it prints in a browser and type the code. It then lists the
requests that you can approve, live, and takes these commands:

${HELP}

Each vote is asked for after the request was shown, and is only valid for that request. The session is stored nowhere, can only
read, vote and ask, and ends with the command, with the session of the browser, or when you end it in the console. A rule that
requires a passkey's signature needs the console.

Without a terminal, with --list and with --json it only lists, with the key of ASSENT_API_KEY or "assent login", one line for
each change: pending or the new status, id, agent, tool, operation, deadline and request, separated by tabs.

  --agent AGENT    only requests of this agent
  --tool TOOL      only requests of this tool
  --list           only list: no sign-in, no votes
  --json           print each change as a JSON object

examples:
  assent watch
  assent watch --list --agent support-bot
  assent watch --json | jq -r .action.id
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      agent: { type: "string" },
      tool: { type: "string" },
      list: { type: "boolean" },
      json: { type: "boolean" },
    });
    if (positionals.length > 0) throw usageError("assent watch takes options only");
    const query = { agent_id: values.agent, tool: values.tool };
    const isInteractive = process.stdin.isTTY === true && process.stdout.isTTY === true;
    const stop = new AbortController();
    const abort = (): void => stop.abort();
    // SIGHUP means that the terminal was closed.
    const signals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
    for (const signal of signals) process.once(signal, abort);
    try {
      if (isInteractive && values.list !== true && values.json !== true)
        await vote(await signInTerminal({ url: serviceUrl(), signal: stop.signal }, io), query, io, stop);
      else await printChanges(await createClient(), query, io, { json: values.json === true, signal: stop.signal });
    } catch (error) {
      // An interrupted sign-in is not a failure.
      if (error instanceof CommandError || !stop.signal.aborted) throw error;
    } finally {
      for (const signal of signals) process.off(signal, abort);
    }
    return EXIT_CODES.ok;
  },
};

/** Prints every change until the signal aborts. */
export async function printChanges(
  service: Assent,
  query: PendingQuery,
  io: Output,
  { json, signal }: { json: boolean; signal: AbortSignal },
): Promise<void> {
  const follow = followPending(service, query, { signal, onStatus: statusPrinter(io) });
  const print = (event: string, action: ActionRecord): void =>
    json ? printJson(io, { event, action }) : io.out(requestCells(event, action).join("\t"));
  await withServiceErrors(async () => {
    for await (const { added, removed } of follow) {
      for (const action of removed) if (action.status !== "pending_approval") print(action.status, action);
      for (const action of added) print("pending", action);
    }
  });
}

/** Lists requests and votes on them until the person quits. */
async function vote(
  { service, user, end }: TerminalSession,
  query: PendingQuery,
  io: Output,
  stop: AbortController,
): Promise<void> {
  const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: "> " });
  const above = printingAbove(io, lines, stop.signal);
  const commands = new WatchCommands(service, above);
  above.out(`signed in as ${toPrintable(user)}; "q" ends the session\n${HELP}`);
  const showPrompt = (): void => {
    if (stop.signal.aborted) return;
    lines.setPrompt(commands.prompt);
    lines.prompt(true);
  };
  lines.on("close", () => stop.abort()).on("SIGINT", () => lines.close());
  const reading = readLines(lines, commands, showPrompt).finally(() => stop.abort());
  try {
    const follow = followPending(
      service,
      { ...query, view: "mine" },
      { signal: stop.signal, onStatus: statusPrinter(above) },
    );
    await withServiceErrors(async () => {
      try {
        for await (const changes of follow) {
          commands.update(changes);
          showPrompt();
        }
      } catch (error) {
        throw error instanceof AssentError && error.code === "MISSING_CREDENTIAL"
          ? new CommandError("your session has ended; start the command again to sign in")
          : error;
      }
    });
  } finally {
    lines.close();
    // The cursor is after the prompt, unless the person ended the line with Enter.
    if (!(await reading)) process.stdout.write("\n");
    await end();
  }
}

/** Resolves to true if the person quit with a command. */
async function readLines(lines: Interface, commands: WatchCommands, showPrompt: () => void): Promise<boolean> {
  showPrompt();
  for await (const line of lines) {
    if (!(await commands.run(line))) return true;
    showPrompt();
  }
  return false;
}

/**
 * Prints above the prompt and the line that the person is typing, which can have several rows in a narrow window.
 * @param signal aborts when there is no longer a prompt
 */
function printingAbove(io: Output, lines: Interface, signal: AbortSignal): Output {
  const above = (print: (text: string) => void) => (text: string) => {
    if (signal.aborted) {
      print(text);
      return;
    }
    const { rows } = lines.getCursorPos();
    moveCursor(process.stdout, 0, -rows);
    cursorTo(process.stdout, 0);
    clearScreenDown(process.stdout);
    print(text);
    // Reset the rows, because Node would otherwise move up by the rows of the line that it drew last, and overwrite the
    // text.
    Object.assign(lines, { prevRows: 0 });
    lines.prompt(true);
  };
  return { ...io, out: above(io.out), err: above(io.err) };
}

function statusPrinter(io: Output): (fault: string | null) => void {
  return (fault) => io.err(fault === null ? "connected again" : `${toPrintable(fault)}; trying again`);
}

/** `assent policy`: dispatches to its subcommands. */
import { listBuiltInCommands } from "../../config/built-in-plugins.ts";
import { describeSubcommands, runSubcommand, type Command, type Subcommand } from "../command.ts";
import { check } from "./check.ts";
import { diff } from "./diff.ts";
import { explain } from "./explain.ts";
import { fmt } from "./fmt.ts";
import { init } from "./init.ts";
import { test } from "./test.ts";

const OWN_SUBCOMMANDS: Readonly<Record<string, Subcommand>> = { init, check, test, fmt, diff, explain };

/** Returns the command with its own subcommands and those of features. */
export async function loadPolicy(): Promise<Command> {
  const subcommands: Record<string, Subcommand> = { ...OWN_SUBCOMMANDS };
  for (const [name, load] of Object.entries(listBuiltInCommands("policy")))
    subcommands[name] = (await load()).default as Subcommand;
  return {
    help: `usage: assent policy VERB [options]

${describeSubcommands(subcommands)}

"assent policy VERB --help" describes a verb. The default FOLDER is ASSENT_POLICIES, or ./policies.
exits: 0 done, 1 something is wrong with the policies, 2 wrong usage or unreadable input

examples:
  assent policy init
  assent policy check
  assent policy test --min-coverage 100`,
    subcommands,
    run: (args, io) => runSubcommand("policy", subcommands, args, io),
  };
}

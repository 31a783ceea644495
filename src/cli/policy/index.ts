/** `assent policy`: dispatches to its subcommands. */
import { listBuiltInCommands } from "../../config/built-in-plugins.ts";
import { findSimilarName as suggestName } from "../../domain/similar-name.ts";
import { usageError, type Command, type Subcommand } from "../command.ts";
import { check } from "./check.ts";
import { diff } from "./diff.ts";
import { explain } from "./explain.ts";
import { fmt } from "./fmt.ts";
import { init } from "./init.ts";
import { test } from "./test.ts";

const OWN: Readonly<Record<string, Subcommand>> = {
  init,
  check,
  test,
  fmt,
  diff,
  explain,
};

/** Returns the command with its own subcommands, and with those that features add. */
export async function loadPolicy(): Promise<Command> {
  const subcommands: Record<string, Subcommand> = { ...OWN };
  for (const [name, load] of Object.entries(listBuiltInCommands("policy")))
    subcommands[name] = (await load()).default as Subcommand;
  return {
    help: `usage: assent policy VERB [options]

${Object.entries(subcommands)
  .map(([name, { summary }]) => `  ${name.padEnd(14)}${summary}`)
  .join("\n")}

"assent policy VERB --help" describes a verb. The default FOLDER is ASSENT_POLICIES, or ./policies.
exits: 0 done, 1 something is wrong with the policies, 2 wrong usage or unreadable input

examples:
  assent policy init
  assent policy check
  assent policy test --min-coverage 100
  assent policy backtest --against store --since 30d`,
    subcommands,
    async run(args, io) {
      const [name, ...rest] = args;
      const verb = name !== undefined && Object.hasOwn(subcommands, name) ? subcommands[name] : undefined;
      if (verb !== undefined) return verb.run(rest, io);
      const names = Object.keys(subcommands);
      const suggestion = name === undefined ? null : suggestName(name, names);
      throw usageError(
        `${name === undefined ? "assent policy needs a subcommand" : `assent policy has no subcommand "${name}"`}; use ${names.slice(0, -1).join(", ")} or ${names.at(-1)}${suggestion === null ? "" : `; did you mean "${suggestion}"?`}`,
      );
    },
  };
}

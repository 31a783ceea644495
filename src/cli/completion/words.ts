/** Finds the words that can follow each command, from the help text, which contains every subcommand and option. */
import type { Command, ListedCommand } from "../command.ts";

/** A word that a shell offers for completion. */
interface Word {
  text: string;
  /** Description that the shell shows next to the word; empty if there is none. */
  summary: string;
}

/** The words that can follow a command line such as `assent keys create`. */
export interface WordList {
  /** Command and subcommand. Empty for the list of commands. */
  path: readonly string[];
  words: readonly Word[];
}

const OPTION = /--[a-z][a-z-]*/g;

/**
 * Returns the words that can follow `assent`, each command, and each subcommand. The first list contains the names of the
 * commands.
 */
export function completionWords(commands: ReadonlyMap<string, ListedCommand>): WordList[] {
  const start = [...commands].map(([text, { summary }]) => ({ text, summary }));
  return [
    { path: [], words: start },
    ...[...commands].flatMap(([name, command]) => {
      const verbs = listSubcommands(name, command);
      return [
        { path: [name], words: [...verbs, ...optionsIn(command.help, null)] },
        ...verbs.map(({ text }) => {
          const childCommands = command.subcommands?.[text];
          return {
            path: [name, text],
            words: optionsIn((childCommands ?? command).help, childCommands === undefined ? text : null),
          };
        }),
      ];
    }),
  ];
}

/**
 * Returns the names of `subcommands`. If the command declares none, returns the lowercase words in its usage lines,
 * such as `create` in `assent keys create NAME`.
 */
export function listSubcommands(name: string, { help, subcommands: verbs }: Command): Word[] {
  if (verbs !== undefined) return Object.entries(verbs).map(([text, { summary }]) => ({ text, summary }));
  const found = usageLines(help).flatMap((line) => {
    const word = new RegExp(`^assent ${name} ([a-z|-]+)(?: |$)`).exec(line)?.[1];
    return word === undefined || word.startsWith("-") ? [] : word.split("|");
  });
  return [...new Set(found)].map((text) => ({ text, summary: "" }));
}

/** @param verb subcommand whose usage lines are read; null for all lines */
function optionsIn(help: string, verb: string | null): Word[] {
  const lines = help.split("\n");
  const described = new Map<string, string>();
  for (const line of lines) {
    const [, option, summary] = /^ {2}(--[a-z][a-z-]*)\S*(?: \S+)*? {2,}(.+)$/.exec(line) ?? [];
    if (option !== undefined) described.set(option, summary ?? "");
    else
      for (const named of /^ {2}(?:-{1,2}[a-z-]+(?: [A-Z]+)?(?:, |$))+/.exec(line)?.[0].match(OPTION) ?? [])
        described.set(named, "");
  }
  const inUsage = usageLines(help)
    .filter((line) => verb === null || line.split(/[ |]/)[2] === verb)
    .flatMap((line) => line.match(OPTION) ?? []);
  const names = verb === null ? [...inUsage, ...described.keys()] : inUsage;
  return [...new Set([...names, "--help"])].map((text) => ({ text, summary: described.get(text) ?? "" }));
}

/** Returns the usage with one line for each form. Joins continuation lines. */
function usageLines(help: string): string[] {
  const [usage = ""] = help.replace(/^usage: /, "").split("\n\n");
  return usage
    .replaceAll(/\n\s+(?!\s|assent )/g, " ")
    .split("\n")
    .map((line) => line.trim());
}

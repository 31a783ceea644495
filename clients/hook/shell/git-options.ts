/** Writes git's abbreviated options in full: git accepts every beginning of an option that only one option has. */
import type { ShellArgument } from "./shell-types.ts";

/** All long options of the commands on whose options the pack "coding-agents" decides. */
const OPTIONS: Readonly<Record<string, string>> = {
  push:
    "verbose quiet repo all mirror delete tags dry-run porcelain force force-with-lease force-if-includes recurse-submodules thin " +
    "receive-pack exec set-upstream progress prune no-verify verify follow-tags signed atomic push-option ipv4 ipv6 branches",
};

export function fullGitOptions(args: readonly ShellArgument[]): readonly ShellArgument[] {
  const [verb, ...rest] = args;
  const known = OPTIONS[verb?.text ?? ""]?.split(" ");
  if (verb === undefined || known === undefined) return args;
  const end = rest.findIndex(({ text }) => text === "--");
  return [
    verb,
    ...rest.map((argument, at) => {
      const [, name, value = ""] = /^--([a-z-]+)(=.*)?$/s.exec(argument.text) ?? [];
      if (name === undefined || known.includes(name) || (end >= 0 && at > end)) return argument;
      const candidates = known.filter((option) => option.startsWith(name));
      return candidates.length === 1 ? { ...argument, text: `--${candidates[0] as string}${value}` } : argument;
    }),
  ];
}

/** `assent completion` prints a script that lets a shell complete commands and options. */
import { EXIT_CODES, parseArguments, usageError, type Command, type ListedCommand } from "../command.ts";
import { bashScript, fishScript, zshScript } from "./scripts.ts";
import { completionWords, type WordList } from "./words.ts";

const SCRIPTS: Readonly<Record<string, (lists: readonly WordList[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** @param load resolves to all commands, including those of plugins */
export function completion(load: () => Promise<ReadonlyMap<string, ListedCommand>>): Command {
  return {
    help: `usage: assent completion bash|zsh|fish

Prints a script that completes commands, subcommands and options, including those of the configured plugins. It is for a program
named assent on the PATH. Run it again after an update.

examples:
  assent completion bash > ~/.local/share/bash-completion/completions/assent
  assent completion zsh > ~/.zfunc/_assent
  assent completion fish > ~/.config/fish/completions/assent.fish
`,
    async run(args, io) {
      const { positionals } = parseArguments(args, {});
      const [shell = "", ...more] = positionals;
      const script = Object.hasOwn(SCRIPTS, shell) && more.length === 0 ? SCRIPTS[shell] : undefined;
      if (script === undefined) throw usageError(`assent completion needs a shell: ${Object.keys(SCRIPTS).join(", ")}`);
      io.out(script(completionWords(await load())).trimEnd());
      return EXIT_CODES.ok;
    },
  };
}

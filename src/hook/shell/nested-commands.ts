/** What a command starts in turn: shells, wrappers, `find -exec`, `eval`. */
import type { ShellArgument, ShellReader } from "./parse.ts";
import { evaluationReason } from "./evaluated-arguments.ts";
import { fileArguments } from "./text-arguments.ts";
import {
  INTERPRETERS,
  isHarmlessAssignment,
  OPAQUE_WRAPPERS,
  OTHER_SHELLS,
  SHELLS,
  WRAPPERS,
  type Wrapper,
} from "./command-tables.ts";

const ASSIGNMENT = /^([A-Za-z_]\w*)=(.*)$/s;
/** Those of `set` that change no command's meaning. */
const HARMLESS_SET_OPTION = /^([-+][euxo]+|pipefail|errexit|nounset|xtrace)$/;
const STATE_BUILTINS = new Set(
  "shopt enable hash bind complete compgen unset unalias umask ulimit setopt unsetopt autoload zmodload emulate".split(
    " ",
  ),
);
const DECLARATION_BUILTINS = new Set("export declare typeset local readonly".split(" "));
const FIND_EXEC_OPTIONS = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

export class NestedCommands {
  private readonly reader: ShellReader;
  constructor(reading: ShellReader) {
    this.reader = reading;
  }

  /** `input` is what a here-document gives it; null when that is not known, or something else does. */
  read(argv: readonly ShellArgument[], via: readonly string[], depth: number, input: string | null): void {
    const [first, ...args] = argv;
    if (first === undefined) return;
    const name = this.reader.directories.commandName(first);
    const inside = [...via, name];
    const record = (): void => this.reader.recordCommand(first, args, via);
    if (inside.length > 16) return this.reader.note("size");
    if (!first.isLiteral) return record();

    if (SHELLS.has(name)) return this.readShell(args, inside, depth, input, record);
    if (OTHER_SHELLS.has(name)) this.reader.note("shell");
    if (OPAQUE_WRAPPERS.has(name)) this.reader.note("wrapper");
    if (STATE_BUILTINS.has(name)) this.reader.note("state");
    switch (name) {
      case "eval":
        return this.text(args, inside, depth);
      case ".":
      case "source":
        this.reader.note("script");
        return record();
      case "trap":
        return this.readTrap(args, inside, depth);
      case "alias":
        this.reader.note("alias");
        for (const { text } of args) this.reader.readScript(text.slice(text.indexOf("=") + 1), inside, depth + 1);
        return;
      case "su":
        this.reader.note("wrapper");
        return record();
      case "cd":
      case "pushd":
        this.reader.directories.changeFolder(args);
        return record();
      case "popd":
        this.reader.note("directory");
        return record();
      case "set":
        if (!args.every(({ text }) => HARMLESS_SET_OPTION.test(text))) this.reader.note("state");
        return record();
      case "command":
        // Only looks for a command.
        if (/^-[vV]$/.test(args[0]?.text ?? "")) return record();
        break;
      case "let":
        this.reader.note("expansion");
        return record();
      case "read":
      case "mapfile":
      case "readarray":
        this.reader.note("assignment");
        return record();
      case "printf":
      case "test":
      case "[":
      case "exit": {
        const reason = evaluationReason(name, args);
        if (reason !== null) this.reader.note(reason);
        return record();
      }
      case "grep":
      case "egrep":
      case "fgrep":
      case "rg":
      case "sed":
        return this.reader.recordCommand(first, args, via, fileArguments(name, args));
      case "find":
        this.readFind(args, inside, depth);
        return record();
      case "git":
        return this.readGit(first, args, via);
    }
    if (DECLARATION_BUILTINS.has(name)) {
      for (const { text } of args) {
        this.noteAssignment(text);
        // Attributes turn values into expressions and names into other names; so does a subscript.
        if (!/^(-[px]|[A-Za-z_]\w*(=.*)?)$/s.test(text)) this.reader.note("assignment");
      }
      return record();
    }
    const wrapper = Object.hasOwn(WRAPPERS, name) ? (WRAPPERS[name] as Wrapper) : undefined;
    if (wrapper !== undefined) return this.readWrapper(name, wrapper, args, inside, depth, input, record);
    this.noteInterpreter(name, args);
    record();
  }

  private noteAssignment(text: string): void {
    const [, name, value] = ASSIGNMENT.exec(text) ?? [];
    if (name !== undefined && !isHarmlessAssignment(name, value as string)) this.reader.note("assignment");
  }

  /** `-` takes a handler away, `-l` and `-p` only show. */
  private readTrap(args: readonly ShellArgument[], via: readonly string[], depth: number): void {
    const [action] = args[0]?.text === "--" ? args.slice(1) : args;
    if (action === undefined || /^(-|-[lp]+)$/.test(action.text)) return;
    if (action.text.startsWith("-")) this.reader.note("wrapper");
    this.text([action], via, depth);
  }

  /** Words that are put together and run as a script. */
  private text(args: readonly ShellArgument[], via: readonly string[], depth: number): void {
    if (!args.every(({ isLiteral: clear }) => clear)) return this.reader.note("expansion");
    this.reader.readScript(args.map(({ text }) => text).join(" "), via, depth + 1);
  }

  private readShell(
    args: readonly ShellArgument[],
    via: readonly string[],
    depth: number,
    input: string | null,
    record: () => void,
  ): void {
    let takesText = false;
    let at = 0;
    for (; at < args.length; at++) {
      const { text, isLiteral: clear } = args[at] as ShellArgument;
      if (!clear) break;
      if (text === "--" || text === "-") {
        at++;
        break;
      }
      if (/^[-+][A-Za-z]+$/.test(text)) {
        if (text.includes("c")) takesText = true;
        // -o and -O take a word; -s reads standard input whatever follows; -i reads files of the user's.
        if (/[oO]/.test(text)) at++;
        if (/[si]/.test(text)) this.reader.note("stdin");
        continue;
      }
      if (!text.startsWith("-")) break;
      if (!["--login", "--norc", "--noprofile", "--posix", "--restricted"].includes(text)) this.reader.note("script");
    }
    const rest = args.slice(at);
    if (takesText) {
      const [script] = rest;
      if (script === undefined || !script.isLiteral) {
        this.reader.note("expansion");
        return record();
      }
      for (const argument of rest.slice(1)) this.reader.path(argument);
      return this.reader.readScript(script.text, via, depth + 1);
    }
    if (rest.length > 0) this.reader.note("script");
    else if (input !== null) return this.reader.readScript(input, via, depth + 1);
    else this.reader.note("stdin");
    record();
  }

  private readWrapper(
    name: string,
    wrapper: Wrapper,
    args: readonly ShellArgument[],
    via: readonly string[],
    depth: number,
    input: string | null,
    record: () => void,
  ): void {
    const rest = this.commandAfterOptions(wrapper, args);
    if (rest === null) {
      this.reader.note("wrapper");
      return record();
    }
    // `command -v ls` only looks; `env` alone shows all variables.
    if (rest.length === 0) return record();
    // Its arguments come from elsewhere.
    if (name === "xargs") this.reader.note("expansion");
    this.read(rest, via, depth, input);
  }

  /** What a wrapper runs; null when an option is not known. */
  private commandAfterOptions(wrapper: Wrapper, args: readonly ShellArgument[]): readonly ShellArgument[] | null {
    let positional = wrapper.positional ?? 0;
    let at = 0;
    for (; at < args.length; at++) {
      const { text, isLiteral: clear } = args[at] as ShellArgument;
      if (!clear) return null;
      if (text === "--") continue;
      const long = /^--([a-z-]+)(=.*)?$/s.exec(text);
      if (long !== null) {
        const option = long[1] as string;
        if (wrapper.longValues?.includes(option) === true) at += long[2] === undefined ? 1 : 0;
        else if (wrapper.long?.includes(option) !== true) return null;
      } else if (text.startsWith("-") && text !== "-") {
        const step = extraWords(wrapper, text.slice(1));
        if (step === null) return null;
        at += step;
      } else if (wrapper.assigns === true && ASSIGNMENT.test(text)) this.noteAssignment(text);
      else if (text === "-" && wrapper.assigns === true) continue;
      else if (positional > 0) positional--;
      else break;
    }
    return args.slice(at);
  }

  private readFind(args: readonly ShellArgument[], via: readonly string[], depth: number): void {
    for (let at = 0; at < args.length; at++) {
      if (!FIND_EXEC_OPTIONS.has((args[at] as ShellArgument).text)) continue;
      const end = args.findIndex(({ text }, i) => i > at && (text === ";" || text === "+"));
      const inner = args.slice(at + 1, end < 0 ? args.length : end);
      // The names that it finds are not in the text.
      this.reader.note("expansion");
      this.read(inner, via, depth, null);
      at += inner.length;
    }
  }

  /** Options before the subcommand: settings can run commands, and another folder has settings of its own. */
  private readGit(first: ShellArgument, args: readonly ShellArgument[], via: readonly string[]): void {
    let at = 0;
    for (; at < args.length; at++) {
      const { text } = args[at] as ShellArgument;
      if (["--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"].includes(text)) continue;
      if (!text.startsWith("-") || text === "--version") break;
      const folder = text === "-C" ? args[at + 1] : undefined;
      if (folder !== undefined) {
        at++;
        this.reader.directories.changeFolder([folder]);
        this.reader.path(folder);
        continue;
      }
      this.reader.note("wrapper");
      if (["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"].includes(text)) {
        const value = args[++at];
        if (value !== undefined) this.reader.path(value);
      }
    }
    this.reader.recordCommand(first, args.slice(at), via);
  }

  private noteInterpreter(name: string, args: readonly ShellArgument[]): void {
    const plain = name.replace(/[0-9.]+$/, "");
    const option = Object.hasOwn(INTERPRETERS, plain) ? INTERPRETERS[plain] : undefined;
    if (option === undefined) return;
    if (args.length === 1 && args[0]?.text === "--version") return;
    if (args.some(({ text }) => option.test(text))) this.reader.note("code");
    if (args.every(({ text }) => text.startsWith("-"))) this.reader.note("stdin");
  }
}

/** How many words the options in one word take beside it; null when one of them is not known. */
function extraWords({ flags, values }: Wrapper, letters: string): 0 | 1 | null {
  for (const [i, letter] of Array.from(letters).entries()) {
    if (values.includes(letter)) return i === letters.length - 1 ? 1 : 0;
    if (!flags.includes(letter)) return null;
  }
  return 0;
}

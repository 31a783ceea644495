/** What a command starts in turn: shells, wrappers, `find -exec`, `eval`. */
import type { Argument, Reading } from "./parse.ts";
import { reasonOfNumbers } from "./evaluated-arguments.ts";
import { withoutPattern } from "./text-arguments.ts";
import { INTERPRETERS, isHarmless, OPAQUE, OTHER_SHELLS, SHELLS, WRAPPERS, type Wrapper } from "./command-tables.ts";

const ASSIGNMENT = /^([A-Za-z_]\w*)=(.*)$/s;
/** Those of `set` that change no command's meaning. */
const SETTINGS = /^([-+][euxo]+|pipefail|errexit|nounset|xtrace)$/;
const STATE = new Set(
  "shopt enable hash bind complete compgen unset unalias umask ulimit setopt unsetopt autoload zmodload emulate".split(
    " ",
  ),
);
const DECLARES = new Set("export declare typeset local readonly".split(" "));
const EXEC = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

export class Runs {
  private readonly reading: Reading;
  constructor(reading: Reading) {
    this.reading = reading;
  }

  /** `input` is what a here-document gives it; null when that is not known, or something else does. */
  run(argv: readonly Argument[], via: readonly string[], depth: number, input: string | null): void {
    const [first, ...args] = argv;
    if (first === undefined) return;
    const name = this.reading.directories.commandName(first);
    const inside = [...via, name];
    const record = (): void => this.reading.record(first, args, via);
    if (inside.length > 16) return this.reading.note("size");
    if (!first.clear) return record();

    if (SHELLS.has(name)) return this.shell(args, inside, depth, input, record);
    if (OTHER_SHELLS.has(name)) this.reading.note("shell");
    if (OPAQUE.has(name)) this.reading.note("wrapper");
    if (STATE.has(name)) this.reading.note("state");
    switch (name) {
      case "eval":
        return this.text(args, inside, depth);
      case ".":
      case "source":
        this.reading.note("script");
        return record();
      case "trap":
        return this.trap(args, inside, depth);
      case "alias":
        this.reading.note("alias");
        for (const { text } of args) this.reading.script(text.slice(text.indexOf("=") + 1), inside, depth + 1);
        return;
      case "su":
        this.reading.note("wrapper");
        return record();
      case "cd":
      case "pushd":
        this.reading.directories.change(args);
        return record();
      case "popd":
        this.reading.note("directory");
        return record();
      case "set":
        if (!args.every(({ text }) => SETTINGS.test(text))) this.reading.note("state");
        return record();
      case "command":
        // Only looks for a command.
        if (/^-[vV]$/.test(args[0]?.text ?? "")) return record();
        break;
      case "let":
        this.reading.note("expansion");
        return record();
      case "read":
      case "mapfile":
      case "readarray":
        this.reading.note("assignment");
        return record();
      case "printf":
      case "test":
      case "[":
      case "exit": {
        const reason = reasonOfNumbers(name, args);
        if (reason !== null) this.reading.note(reason);
        return record();
      }
      case "grep":
      case "egrep":
      case "fgrep":
      case "rg":
      case "sed":
        return this.reading.record(first, args, via, withoutPattern(name, args));
      case "find":
        this.find(args, inside, depth);
        return record();
      case "git":
        return this.git(first, args, via);
    }
    if (DECLARES.has(name)) {
      for (const { text } of args) {
        this.assigns(text);
        // Attributes turn values into expressions and names into other names; so does a subscript.
        if (!/^(-[px]|[A-Za-z_]\w*(=.*)?)$/s.test(text)) this.reading.note("assignment");
      }
      return record();
    }
    const wrapper = Object.hasOwn(WRAPPERS, name) ? (WRAPPERS[name] as Wrapper) : undefined;
    if (wrapper !== undefined) return this.wrapped(name, wrapper, args, inside, depth, input, record);
    this.interpreter(name, args);
    record();
  }

  private assigns(text: string): void {
    const [, name, value] = ASSIGNMENT.exec(text) ?? [];
    if (name !== undefined && !isHarmless(name, value as string)) this.reading.note("assignment");
  }

  /** `-` takes a handler away, `-l` and `-p` only show. */
  private trap(args: readonly Argument[], via: readonly string[], depth: number): void {
    const [action] = args[0]?.text === "--" ? args.slice(1) : args;
    if (action === undefined || /^(-|-[lp]+)$/.test(action.text)) return;
    if (action.text.startsWith("-")) this.reading.note("wrapper");
    this.text([action], via, depth);
  }

  /** Words that are put together and run as a script. */
  private text(args: readonly Argument[], via: readonly string[], depth: number): void {
    if (!args.every(({ clear }) => clear)) return this.reading.note("expansion");
    this.reading.script(args.map(({ text }) => text).join(" "), via, depth + 1);
  }

  private shell(
    args: readonly Argument[],
    via: readonly string[],
    depth: number,
    input: string | null,
    record: () => void,
  ): void {
    let takesText = false;
    let at = 0;
    for (; at < args.length; at++) {
      const { text, clear } = args[at] as Argument;
      if (!clear) break;
      if (text === "--" || text === "-") {
        at++;
        break;
      }
      if (/^[-+][A-Za-z]+$/.test(text)) {
        if (text.includes("c")) takesText = true;
        // -o and -O take a word; -s reads standard input whatever follows; -i reads files of the user's.
        if (/[oO]/.test(text)) at++;
        if (/[si]/.test(text)) this.reading.note("stdin");
        continue;
      }
      if (!text.startsWith("-")) break;
      if (!["--login", "--norc", "--noprofile", "--posix", "--restricted"].includes(text)) this.reading.note("script");
    }
    const rest = args.slice(at);
    if (takesText) {
      const [script] = rest;
      if (script === undefined || !script.clear) {
        this.reading.note("expansion");
        return record();
      }
      for (const argument of rest.slice(1)) this.reading.path(argument);
      return this.reading.script(script.text, via, depth + 1);
    }
    if (rest.length > 0) this.reading.note("script");
    else if (input !== null) return this.reading.script(input, via, depth + 1);
    else this.reading.note("stdin");
    record();
  }

  private wrapped(
    name: string,
    wrapper: Wrapper,
    args: readonly Argument[],
    via: readonly string[],
    depth: number,
    input: string | null,
    record: () => void,
  ): void {
    const rest = this.behindOptions(wrapper, args);
    if (rest === null) {
      this.reading.note("wrapper");
      return record();
    }
    // `command -v ls` only looks; `env` alone shows all variables.
    if (rest.length === 0) return record();
    // Its arguments come from elsewhere.
    if (name === "xargs") this.reading.note("expansion");
    this.run(rest, via, depth, input);
  }

  /** What a wrapper runs; null when an option is not known. */
  private behindOptions(wrapper: Wrapper, args: readonly Argument[]): readonly Argument[] | null {
    let positional = wrapper.positional ?? 0;
    let at = 0;
    for (; at < args.length; at++) {
      const { text, clear } = args[at] as Argument;
      if (!clear) return null;
      if (text === "--") continue;
      const long = /^--([a-z-]+)(=.*)?$/s.exec(text);
      if (long !== null) {
        const option = long[1] as string;
        if (wrapper.longValues?.includes(option) === true) at += long[2] === undefined ? 1 : 0;
        else if (wrapper.long?.includes(option) !== true) return null;
      } else if (text.startsWith("-") && text !== "-") {
        const step = stepOf(wrapper, text.slice(1));
        if (step === null) return null;
        at += step;
      } else if (wrapper.assigns === true && ASSIGNMENT.test(text)) this.assigns(text);
      else if (text === "-" && wrapper.assigns === true) continue;
      else if (positional > 0) positional--;
      else break;
    }
    return args.slice(at);
  }

  private find(args: readonly Argument[], via: readonly string[], depth: number): void {
    for (let at = 0; at < args.length; at++) {
      if (!EXEC.has((args[at] as Argument).text)) continue;
      const end = args.findIndex(({ text }, i) => i > at && (text === ";" || text === "+"));
      const inner = args.slice(at + 1, end < 0 ? args.length : end);
      // The names that it finds are not in the text.
      this.reading.note("expansion");
      this.run(inner, via, depth, null);
      at += inner.length;
    }
  }

  /** Options before the subcommand: settings can run commands, and another folder has settings of its own. */
  private git(first: Argument, args: readonly Argument[], via: readonly string[]): void {
    let at = 0;
    for (; at < args.length; at++) {
      const { text } = args[at] as Argument;
      if (["--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"].includes(text)) continue;
      if (!text.startsWith("-") || text === "--version") break;
      const folder = text === "-C" ? args[at + 1] : undefined;
      if (folder !== undefined) {
        at++;
        this.reading.directories.change([folder]);
        this.reading.path(folder);
        continue;
      }
      this.reading.note("wrapper");
      if (["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"].includes(text)) {
        const value = args[++at];
        if (value !== undefined) this.reading.path(value);
      }
    }
    this.reading.record(first, args.slice(at), via);
  }

  private interpreter(name: string, args: readonly Argument[]): void {
    const plain = name.replace(/[0-9.]+$/, "");
    const option = Object.hasOwn(INTERPRETERS, plain) ? INTERPRETERS[plain] : undefined;
    if (option === undefined) return;
    if (args.length === 1 && args[0]?.text === "--version") return;
    if (args.some(({ text }) => option.test(text))) this.reading.note("code");
    if (args.every(({ text }) => text.startsWith("-"))) this.reading.note("stdin");
  }
}

/** How many words the options in one word take beside it; null when one of them is not known. */
function stepOf({ flags, values }: Wrapper, letters: string): 0 | 1 | null {
  for (const [i, letter] of Array.from(letters).entries()) {
    if (values.includes(letter)) return i === letters.length - 1 ? 1 : 0;
    if (!flags.includes(letter)) return null;
  }
  return 0;
}

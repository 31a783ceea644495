/** Reads the commands that another command starts: shells, wrappers, `find -exec`, `eval`. */
import type { WorkingFolders } from "./working-folders.ts";
import type { ShellArgument, UnclearReason } from "./shell-types.ts";
import { findEvaluationReason } from "./evaluated-arguments.ts";
import { isFilter, plainPrograms } from "./filter-programs.ts";
import { fileArguments, hasOnlyNames } from "./text-arguments.ts";
import { fullGitOptions } from "./git-options.ts";
import type { FileUse } from "./file-uses.ts";
import {
  canonicalTaskArguments,
  findTasks,
  isTaskRunner,
  runsInstalledProgram,
  UnknownTaskError,
} from "./tasks/find-tasks.ts";
import type { ProjectFiles, TaskBody } from "./tasks/task-body.ts";
import {
  INTERPRETERS,
  isHarmlessAssignment,
  DOWNLOADERS,
  NPM_PROGRAMS,
  OPAQUE_WRAPPERS,
  OTHER_SHELLS,
  SHELLS,
  STANDARD_TASKS,
  SUBCOMMAND_WRAPPERS,
  WRAPPERS,
  type Wrapper,
} from "./command-tables.ts";

const ASSIGNMENT = /^([A-Za-z_]\w*)=(.*)$/s;
/** Options of `set` that do not change the meaning of commands. */
const HARMLESS_SET_OPTION = /^([-+][euxo]+|pipefail|errexit|nounset|xtrace)$/;
const STATE_BUILTINS = new Set(
  "shopt enable hash bind complete compgen unset unalias umask ulimit setopt unsetopt autoload zmodload emulate".split(
    " ",
  ),
);
/** Builtins whose arguments are names of variables, numbers or jobs, and no files. */
const NAME_BUILTINS = new Set(
  "unset unalias umask ulimit exit return shift break continue getopts read wait kill fg bg disown".split(" "),
);
/** Names after which zsh or fish runs the next word as a command. */
const MODIFIERS = new Set("! - and begin not or repeat foreach".split(" "));
const DECLARATION_BUILTINS = new Set("export declare typeset local readonly".split(" "));
const FIND_EXEC_OPTIONS = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

const NO_OPTIONS: Wrapper = { flags: "", values: "" };
const DISPLAYS_FILES: FileUse = { opens: true, changes: false };
/**
 * A program outside the system's folders. Because of it, the line's new files in a folder for temporary files are not
 * exempt.
 */
const OBEYS_FILES: FileUse = { opens: false, changes: false, obeys: true };
const NO_DISPLAY: FileUse = { opens: false, changes: false };

/** The members of `ShellReader` (parse-command.ts) that nested commands use. */
interface CommandReader {
  readonly workingFolders: WorkingFolders;
  readonly project: ProjectFiles;
  /** The files that the standard input of the current command lists, one a line; null if they are unknown. */
  readonly input: readonly string[] | null;
  note(reason: UnclearReason): void;
  /** Returns the files that a command lists; null if they are unknown. */
  listFiles(name: string, args: readonly ShellArgument[]): readonly string[] | null;
  path(argument: ShellArgument, use: FileUse): void;
  readTask(body: TaskBody, via: readonly string[], depth: number, words?: readonly ShellArgument[]): void;
  readScript(text: string, via: readonly string[], depth: number): void;
  recordCommand(
    first: ShellArgument,
    args: readonly ShellArgument[],
    via: readonly string[],
    files?: readonly ShellArgument[],
  ): void;
}

export class NestedCommands {
  private readonly reader: CommandReader;
  /** Number of folders that the line pushed. */
  private pushed = 0;
  constructor(reading: CommandReader) {
    this.reader = reading;
  }

  /**
   * Reads one command.
   * @param input here-document on the command's standard input; null if the input is unknown
   */
  read(argv: readonly ShellArgument[], outer: readonly string[], depth: number, input: string | null): void {
    const [first] = argv;
    if (first === undefined) return;
    const name = this.reader.workingFolders.commandName(first);
    // The registry of npm can have an unrelated package with the name of a program, such as ninja.
    const isOther = DOWNLOADERS.has(outer.at(-1) ?? "") && !NPM_PROGRAMS.has(name);
    const via = isOther ? [...outer, "download"] : outer;
    const args = /^python[0-9.]*$/.test(name) ? withoutPythonFlags(argv.slice(1)) : argv.slice(1);
    const nestedVia = [...via, name];
    const record = (): void => this.reader.recordCommand(first, args, via, NAME_BUILTINS.has(name) ? [] : args);
    if (nestedVia.length > 16) return this.reader.note("size");
    if (!first.isLiteral) return record();

    if (SHELLS.has(name)) return this.readShell(args, nestedVia, depth, input, record);
    if (OTHER_SHELLS.has(name) || MODIFIERS.has(name)) this.reader.note("shell");
    if (OPAQUE_WRAPPERS.has(name) && !hasOnlyNames(name, args)) this.reader.note("wrapper");
    // Patterns count as if hidden files and all folders match anyway.
    const isPatternOption =
      name === "shopt" && /^-[su]( (globstar|nullglob|dotglob))+$/.test(args.map(({ text }) => text).join(" "));
    // Without these variables, the same programs run with the same files.
    const isHarmlessUnset = name === "unset" && args.every(({ text }) => isHarmlessAssignment(text, ""));
    if (STATE_BUILTINS.has(name) && !isPatternOption && !isHarmlessUnset) this.reader.note("state");
    switch (name) {
      case "eval":
        return this.text(args, nestedVia, depth);
      case ".":
      case "source":
        // A virtual environment only prepends its programs to PATH. An agent cannot change its folder without approval.
        if (args.length !== 1 || !/^(?:[\w./-]*\/)?[.]?venv\/bin\/activate$/.test(args[0]?.text ?? ""))
          this.reader.note("script");
        return record();
      case "trap":
        return this.readTrap(args, nestedVia, depth);
      case "alias":
        this.reader.note("alias");
        for (const { text } of args) this.reader.readScript(text.slice(text.indexOf("=") + 1), nestedVia, depth + 1);
        return;
      case "su":
        this.reader.note("wrapper");
        return record();
      case "cd":
      case "pushd":
        // Without arguments, `pushd` returns to an earlier folder.
        if (name === "pushd") {
          this.pushed++;
          this.reader.workingFolders.restoreAll();
        }
        record();
        return this.reader.workingFolders.changeFolder(args);
      case "popd":
        if (--this.pushed < 0) this.reader.note("directory");
        this.reader.workingFolders.restoreAll();
        return record();
      case "set":
        if (!args.every(({ text }) => HARMLESS_SET_OPTION.test(text))) this.reader.note("state");
        return record();
      case "command":
        // `command -v` and `command -V` only print information about the command.
        if (/^-[vV]$/.test(args[0]?.text ?? "")) return record();
        break;
      case "let":
        this.reader.note("expansion");
        return record();
      case "wait":
        // bash evaluates the subscript of the variable that `-p` names.
        if (args.some(({ text }) => /^-\w*p/.test(text))) this.reader.note("assignment");
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
        const reason = findEvaluationReason(name, args);
        if (reason !== null) this.reader.note(reason);
        return record();
      }
      case "grep":
      case "egrep":
      case "fgrep":
      case "rg":
        return this.reader.recordCommand(first, args, via, fileArguments(name, args));
      case "find":
        this.readFind(args, nestedVia, depth);
        return record();
      case "git":
        return this.readGit(first, args, via);
    }
    if (DECLARATION_BUILTINS.has(name)) {
      for (const { text } of args) {
        this.noteAssignment(text);
        // Attributes and subscripts turn values into expressions or name references.
        if (!/^(-[px]|[A-Za-z_]\w*(=.*)?)$/s.test(text)) this.reader.note("assignment");
      }
      // A value is text, as in `NAME=value` without a command.
      return this.reader.recordCommand(first, args, via, []);
    }
    const wrapper = Object.hasOwn(WRAPPERS, name) ? (WRAPPERS[name] as Wrapper) : undefined;
    if (wrapper !== undefined) return this.readWrapper(name, wrapper, args, nestedVia, depth, input, record);
    if (isTaskRunner(name) && this.readTasks(first, args, via, depth)) return;
    const command = args[0]?.text ?? "";
    if (SUBCOMMAND_WRAPPERS[name]?.includes(command) === true || runsInstalledProgram(name, command)) {
      const isWrapper = SUBCOMMAND_WRAPPERS[name]?.includes(command) === true;
      const wrapperVia = [...via, isWrapper ? `${name} ${command}` : name];
      return this.readWrapper(name, NO_OPTIONS, isWrapper ? args.slice(1) : args, wrapperVia, depth, input, record);
    }
    if (isFilter(name)) {
      const programs = plainPrograms(
        name,
        args.map(({ text }) => text),
      );
      if (programs === null) this.reader.note("code");
      // The suffix of a backup is not a file.
      const files = args.filter(
        ({ text }, at) => programs?.includes(at) !== true && !/^-i[.](bak|orig|old|tmp)$/.test(text),
      );
      return this.reader.recordCommand(first, args, via, files);
    }
    if (name.includes("/")) return this.readProgram(first, args, via, depth, record);
    this.noteInterpreter(name, args);
    record();
  }

  /** Reads what a task runner runs. Returns false if the runner starts an installed program instead. */
  private readTasks(
    first: ShellArgument,
    args: readonly ShellArgument[],
    via: readonly string[],
    depth: number,
  ): boolean {
    const name = this.reader.workingFolders.commandName(first);
    const words = args.map(({ text }) => text);
    const isWrapper = SUBCOMMAND_WRAPPERS[name]?.includes(words[0] ?? "") === true;
    try {
      const bodies = this.reader.workingFolders
        .all()
        .map((folder) => findTasks(name, words, folder, this.reader.project));
      const found = bodies.filter((each) => each !== null).flat();
      const isMissing = bodies.every((each) => each === null);
      if (found.length === 0 && (isWrapper || (isMissing && runsInstalledProgram(name, words[0] ?? "")))) return false;
      // Without a task of this name nothing runs. If the task is created before the line runs, only its name is known.
      if (isMissing && !words.some((word) => STANDARD_TASKS.has(word))) this.reader.note("script");
      const canonicalArgs = canonicalTaskArguments(name, words, found.length > 0);
      const plain = { isLiteral: true, startsWithTilde: false };
      this.reader.recordCommand(
        first,
        canonicalArgs.map((text) => args.find((each) => each.text === text) ?? { text, ...plain }),
        via,
      );
      for (const body of found) this.reader.readTask(body, [...via, name], depth);
    } catch (error) {
      if (!(error instanceof UnknownTaskError)) throw error;
      this.reader.note("script");
      this.reader.recordCommand(first, args, via);
    }
    return true;
  }

  /** Reads a program that is given by its path: a shell script, or an installed program of the project. */
  private readProgram(
    first: ShellArgument,
    args: readonly ShellArgument[],
    via: readonly string[],
    depth: number,
    record: () => void,
  ): void {
    const [, installed] = /^(?:\.\/)?(?:[\w.@-]+\/)*node_modules\/\.bin\/([\w.-]+)$/.exec(first.text) ?? [];
    if (installed !== undefined) this.reader.path(first, OBEYS_FILES);
    if (installed !== undefined)
      return this.read([{ ...first, text: installed }, ...args], [...via, "npx"], depth, null);
    // A program of a virtual environment, whose folder an agent cannot change without approval.
    const [, program] = /^(?:[\w./-]*\/)?[.]?venv\/bin\/([\w.-]+)$/.exec(first.text) ?? [];
    const isRelative = !first.text.startsWith("/") && !/(^|\/)\.\.\//.test(first.text);
    const folder = first.text.slice(0, first.text.lastIndexOf("/"));
    if (program !== undefined && (isRelative || this.reader.project.list(folder) !== null)) {
      return this.read([{ ...first, text: program }, ...args], [...via, "uv run"], depth, null);
    }
    const texts = this.scriptTexts(first);
    // These wrapper scripts start known programs. If a script is missing, a file with any content could be created in
    // its place.
    if (/(^|\/)(gradlew|mvnw)$/.test(first.text)) {
      if (texts.length === 0) this.reader.note("script");
      return record();
    }
    const isShellScript = texts.some((text) => /^#!(\/usr)?\/bin\/(env )?(ba|da|z)?sh\b/.test(text));
    if (!isShellScript) return record();
    this.readShell([first, ...args], [...via, "sh"], depth, null, () =>
      this.reader.recordCommand({ ...first, text: "sh" }, [first, ...args], via),
    );
  }

  /** Returns the texts of a file in all folders in which the line may run. */
  private scriptTexts(file: ShellArgument): string[] {
    const paths = this.reader.workingFolders.filePaths(file);
    return paths.map((path) => this.reader.project.read(path)).filter((text) => text !== null);
  }

  private noteAssignment(text: string): void {
    const [, name, value] = ASSIGNMENT.exec(text) ?? [];
    if (name !== undefined && !isHarmlessAssignment(name, value as string)) this.reader.note("assignment");
  }

  /** Reads `trap`. `-` removes a handler; `-l` and `-p` only print. */
  private readTrap(args: readonly ShellArgument[], via: readonly string[], depth: number): void {
    const [action] = args[0]?.text === "--" ? args.slice(1) : args;
    if (action === undefined || /^(-|-[lp]+)$/.test(action.text)) return;
    if (action.text.startsWith("-")) this.reader.note("wrapper");
    // The action can run between any two commands.
    if (/=|\bread\b/.test(action.text)) this.reader.note("assignment");
    this.text([action], via, depth);
  }

  /** Reads the arguments of a command that joins them and runs the result as a script. */
  private text(args: readonly ShellArgument[], via: readonly string[], depth: number): void {
    if (!args.every(({ isLiteral }) => isLiteral)) return this.reader.note("expansion");
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
    let isCheck = false;
    let index = 0;
    for (; index < args.length; index++) {
      const { text, isLiteral } = args[index] as ShellArgument;
      if (!isLiteral) break;
      if (text === "--" || text === "-") {
        index++;
        break;
      }
      if (/^[-+][A-Za-z]+$/.test(text)) {
        if (text.includes("c")) takesText = true;
        if (/^-[a-z]*n/.test(text)) isCheck = true;
        // -o and -O take a value; -s reads standard input; -i reads the user's startup files.
        if (/[oO]/.test(text)) index++;
        if (/[si]/.test(text)) this.reader.note("stdin");
        continue;
      }
      if (!text.startsWith("-")) break;
      if (!["--login", "--norc", "--noprofile", "--posix", "--restricted"].includes(text)) this.reader.note("script");
    }
    const rest = args.slice(index);
    // `bash -n x.sh` only checks the syntax.
    if (isCheck && !takesText && rest.length > 0) return record();
    if (takesText) {
      const [script] = rest;
      if (script === undefined || !script.isLiteral) {
        this.reader.note("expansion");
        return record();
      }
      for (const argument of rest.slice(1)) this.reader.path(argument, DISPLAYS_FILES);
      return this.reader.readScript(script.text, via, depth + 1);
    }
    const [script] = rest;
    const texts = script?.isLiteral === true ? this.scriptTexts(script) : [];
    if (texts.length > 0) {
      record();
      const task = (script as ShellArgument).text;
      for (const folder of this.reader.workingFolders.all())
        for (const text of texts) this.reader.readTask({ task, folder, text }, via, depth, rest);
      return;
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
    // A wrapper without a command runs nothing, except that `env` prints all variables.
    if (rest.length === 0) return record();
    this.read(name === "xargs" ? this.withListedFiles(args, rest) : rest, via, depth, input);
  }

  /** Adds the files that xargs reads from its standard input to the arguments of its command. */
  private withListedFiles(args: readonly ShellArgument[], command: readonly ShellArgument[]): readonly ShellArgument[] {
    const options = args.slice(0, args.length - command.length).map(({ text }) => text);
    const files = this.reader.input;
    const replaced = options.some((option) => /^-(I|i|-replace)/.test(option));
    const isPlain = options.every((option) =>
      /^(-[0rtn1-9P]+|-L1|--null|--no-run-if-empty|-I|-I\{\}|\{\}|\d+)$/.test(option),
    );
    // These only display their arguments.
    if (files === null && isPlain && ["echo", "basename", "dirname"].includes(command[0]?.text ?? "")) return command;
    if (files === null || !isPlain || (replaced && command.some(({ text }) => text.includes("{}") && text !== "{}"))) {
      this.reader.note("expansion");
      return command;
    }
    return replaced ? command.map((each) => (each.text === "{}" ? listed(files) : each)) : [...command, listed(files)];
  }

  /** Returns the wrapped command; null if an option is unknown. */
  private commandAfterOptions(wrapper: Wrapper, args: readonly ShellArgument[]): readonly ShellArgument[] | null {
    let positional = wrapper.positional ?? 0;
    let index = 0;
    for (; index < args.length; index++) {
      const { text, isLiteral } = args[index] as ShellArgument;
      if (!isLiteral) return null;
      if (text === "--") continue;
      const long = /^--([a-z-]+)(=.*)?$/s.exec(text);
      if (long !== null) {
        const option = long[1] as string;
        if (wrapper.longValues?.includes(option) === true) index += long[2] === undefined ? 1 : 0;
        else if (wrapper.long?.includes(option) !== true) return null;
      } else if (text.startsWith("-") && text !== "-") {
        const step = extraWords(wrapper, text.slice(1));
        if (step === null) return null;
        index += step;
      } else if (wrapper.assigns === true && ASSIGNMENT.test(text)) this.noteAssignment(text);
      else if (text === "-" && wrapper.assigns === true) continue;
      else if (positional > 0) positional--;
      else break;
    }
    return args.slice(index);
  }

  private readFind(args: readonly ShellArgument[], via: readonly string[], depth: number): void {
    for (let index = 0; index < args.length; index++) {
      const option = (args[index] as ShellArgument).text;
      if (!FIND_EXEC_OPTIONS.has(option)) continue;
      if (option.endsWith("dir")) this.reader.note("directory");
      const end = args.findIndex(({ text }, i) => i > index && (text === ";" || text === "+"));
      const nestedCommand = args.slice(index + 1, end < 0 ? args.length : end);
      // `find` inserts file names that are not in the text.
      const files = this.reader.listFiles("find", args);
      if (
        files === null ||
        nestedCommand.some(({ text }) => text.includes("{}") && text !== "{}") ||
        nestedCommand[0]?.text === "{}"
      )
        this.reader.note("expansion");
      this.read(
        nestedCommand.map((each) => (each.text === "{}" && files !== null ? listed(files) : each)),
        via,
        depth,
        null,
      );
      index += nestedCommand.length;
    }
  }

  /**
   * Reads git's options before the subcommand. Some options set configuration, which can run commands, and `-C` changes
   * the folder.
   */
  private readGit(first: ShellArgument, args: readonly ShellArgument[], via: readonly string[]): void {
    let index = 0;
    for (; index < args.length; index++) {
      const { text } = args[index] as ShellArgument;
      if (["--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"].includes(text)) continue;
      if (!text.startsWith("-") || text === "--version") break;
      const folder = text === "-C" ? args[index + 1] : undefined;
      if (folder !== undefined) {
        index++;
        this.reader.workingFolders.changeFolder([folder]);
        this.reader.path(folder, NO_DISPLAY);
        continue;
      }
      this.reader.note("wrapper");
      if (["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"].includes(text)) {
        const value = args[++index];
        if (value !== undefined) this.reader.path(value, DISPLAYS_FILES);
      }
    }
    this.reader.recordCommand(first, fullGitOptions(args.slice(index)), via);
  }

  private noteInterpreter(name: string, args: readonly ShellArgument[]): void {
    const plain = name.replace(/[0-9.]+$/, "");
    const option = Object.hasOwn(INTERPRETERS, plain) ? INTERPRETERS[plain] : undefined;
    if (option === undefined) return;
    // `python -v` starts the interpreter.
    const version = plain === "python" ? /^(--version|-V)$/ : /^(--version|-[vV])$/;
    if (args.length === 1 && version.test(args[0]?.text ?? "")) return;
    if (args.some(({ text }) => option.test(text))) this.reader.note("code");
    const findsTests = plain === "node" && args[0]?.text === "--test" && args.every(({ text }) => text !== "-");
    if (!findsTests && args.every(({ text }) => text.startsWith("-"))) this.reader.note("stdin");
  }
}

/** Removes options of Python that change only messages and caches, so that `python3 -W error -m pytest` is listed as `python3 -m pytest`. */
function withoutPythonFlags(args: readonly ShellArgument[]): readonly ShellArgument[] {
  let at = 0;
  for (;;) {
    const { text = "" } = args[at] ?? {};
    if (/^-[BbdEIOqsSuv]+$/.test(text) && text !== "-v") at++;
    else if (/^-[WX]$/.test(text) && /^(error|ignore|default|dev|utf8)$/.test(args[at + 1]?.text ?? "")) at += 2;
    else break;
  }
  return at > 0 && /^-[mc]/.test(args[at]?.text ?? "") ? args.slice(at) : args;
}

const listed = (files: readonly string[]): ShellArgument => ({
  text: "{}",
  isLiteral: true,
  startsWithTilde: false,
  matches: files,
});

/** Returns the number of following words that belong to a group of short options; null if an option is unknown. */
function extraWords({ flags, values }: Wrapper, characters: string): 0 | 1 | null {
  for (const [i, letter] of Array.from(characters).entries()) {
    if (values.includes(letter)) return i === characters.length - 1 ? 1 : 0;
    if (!flags.includes(letter)) return null;
  }
  return 0;
}

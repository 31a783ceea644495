/**
 * Parses a shell command: determines which commands run, with which arguments and on which files, and what remains
 * unclear. Pure.
 */
import {
  parse,
  forEachChild,
  type Assignment,
  type Command,
  type For,
  type HereDoc,
  type Pipeline,
  type Redirection,
  type SyntaxNode,
  type TestExpression,
  type While,
  type Word,
} from "unbash";
import { WorkingFolders } from "./working-folders.ts";
import { NestedCommands } from "./nested-commands.ts";
import { acceptsText, sendsTexts, textArguments } from "./text-arguments.ts";
import type { FileUses, ParsedShell, ShellArgument, ShellContext, UnclearReason } from "./shell-types.ts";
import { hasExpansion, joinParts, wordValue, type Known, type Scope } from "./word-values.ts";
import { LineVariables, assignedNames } from "./line-variables.ts";
import { filesListedBy, listedFiles } from "./listed-files.ts";
import { outputOf } from "./command-output.ts";
import { hostsIn } from "./addresses.ts";
import { matchFiles } from "./file-patterns.ts";
import { knownProgram } from "./program-options.ts";
import {
  fileUse,
  findSearch,
  isBuildFile,
  readsWorkingFolder,
  usesListedFiles,
  wordSearch,
  type FileUse,
} from "./file-uses.ts";
import type { ProjectFiles, TaskBody } from "./tasks/task-body.ts";
import { isHarmlessAssignment, isPrivateVariable } from "./command-tables.ts";

const NO_PROJECT: ProjectFiles = { read: () => null, list: () => null, files: () => null };
/** Maximum number of values of a loop that are read individually. */
const MAX_VALUES = 8;
/** Maximum number of iterations of loops that are read. */
const MAX_LOOPS = 200;
const READS_FILES: FileUse = { opens: true, changes: false };
const MAX_LENGTH = 32_768;
const MAX_COMMANDS = 64;
const MAX_WORDS = 512;
const MAX_PATHS = 128;
const MAX_COPIED = 500;
/** Maximum nesting of commands such as `sh -c "sh -c '…'"`. */
const MAX_DEPTH = 8;

/**
 * Invisible characters, and characters that reorder or join text. Includes control characters except tab and line feed,
 * and whitespace except the space.
 */
const HIDDEN_CHARACTERS = new RegExp(
  String.raw`(?! )[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u115f\u1160\u3164\uffa0\p{Variation_Selector}\p{Cf}\p{Co}\p{Z}\p{Cs}]`,
  "u",
);

/** A delimiter of a here-document that all shells read in the same way. */
const PLAIN_DELIMITER = /^(\w+|'\w+'|"\w+"|\\\w+)$/;

/**
 * Parses a command. Absolute paths in the result still contain "..", because only the caller can resolve links. `folders`
 * contains all folders in which the line may run.
 */
export function readShellText(
  text: string,
  place: ShellContext,
): { parsed: ParsedShell; folders: string[]; uses: FileUses } {
  const reading = new ShellReader(place);
  if (HIDDEN_CHARACTERS.test(text)) reading.note("characters");
  reading.readScript(text, [], 0);
  return { parsed: reading.result(), folders: reading.workingFolders.allVisited(), uses: reading.uses };
}

class ShellReader {
  private readonly commands: ParsedShell["commands"] = [];
  private readonly reads = new Set<string>();
  private readonly writes = new Set<string>();
  private readonly paths = new Set<string>();
  /** Standard streams that are opened for writing. They count as written files if the line also reads files. */
  private readonly streams = new Set<string>();
  private readonly hosts = new Set<string>();
  private readonly unclear = new Set<UnclearReason>();
  /** Arguments that count as file names only if another part of the line is unclear. */
  private readonly texts: ShellArgument[] = [];
  private words = 0;
  private loops = 0;
  private source = "";
  /** Task whose text is being read. */
  private task: string | undefined;
  /** Whether the current command reads the output of another. */
  private isPiped = false;
  /** The files that the standard input of the current command lists, one a line; null if they are unknown. */
  input: readonly string[] | null = null;
  /** Whether a statement runs exactly once, after all statements in front of it. */
  private isSequential = true;
  private readonly variables: LineVariables;
  private readonly scope: Scope;
  readonly uses: FileUses = {
    opened: new Set(),
    replaced: new Set(),
    searched: [],
    changed: new Set(),
    copied: new Set(),
    obeyed: new Set(),
    deleted: new Set(),
    deletedFolders: new Set(),
    created: new Set(),
    listed: new Set(),
  };
  readonly workingFolders: WorkingFolders;
  readonly project: ProjectFiles;
  private readonly runs: NestedCommands;

  constructor(place: ShellContext) {
    this.project = place.project ?? NO_PROJECT;
    this.workingFolders = new WorkingFolders(place, (reason) => this.note(reason));
    this.runs = new NestedCommands(this);
    this.variables = new LineVariables(this.workingFolders, place.home);
    this.scope = {
      variable: (name) => this.variables.get(name),
      substitution: (script) => outputOf(script, this.workingFolders.all(), this.project),
    };
  }

  note(reason: UnclearReason): void {
    this.unclear.add(reason);
  }

  result(): ParsedShell {
    if (this.reads.size > 0) for (const path of this.streams) this.writes.add(path);
    if (this.unclear.size > 0) for (const argument of this.texts) this.path(argument, READS_FILES);
    for (const path of this.reads) this.uses.opened.add(path);
    for (const path of this.writes) {
      this.uses.replaced.add(path);
      this.uses.changed.add(path);
      this.uses.created.add(path);
    }
    return {
      version: 2,
      commands: this.commands,
      reads: [...this.reads].sort(),
      writes: [...this.writes].sort(),
      paths: [...this.paths].sort(),
      hosts: [...this.hosts].sort(),
      unclear: [...this.unclear].sort(),
    };
  }

  /** Reads a script that a shell runs. */
  readScript(text: string, via: readonly string[], depth: number, words: readonly ShellArgument[] | null = null): void {
    if (text.length > MAX_LENGTH || depth > MAX_DEPTH) return this.note("size");
    // Shells join continued lines before they search for "$(" or "&&", but this parser joins them afterwards. Shells
    // also disagree on a backslash at the end.
    if (/\S\\\n|\\$/.test(text)) this.note("syntax");
    let tree;
    try {
      tree = parse(text);
    } catch {
      return this.note("syntax");
    }
    const before = this.source;
    const wasSequential = this.isSequential;
    this.source = text;
    this.isSequential = true;
    // Other shells have variables of their own.
    this.variables.apart(assignedNames([tree]), words?.map(knownValue) ?? null, () => this.walk(tree, via, depth));
    this.isSequential = wasSequential;
    this.source = before;
  }

  /** Reads the text that a task runs in its own folder. */
  readTask(
    { task, folder, text }: TaskBody,
    via: readonly string[],
    depth: number,
    words: readonly ShellArgument[] | null = null,
  ): void {
    const before = this.task;
    // The commands of a shell script belong to the task that starts the script. The commands of a task belong to that
    // task, even if another task starts it.
    if (words === null && task !== "") this.task = task;
    else if (task !== "") this.task ??= task;
    this.workingFolders.within(folder, () => this.readScript(text, via, depth + 1, words));
    this.task = before;
  }

  /**
   * Records a command that runs.
   * @param files arguments that may be file names
   */
  recordCommand(name: ShellArgument, args: readonly ShellArgument[], via: readonly string[], files = args): void {
    if (name.text === "git" && args.some(({ commit }) => commit !== undefined)) {
      const named = args.map((each) => (each.commit === undefined ? each : literalArgument(each.commit)));
      return this.recordCommand(name, named, via);
    }
    const named = args.flatMap((argument) => this.fileNames(argument) ?? [argument.text]);
    this.words += named.length + 1;
    if (this.commands.length >= MAX_COMMANDS || this.words > MAX_WORDS) return this.note("size");
    const plain = this.workingFolders.commandName(name);
    if (name.isNumber === true || name.isText === true || name.isSplitText === true) this.note("name");
    const words = args.map(({ text }) => text);
    const known = knownProgram(plain, args);
    this.commands.push({
      name: plain,
      args: named,
      via: [...via],
      ...(this.task === undefined ? {} : { task: this.task }),
      ...(known?.use === undefined ? {} : { use: known.use }),
    });
    if (args.some((each, at) => (each.isText ?? each.isSplitText) === true && !acceptsText(plain, args, at)))
      this.note("expansion");
    if (usesListedFiles(plain, words)) this.note("expansion");
    const texts = [...textArguments(plain, args), ...args.filter((_, at) => known?.texts.has(at))];
    this.texts.push(...texts);
    // A program can write to any file that it gets as an argument.
    const use = fileUse(plain, words, this.task !== undefined, known);
    const paths = files.filter((argument) => !texts.includes(argument));
    const last = args.findLast(({ text }) => !text.startsWith("-"));
    for (const argument of paths) {
      if (known?.outputs.has(args.indexOf(argument)) === true) {
        this.writesTo(argument);
        continue;
      }
      if (use.searches !== undefined && known?.others.has(args.indexOf(argument)) !== true)
        this.searchWord(optionValue(argument), use.searches, plain === "diff");
      // A move out of the workspace deletes files in it, so its target is not free.
      this.path(argument, plain === "mv" && argument === last ? { ...use, obeys: true } : use);
    }
    for (const argument of sendsTexts(plain) ? files : paths)
      if (!isBuildFile(plain, words, args.indexOf(argument)))
        for (const host of hostsIn(argument.text)) this.hosts.add(host);
    if (plain.includes("/")) this.path(name, { ...READS_FILES, obeys: true });
    if (use.searches !== undefined && readsWorkingFolder(plain, known?.use))
      for (const path of this.workingFolders.all())
        this.uses.searched.push({ path, ignored: "tracked", globs: [], isWord: true });
    this.recordTargets(args, use);
    const search = findSearch(plain, words);
    if (search === null) return;
    const { operands, ...scope } = search;
    const readsInput = this.isPiped && search.isWholeRepository !== true;
    const implied = operands.length > 0 || readsInput ? [] : this.workingFolders.all();
    const places = operands.flatMap((at) => {
      const argument = args[at] as ShellArgument;
      return argument.matches ?? this.workingFolders.filePaths(argument);
    });
    for (const path of [...places, ...implied]) this.uses.searched.push({ path, ...scope });
  }

  /** Returns the names of the files that a variable contains; null for another word, and for too many files. */
  private fileNames({ text, matches }: ShellArgument): string[] | null {
    const [folder, ...others] = this.workingFolders.all();
    if (matches === undefined || matches.length === 0 || matches.length > MAX_PATHS || !/^"?\$/.test(text)) return null;
    const prefix = folder !== undefined && others.length === 0 ? `${folder}/` : "";
    return matches.map((path) => (path.startsWith(prefix) ? path.slice(prefix.length) : path));
  }

  private searchWord(argument: ShellArgument, ignored: "skipped" | "read", followsLinks: boolean): void {
    const { text, matches } = argument;
    for (const path of matches ?? this.workingFolders.filePaths(argument))
      this.uses.searched.push(...wordSearch(path, matches === undefined ? text : "", ignored, followsLinks));
  }

  /** Records a file that an option names, and that the command writes. */
  private writesTo(argument: ShellArgument): void {
    this.path(argument, { opens: false, changes: true, replaces: true });
    for (const path of this.workingFolders.filePaths(optionValue(argument))) this.uses.created.add(path);
  }

  /** Records the files that a command such as `cp` or `touch` creates, also within a folder. */
  private recordTargets(args: readonly ShellArgument[], { creates, copiesFolders }: FileUse): void {
    const operands = args.filter(({ text }) => !text.startsWith("-"));
    const target = operands.at(-1);
    if (creates === undefined || target === undefined) return;
    const targets = creates === "all" ? operands : [target];
    // A folder is copied or moved with the files in it.
    for (const each of operands.slice(0, -1)) {
      for (const path of each.matches ?? this.workingFolders.filePaths(each)) this.uses.copied.add(path);
      // Some versions of cp follow links.
      if (copiesFolders === true) this.searchWord(each, "read", true);
    }
    for (const path of targets.flatMap((each) => this.workingFolders.filePaths(each))) {
      this.uses.created.add(path);
      const sources = operands.slice(0, -1).flatMap((each) => each.matches ?? [each.text]);
      for (const source of sources) {
        const inFolder = `${path}/${source.replace(/\/+$/, "").split("/").at(-1) ?? ""}`;
        this.uses.created.add(inFolder);
        this.uses.changed.add(inFolder);
        // If it exists, it is replaced.
        this.uses.copied.add(inFolder);
        // The files in a copied folder are merged with those of the target.
        if (copiesFolders === true)
          for (const name of this.filesIn(source))
            for (const target of [`${path}/${name}`, `${inFolder}/${name}`]) {
              this.uses.changed.add(target);
              this.uses.copied.add(target);
            }
      }
    }
  }

  /** Returns the names of the files in a folder, relative to it. */
  private filesIn(source: string): readonly string[] {
    const folders = source.startsWith("/")
      ? [source]
      : this.workingFolders.all().map((folder) => `${folder}/${source}`);
    const names = folders.map((folder) => this.project.files(folder, "", true)).filter((each) => each !== null);
    if (names.length === 0 || names.flat().length > MAX_COPIED) this.note("size");
    return names.flat().slice(0, MAX_COPIED);
  }

  listFiles(name: string, args: readonly ShellArgument[]): readonly string[] | null {
    if (!args.every(({ isLiteral, matches }) => isLiteral && matches === undefined)) return null;
    return filesListedBy([name, ...args.map(({ text }) => text)], this.workingFolders.all(), this.project);
  }

  path(argument: ShellArgument, use: FileUse): void {
    for (const path of argument.matches ?? this.workingFolders.possiblePaths(argument)) {
      if (path === "/dev/null" && !use.changes && use.deletes === undefined) continue;
      if (argument.matches !== undefined) this.uses.listed.add(path);
      if (this.paths.size < MAX_PATHS) this.paths.add(path);
      else if (argument.matches === undefined) return this.note("size");
      if (use.opens) this.uses.opened.add(path);
      if (use.replaces === true) this.uses.replaced.add(path);
      if (use.changes && (argument.matches === undefined || use.formats !== true)) this.uses.changed.add(path);
      if (use.obeys === true) this.uses.obeyed.add(path);
      if (use.deletes === "files") this.uses.deleted.add(path);
      if (use.deletes === "folders") this.uses.deletedFolders.add(path);
    }
  }

  private walk(node: SyntaxNode, via: readonly string[], depth: number): void {
    switch (node.type) {
      case "Script":
        if ((node.errors ?? []).length > 0) this.note("syntax");
        break;
      case "Pipeline":
        return this.readPipeline(node, via, depth);
      case "AndOr": {
        const [first, ...others] = node.commands;
        // After "&&", a command runs only if all commands before it succeeded. After "||", it may run.
        const isChain = node.operators.every((operator) => operator === "&&");
        const walk = (each: SyntaxNode): void => {
          this.walk(each, via, depth);
          if (isChain && isPlainCd(each)) this.workingFolders.dropLeft();
        };
        return this.workingFolders.withinList(() => {
          if (first !== undefined) walk(first);
          this.within(others, isChain, () => others.forEach(walk));
        });
      }
      case "Statement":
        // In zsh, "&!" and "&|" are operators. In fish, "a&b" is one word.
        if (node.background !== true) break;
        if (/[^\s)]/.test(this.source.charAt(node.end))) this.note("shell");
        return this.within([node], true, () => this.walk(node.command, via, depth));
      case "Command":
        return this.readCommand(node, via, depth);
      case "Function":
        // A function can replace the command of the same name.
        this.note("function");
        break;
      case "Coproc":
        this.note("wrapper");
        break;
      case "For":
        return this.readFor(node, via, depth);
      case "While":
        return this.readWhile(node, via, depth);
      case "Case":
        // Its word is only compared.
        this.argument(node.word, via, depth);
        return node.items.forEach((item) => this.within([item], true, () => this.walk(item, via, depth)));
      case "If":
      case "Subshell":
        return this.within([node], true, () =>
          forEachChild(node, (child) => this.within([child], true, () => this.walk(child, via, depth))),
        );
      case "CaseItem":
        // Its patterns are not patterns of file names.
        for (const pattern of node.pattern) {
          const { unclear } = wordValue(pattern, this.scope);
          if (unclear !== null && unclear !== "glob") this.note(unclear);
        }
        return this.walk(node.body, via, depth);
      case "Redirected":
        return this.withInput(node.redirects.some(changesInput) ? null : this.input, () =>
          forEachChild(node, (child) => this.walk(child, via, depth)),
        );
      case "Select":
        // The variable could be PATH.
        this.note("assignment");
        break;
      case "TestCommand":
        // Operands of -eq and -v are evaluated as expressions, which can run commands. In some shells, "||" ends the
        // command, and "<" and ">" are redirections.
        if (!isPlainTest(node.expression)) this.note("expansion");
        for (const word of testWords(node.expression)) this.argument(word, via, depth);
        return;
      case "Word":
        return void this.plainArgument(node, via, depth);
      case "Assignment":
        return this.readAssignment(node, via, depth);
      case "Redirect":
      case "HereString":
      case "HereDoc":
        return this.readRedirect(node, via, depth);
      case "ArithmeticCommand":
      case "ArithmeticFor":
        // Values of variables are evaluated as expressions, which can run commands.
        this.note("expansion");
        break;
    }
    forEachChild(node, (child) => this.walk(child, via, depth));
  }

  /**
   * Reads a part of the line that may be skipped, may run repeatedly, or runs in a separate shell. Its assignments end
   * with it.
   */
  private within(nodes: readonly SyntaxNode[], isSequential: boolean, read: () => void): void {
    const before = this.isSequential;
    this.isSequential = isSequential;
    this.variables.within(assignedNames(nodes), read);
    this.isSequential = before;
  }

  private withInput(input: readonly string[] | null, read: () => void): void {
    const before = this.input;
    this.input = input;
    read();
    this.input = before;
  }

  private readPipeline(node: Pipeline, via: readonly string[], depth: number): void {
    if (node.commands.length === 1) return node.commands.forEach((each) => this.walk(each, via, depth));
    node.commands.forEach((command, at) => {
      const before = this.isPiped;
      this.isPiped ||= at > 0;
      const isPlain = node.operators.every((operator) => operator === "|");
      const listed =
        at === 0 || !isPlain ? null : listedFiles(node.commands.slice(0, at), this.workingFolders.all(), this.project);
      this.withInput(at === 0 ? this.input : listed, () =>
        this.within([command], true, () => this.walk(command, via, depth)),
      );
      this.isPiped = before;
    });
  }

  private readFor(node: For, via: readonly string[], depth: number): void {
    const name = node.name.text;
    // The variable could be PATH.
    if (!isPrivateVariable(name) || node.wordlist === undefined) this.note("assignment");
    const values = (node.wordlist ?? []).flatMap((each) => numbersOf(each.text) ?? this.loopValue(each, via, depth));
    const readBody = (value: Known): void => {
      if (++this.loops > MAX_LOOPS) return this.note("size");
      // A value that the body assigns also reaches earlier statements of the body, in the next iteration.
      this.variables.within([{ name, counts: false }, ...assignedNames([node.body])], () => {
        if (isPrivateVariable(name)) this.variables.set(name, value);
        const before = this.isSequential;
        this.isSequential = true;
        this.walk(node.body, via, depth);
        this.isSequential = before;
      });
    };
    const isList = values.length <= MAX_VALUES && values.every(({ kind }) => kind === "literal");
    if (isList) for (const value of values) readBody(value);
    else this.workingFolders.withinLoop(() => readBody(this.joinValues(values)));
  }

  private loopValue(word: Word, via: readonly string[], depth: number): Known {
    const argument = this.matchedArgument(word) ?? this.argument(word, via, depth);
    if (argument.isNumber === true) return { kind: "number" };
    if (argument.matches !== undefined) return { kind: "files", paths: argument.matches };
    if (argument.commit !== undefined) return { kind: "commit", text: argument.commit };
    if (argument.isText === true || argument.isSplitText === true) return { kind: "text" };
    // Shells disagree on whether they split such a value.
    if (!/^[\w./@:+,=%-]+$/.test(argument.text)) return { kind: "text" };
    return { kind: "literal", text: argument.text };
  }

  private joinValues(values: readonly Known[]): Known {
    const [first] = values;
    if (first?.kind === "commit" && values.length === 1) return first;
    if (first !== undefined && values.every(({ kind }) => kind === "number")) return first;
    if (values.some(({ kind }) => kind !== "files" && kind !== "literal")) return { kind: "text" };
    return {
      kind: "files",
      paths: values.flatMap((each) =>
        each.kind === "files"
          ? each.paths
          : each.kind === "literal"
            ? this.workingFolders.filePaths({ text: each.text, isLiteral: true, startsWithTilde: false })
            : [],
      ),
    };
  }

  /** Reads a loop. `while IFS= read -r f` assigns each line of the input to a variable. */
  private readWhile(node: While, via: readonly string[], depth: number): void {
    const [only, ...others] = node.clause.commands;
    const command = others.length === 0 ? only?.command : undefined;
    const names = command?.type === "Command" ? readNames(command) : null;
    const read = (): void => {
      const before = this.isSequential;
      this.isSequential = true;
      if (names === null) this.walk(node.clause, via, depth);
      else {
        const known: Known =
          this.input === null || names.length > 1 ? { kind: "text" } : { kind: "files", paths: this.input };
        for (const name of names) this.variables.set(name, known);
        this.recordCommand({ text: "read", isLiteral: true, startsWithTilde: false }, [], via);
      }
      this.walk(node.body, via, depth);
      this.isSequential = before;
    };
    const assigned = [...assignedNames([node]), ...(names ?? []).map((name) => ({ name, counts: false }))];
    this.variables.within(assigned, () => this.workingFolders.withinLoop(read));
  }

  private argument(word: Word, via: readonly string[], depth: number): ShellArgument {
    const value = wordValue(word, this.scope);
    if (value.unclear !== null) this.note(value.unclear);
    for (const script of value.scripts) this.within([script], true, () => this.walk(script, via, depth));
    const { text, isLiteral, startsWithTilde, mayBeZshPattern, known } = value;
    const argument = { text, isLiteral, startsWithTilde, mayBeZshPattern };
    if (known?.kind === "number") return { ...argument, isNumber: true };
    if (known?.kind === "files") return { ...argument, isLiteral: true, mayBeZshPattern: false, matches: known.paths };
    if (known?.kind === "commit") return { ...argument, mayBeZshPattern: false, isText: true, commit: known.text };
    if (known?.kind !== "text") return argument;
    return {
      ...argument,
      mayBeZshPattern: false,
      ...(known.isSplit === true ? { isSplitText: true } : { isText: true }),
    };
  }

  /** Reads a word whose value must be known. */
  private plainArgument(word: Word, via: readonly string[], depth: number): ShellArgument {
    const argument = this.argument(word, via, depth);
    const { isText, isSplitText, matches } = argument;
    if (isText !== true && isSplitText !== true && matches === undefined) return argument;
    this.note("expansion");
    return { ...argument, isLiteral: false };
  }

  /** Returns `<(…)`, the output of commands as a file; null for other words. */
  private outputArgument(word: Word, name: string, via: readonly string[], depth: number): ShellArgument | null {
    const [part, ...others] = word.parts ?? [];
    if (part?.type !== "ProcessSubstitution" || others.length > 0 || part.operator !== "<" || part.script === undefined)
      return null;
    // In fish, `diff <(ls)` reads standard input from the file that `ls` names. Without operands, these commands do not
    // read standard input.
    if (!["diff", "comm", "cmp", "join"].includes(name)) return null;
    const { script } = part;
    this.withInput(null, () => this.within([script], true, () => this.walk(script, via, depth)));
    return { text: word.text, isLiteral: true, startsWithTilde: false, matches: [] };
  }

  /**
   * Returns a pattern with the files that it matches; null if the word is not a simple pattern, or the matches are
   * unknown.
   */
  private matchedArgument(word: Word): ShellArgument | null {
    if (word.parts?.every(({ type }) => type === "Literal" || type === "Glob") !== true) return null;
    const matches = this.workingFolders.all().map((folder) => matchFiles(word.text, folder, this.project));
    if (matches.includes(null)) return null;
    return { text: word.text, isLiteral: true, startsWithTilde: false, matches: (matches as string[][]).flat() };
  }

  private readAssignment(node: Assignment, via: readonly string[], depth: number, isStatement = false): void {
    const { name, value, append, index } = node;
    // Subscripts are evaluated as expressions, which can run commands.
    const isPlain = index === undefined && append !== true && value.type !== "ArrayValue";
    if (isPlain && isStatement && this.isSequential && isPrivateVariable(name)) {
      this.variables.set(name, knownValue(this.argument(value, via, depth)));
      return;
    }
    if (!isPlain || !isHarmlessAssignment(name, wordValue(value as Word).text)) this.note("assignment");
    this.variables.set(name, null);
    forEachChild(node, (child) => this.walk(child, via, depth));
  }

  private readCommand(node: Command, via: readonly string[], depth: number): void {
    const isStatement = node.name === undefined && node.redirects.length === 0;
    for (const each of node.prefix) if (each.type === "Assignment") this.readAssignment(each, via, depth, isStatement);
    for (const each of node.redirects) this.readRedirect(each, via, depth, wordAfter(node, each.end));
    if (node.name === undefined) return;
    // This parser ignores a parenthesis after a word, but in zsh it starts a pattern that can contain "#".
    const openParenthesis = /[ \t]*\(/y;
    for (const { end } of [node, node.name, ...node.args]) {
      openParenthesis.lastIndex = end;
      if (openParenthesis.test(this.source)) this.note("syntax");
    }
    const name = this.plainArgument(node.name, via, depth);
    if (!name.isLiteral) this.note("name");
    // dash takes `{a,b}` as it is, so the command is then listed with the word and with its alternatives.
    const alternatives = node.args.map((each) => (each.type === "Word" ? alternativesOf(each) : null));
    const args = node.args.map((each, at): ShellArgument => {
      if (each.type === "Word")
        return (
          (alternatives[at] == null ? null : literalArgument(each.text)) ??
          this.outputArgument(each, name.text, via, depth) ??
          this.matchedArgument(each) ??
          this.argument(each, via, depth)
        );
      this.readAssignment(each, via, depth);
      if (each.value.type !== "Word" || each.index !== undefined)
        return { text: each.text, isLiteral: false, startsWithTilde: false };
      const { text, isLiteral } = wordValue(each.value);
      return { text: `${each.name}=${text}`, isLiteral, startsWithTilde: false };
    });
    // fish reads the file of `<(…)` as standard input.
    if (args.some(({ text }) => text.startsWith("<(")) && args.some(({ text }) => text === "-")) this.note("shell");
    // git is an exception: "HEAD^" and "HEAD~2" are commits, and git's own patterns match only tracked files.
    if (name.text !== "git" && args.some(({ mayBeZshPattern: extended }) => extended === true)) this.note("glob");
    // The last redirection of the input is in effect.
    const [document, ...others] = node.redirects.filter(changesInput);
    const isDocument = document?.type === "HereDoc" && others.length === 0;
    const body = isDocument ? this.hereDocumentBody(document) : null;
    const read = (words: readonly ShellArgument[]): void =>
      this.withInput(document === undefined ? this.input : null, () => this.runs.read(words, via, depth, body));
    read([name, ...args]);
    if (alternatives.some((each) => each !== null))
      read([name, ...args.flatMap((each, at) => alternatives[at]?.map(literalArgument) ?? [each])]);
  }

  /** Returns the text of a here-document; null if the text depends on expansions. */
  private hereDocumentBody({ delimiter, body, operator, closing, descriptor }: HereDoc): string | null {
    if (delimiter === undefined || closing === undefined || descriptor !== undefined) return null;
    // Shells remove backslashes from the text of a delimiter without quotes.
    if (delimiter.quoted !== true && body.text.includes("\\")) return null;
    if (delimiter.quoted || body.parts === undefined)
      return operator === "<<-" ? body.text.replace(/^\t+/gm, "") : body.text;
    return null;
  }

  /**
   * Reads a redirection.
   * @param next word that follows the redirection, if known
   */
  private readRedirect(node: Redirection, via: readonly string[], depth: number, next?: Word): void {
    // zsh and dash accept only one digit as a descriptor, and read two digits as a word.
    if (node.descriptor?.type === "FileDescriptor" && node.descriptor.value > 9) this.note("syntax");
    if (node.type === "HereDoc") {
      // Shells disagree on the end of a here-document without a closing line, or with a delimiter such as $'E'.
      if (node.closing === undefined || !PLAIN_DELIMITER.test(node.delimiter?.text ?? "")) this.note("syntax");
      if (node.delimiter?.quoted !== true && node.body.parts === undefined && hasExpansion(node.body.text))
        this.note("expansion");
      if (node.delimiter?.quoted !== true && node.body.parts !== undefined) {
        const { unclear, scripts } = joinParts(node.body.parts);
        if (unclear !== null) this.note(unclear);
        for (const script of scripts) this.walk(script, via, depth);
      }
      return;
    }
    if (node.descriptor?.type === "FileDescriptorVariable") this.note("assignment");
    if (node.target === undefined) return this.note("syntax");
    const target = this.argument(node.target, via, depth);
    if (target.mayBeZshPattern === true) this.note("glob");
    if (node.type === "HereString") return;
    if (target.isText === true || target.isSplitText === true || target.isNumber === true) this.note("expansion");
    // In `2>&1` the word is a descriptor; in `>&file` it is a file. bash reads `<&-""x` as two words.
    if (node.operator.endsWith("&") && /^([0-9]+-?|-)$/.test(node.target.text)) return;
    // For `>&file`, dash fails, bash expands the name a second time, and bash reads "<&-x" as two words. dash reads "&>"
    // as the end of a background command and a redirection. For fish, ">|" is a pipe.
    if (/[&|]/.test(node.operator)) this.note("shell");
    const files = node.operator === "<" || node.operator === "<&" ? this.reads : this.writes;
    this.opens(target, files);
    if (files === this.reads || !node.target.text.startsWith("!")) return;
    // After ">", zsh treats "!" like the "|" in ">|", so the file is the next word.
    this.note("shell");
    const { text } = target;
    if (node.target.text !== "!")
      this.opens({ ...target, text: text.slice(1), startsWithTilde: text.startsWith("!~") }, files);
    else if (next !== undefined) this.opens(toArgument(next), files);
  }

  private opens(target: ShellArgument, files: Set<string>): void {
    for (const path of target.matches ?? this.workingFolders.filePaths(target)) {
      if (files.size + this.paths.size >= MAX_PATHS) return this.note("size");
      // Output to /dev/null writes nothing. /dev/stdout may be a file that is opened a second time.
      if (path === "/dev/null" || (files === this.reads && path === "/dev/stdin")) continue;
      if (files === this.writes && /^\/dev\/std(out|err)$/.test(path)) {
        this.streams.add(path);
        continue;
      }
      files.add(path);
      this.paths.add(path);
    }
  }
}

/** Returns what a variable with this value is known to contain. */
function knownValue({ text, isLiteral, isText, isSplitText, isNumber, matches, commit }: ShellArgument): Known | null {
  if (matches !== undefined) return { kind: "files", paths: matches };
  if (commit !== undefined) return { kind: "commit", text: commit };
  if (isText === true || isSplitText === true) return { kind: "text" };
  if (isNumber === true) return { kind: "number" };
  return isLiteral ? { kind: "literal", text } : null;
}

/** Returns the numbers of a range such as `{1..3}`; for a long range, one unknown number; null for another word. */
function numbersOf(word: string): Known[] | null {
  const [, first, last] = /^\{(0|[1-9][0-9]{0,8})\.\.(0|[1-9][0-9]{0,8})\}$/.exec(word) ?? [];
  if (first === undefined) return /^\{[0-9]+\.\.[0-9]+\}$/.test(word) ? [{ kind: "number" }] : null;
  const start = Math.min(Number(first), Number(last));
  const count = Math.abs(Number(last) - Number(first)) + 1;
  if (count > MAX_VALUES) return [{ kind: "number" }];
  return Array.from({ length: count }, (_, at) => ({ kind: "literal", text: String(start + at) }));
}

/** Returns the names in `src/{a,b}.ts`; null for another word, and if a name could be an option. */
function alternativesOf({ text, parts }: Word): string[] | null {
  if (parts?.some(({ type }) => type === "BraceExpansion") !== true) return null;
  const [, start = "", list, end = ""] = /^([\w./-]*)\{([\w./-]*(?:,[\w./-]*)+)\}([\w./-]*)$/.exec(text) ?? [];
  const names = list?.split(",").map((each) => start + each + end) ?? [];
  return names.length > 0 && names.every((name) => /^[^-]/.test(name)) && !text.includes("..") ? names : null;
}

/** Returns the value of `--option=value`, and any other word as it is. */
const optionValue = (argument: ShellArgument): ShellArgument => ({
  ...argument,
  text: argument.text.replace(/^-[^=]*=/, ""),
});

const isPlainCd = (node: SyntaxNode): boolean =>
  node.type === "Command" && node.name?.text === "cd" && node.prefix.length === 0 && node.redirects.length === 0;

const literalArgument = (text: string): ShellArgument => ({ text, isLiteral: true, startsWithTilde: false });

const changesInput = (node: Redirection): boolean =>
  node.type !== "Redirect" || ["<", "<>", "<&"].includes(node.operator);

/** Returns true if `[[ … ]]` only compares text or examines one file. */
const isPlainTest = (node: TestExpression): boolean =>
  node.type === "TestUnary"
    ? /^-[fdeszrwxnLh]$/.test(node.operator)
    : node.type === "TestBinary" && /^(==?|!=|-nt|-ot)$/.test(node.operator);

const testWords = (node: TestExpression): Word[] =>
  node.type === "TestUnary" ? [node.operand] : node.type === "TestBinary" ? [node.left, node.right] : [];

/** Returns the variables of `read -r a b`; null for another command, or if a variable may have a meaning. */
function readNames({ name, prefix, args, redirects }: Command): string[] | null {
  const isPlain = prefix.every((each) => each.type === "Assignment" && each.text === "IFS=") && redirects.length === 0;
  if (name?.text !== "read" || !isPlain) return null;
  const words = args.map(({ text }) => text).filter((text) => text !== "-r");
  return words.length > 0 && words.every((word) => word === "_" || isPrivateVariable(word)) ? words : null;
}

function toArgument(word: Word): ShellArgument {
  const { text, isLiteral, startsWithTilde, mayBeZshPattern } = wordValue(word);
  return { text, isLiteral, startsWithTilde, mayBeZshPattern };
}

function wordAfter({ name, args }: Command, end: number): Word | undefined {
  const words = [name, ...args].filter((each) => each?.type === "Word" && each.pos >= end) as Word[];
  return words.sort((a, b) => a.pos - b.pos)[0];
}

/**
 * Parses a shell command: determines which commands run, with which arguments and on which files, and what the text
 * does not determine. Pure.
 */
import {
  parse,
  forEachChild,
  type Assignment,
  type Command,
  type HereDoc,
  type Redirection,
  type SyntaxNode,
  type Word,
} from "unbash";
import { WorkingFolders } from "./working-folders.ts";
import { NestedCommands } from "./nested-commands.ts";
import { textArguments } from "./text-arguments.ts";
import type { FileUses, ParsedShell, ShellArgument, ShellContext, UnclearReason } from "./shell-types.ts";
import { hasExpansion, joinParts, wordValue } from "./word-values.ts";
import { hostsIn } from "./addresses.ts";
import { matchFiles } from "./file-patterns.ts";
import { fileUse, findSearch, type FileUse } from "./file-uses.ts";
import type { ProjectFiles, TaskBody } from "./tasks/task-body.ts";
import { isHarmlessAssignment } from "./command-tables.ts";

const NO_PROJECT: ProjectFiles = { read: () => null, list: () => null };
const READS: FileUse = { opens: true, changes: false };
const MAX_LENGTH = 32_768;
const MAX_COMMANDS = 64;
const MAX_WORDS = 512;
const MAX_PATHS = 128;
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
  return { parsed: reading.result(), folders: reading.workingFolders.all(), uses: reading.uses };
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
  private source = "";
  /** Task whose text is being read. */
  private task: string | undefined;
  /** Whether the current command reads the output of another. */
  private isPiped = false;
  readonly uses: FileUses = {
    opened: new Set(),
    searched: [],
    changed: new Set(),
    copied: new Set(),
    obeyed: new Set(),
    deleted: new Set(),
    deletedFolders: new Set(),
    created: new Set(),
  };
  readonly workingFolders: WorkingFolders;
  readonly project: ProjectFiles;
  private readonly runs: NestedCommands;

  constructor(place: ShellContext) {
    this.project = place.project ?? NO_PROJECT;
    this.workingFolders = new WorkingFolders(place, (reason) => this.note(reason));
    this.runs = new NestedCommands(this);
  }

  note(reason: UnclearReason): void {
    this.unclear.add(reason);
  }

  result(): ParsedShell {
    if (this.reads.size > 0) for (const path of this.streams) this.writes.add(path);
    if (this.unclear.size > 0) for (const argument of this.texts) this.path(argument, READS);
    for (const path of this.reads) this.uses.opened.add(path);
    for (const path of this.writes) {
      // Whatever a file that git does not track contains would be lost.
      this.uses.opened.add(path);
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
  readScript(text: string, via: readonly string[], depth: number): void {
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
    this.source = text;
    this.walk(tree, via, depth);
    this.source = before;
  }

  /** Reads the text that a task runs in its own folder. */
  readTask({ task, folder, text }: TaskBody, via: readonly string[], depth: number): void {
    const before = this.task;
    // A script's text may start a shell script; both belong to the outer task.
    this.task ??= task;
    this.workingFolders.within(folder, () => this.readScript(text, via, depth + 1));
    this.task = before;
  }

  /**
   * Records a command that runs.
   * @param files arguments that may be file names
   */
  recordCommand(name: ShellArgument, args: readonly ShellArgument[], via: readonly string[], files = args): void {
    this.words += args.length + 1;
    if (this.commands.length >= MAX_COMMANDS || this.words > MAX_WORDS) return this.note("size");
    const plain = this.workingFolders.commandName(name);
    const words = args.map(({ text }) => text);
    this.commands.push({
      name: plain,
      args: words,
      via: [...via],
      ...(this.task === undefined ? {} : { task: this.task }),
    });
    const texts = textArguments(plain, args);
    this.texts.push(...texts);
    const use = fileUse(plain, words, this.task !== undefined);
    const named = files.filter((argument) => !texts.includes(argument));
    for (const argument of named) {
      this.path(argument, use);
      for (const host of hostsIn(argument.text)) this.hosts.add(host);
    }
    if (plain.includes("/")) this.path(name, READS);
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

  /** Records the files that a command such as `cp` or `touch` creates, also within a folder. */
  private recordTargets(args: readonly ShellArgument[], { creates }: FileUse): void {
    const operands = args.filter(({ text }) => !text.startsWith("-"));
    const target = operands.at(-1);
    if (creates === undefined || target === undefined) return;
    const targets = creates === "all" ? operands : [target];
    // A folder is copied or moved with the files in it.
    for (const each of operands.slice(0, -1))
      for (const path of each.matches ?? this.workingFolders.filePaths(each)) this.uses.copied.add(path);
    for (const path of targets.flatMap((each) => this.workingFolders.filePaths(each))) {
      this.uses.created.add(path);
      for (const { text } of operands.slice(0, -1)) {
        const inFolder = `${path}/${text.replace(/\/+$/, "").split("/").at(-1) ?? ""}`;
        this.uses.created.add(inFolder);
        this.uses.changed.add(inFolder);
      }
    }
  }

  path(argument: ShellArgument, use: FileUse): void {
    for (const path of argument.matches ?? this.workingFolders.possiblePaths(argument)) {
      if (this.paths.size >= MAX_PATHS) return this.note("size");
      this.paths.add(path);
      if (use.opens) this.uses.opened.add(path);
      if (use.changes) this.uses.changed.add(path);
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
        node.commands.forEach((command, at) => {
          const before = this.isPiped;
          this.isPiped ||= at > 0;
          this.walk(command, via, depth);
          this.isPiped = before;
        });
        return;
      case "Statement":
        // In zsh, "&!" and "&|" are operators. In fish, "a&b" is one word.
        if (node.background === true && /[^\s)]/.test(this.source.charAt(node.end))) this.note("shell");
        break;
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
      case "Select":
        // The loop variable could be PATH.
        this.note("assignment");
        break;
      case "TestCommand":
        // Operands of -eq and -v are evaluated as expressions, which can run commands. In some shells, "||" ends the
        // command.
        this.note("expansion");
        break;
      case "Word":
        return void this.argument(node, via, depth);
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

  private argument(word: Word, via: readonly string[], depth: number): ShellArgument {
    const { unclear, scripts } = wordValue(word);
    if (unclear !== null) this.note(unclear);
    for (const script of scripts) this.walk(script, via, depth);
    return toArgument(word);
  }

  /** Returns a pattern with the files that it matches; null if the word is no plain pattern, or the matches are unknown. */
  private matchedArgument(word: Word): ShellArgument | null {
    if (word.parts?.every(({ type }) => type === "Literal" || type === "Glob") !== true) return null;
    const matches = this.workingFolders.all().map((folder) => matchFiles(word.text, folder, this.project));
    if (matches.includes(null)) return null;
    return { text: word.text, isLiteral: true, startsWithTilde: false, matches: (matches as string[][]).flat() };
  }

  private readAssignment(node: Assignment, via: readonly string[], depth: number): void {
    const { name, value, append, index } = node;
    // Subscripts are evaluated as expressions, which can run commands.
    if (index !== undefined || append === true || value.type === "ArrayValue") this.note("assignment");
    else if (!isHarmlessAssignment(name, wordValue(value).text)) this.note("assignment");
    forEachChild(node, (child) => this.walk(child, via, depth));
  }

  private readCommand(node: Command, via: readonly string[], depth: number): void {
    for (const each of node.prefix) if (each.type === "Assignment") this.readAssignment(each, via, depth);
    for (const each of node.redirects) this.readRedirect(each, via, depth, wordAfter(node, each.end));
    if (node.name === undefined) return;
    // This parser ignores a parenthesis after a word, but in zsh it starts a pattern that can contain "#".
    const openParenthesis = /[ \t]*\(/y;
    for (const { end } of [node, node.name, ...node.args]) {
      openParenthesis.lastIndex = end;
      if (openParenthesis.test(this.source)) this.note("syntax");
    }
    const name = this.argument(node.name, via, depth);
    if (!name.isLiteral) this.note("name");
    const args = node.args.map((each): ShellArgument => {
      if (each.type === "Word") return this.matchedArgument(each) ?? this.argument(each, via, depth);
      this.readAssignment(each, via, depth);
      if (each.value.type !== "Word" || each.index !== undefined)
        return { text: each.text, isLiteral: false, startsWithTilde: false };
      const { text, isLiteral } = wordValue(each.value);
      return { text: `${each.name}=${text}`, isLiteral, startsWithTilde: false };
    });
    // git is an exception: "HEAD^" and "HEAD~2" are commits, and git's own patterns match only tracked files.
    if (name.text !== "git" && args.some(({ mayBeZshPattern: extended }) => extended === true)) this.note("glob");
    const documents = node.redirects.filter((each): each is HereDoc => each.type === "HereDoc");
    this.runs.read(
      [name, ...args],
      via,
      depth,
      documents.length === 1 ? this.hereDocumentBody(documents[0] as HereDoc) : null,
    );
  }

  /** Returns the text of a here-document; null if the text depends on expansions. */
  private hereDocumentBody({ delimiter, body, operator, closing, descriptor }: HereDoc): string | null {
    if (delimiter === undefined || closing === undefined || descriptor !== undefined) return null;
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
    // In `2>&1` the word is a descriptor; in `>&file` it is a file.
    if (node.operator.endsWith("&") && /^([0-9]+-?|-)$/.test(target.text)) return;
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
    for (const path of this.workingFolders.filePaths(target)) {
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

function toArgument(word: Word): ShellArgument {
  const { text, isLiteral, startsWithTilde, mayBeZshPattern } = wordValue(word);
  return { text, isLiteral, startsWithTilde, mayBeZshPattern };
}

function wordAfter({ name, args }: Command, end: number): Word | undefined {
  const words = [name, ...args].filter((each) => each?.type === "Word" && each.pos >= end) as Word[];
  return words.sort((a, b) => a.pos - b.pos)[0];
}

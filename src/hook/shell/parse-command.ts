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
import { resolve } from "node:path/posix";
import { WorkingFolders } from "./working-folders.ts";
import { NestedCommands } from "./nested-commands.ts";
import { textArguments } from "./text-arguments.ts";
import type { ParsedShell, ShellArgument, ShellContext, UnclearReason } from "./shell-types.ts";
import { hasExpansion, joinParts, wordValue } from "./word-values.ts";
import { isHarmlessAssignment } from "./command-tables.ts";

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
 * Parses a command without access to the file system. Cannot resolve symbolic links, so a path with ".." after a folder
 * name is reported in `unclear`.
 */
export function parseShell(text: string, place: ShellContext): ParsedShell {
  const { parsed } = readShellText(text, place);
  const climbs = (path: string): boolean => {
    const cwd = place.cwds.find((each) => path.startsWith(`${each}/`)) ?? "";
    return /[^/.][^/]*\/(.*\/)?\.\.(\/|$)/s.test(path.slice(cwd.length));
  };
  const plain = (paths: readonly string[]): string[] => [...new Set(paths.map((path) => resolve(path)))].sort();
  const { reads, writes, paths } = parsed;
  const unclear = paths.some(climbs) ? new Set([...parsed.unclear, "directory" as const]) : parsed.unclear;
  return {
    ...parsed,
    reads: plain(reads),
    writes: plain(writes),
    paths: plain(paths),
    unclear: [...unclear].sort(),
  };
}

/**
 * Like `parseShell`, but for callers that resolve links: absolute paths in the result still contain "..". `folders`
 * contains all folders in which the line may run.
 */
export function readShellText(text: string, place: ShellContext): { parsed: ParsedShell; folders: string[] } {
  const reading = new ShellReader(place);
  if (HIDDEN_CHARACTERS.test(text)) reading.note("characters");
  reading.readScript(text, [], 0);
  return { parsed: reading.result(), folders: reading.workingFolders.all() };
}

class ShellReader {
  private readonly commands: ParsedShell["commands"] = [];
  private readonly reads = new Set<string>();
  private readonly writes = new Set<string>();
  private readonly paths = new Set<string>();
  /** Standard streams that are opened for writing. They count as written files if the line also reads files. */
  private readonly streams = new Set<string>();
  private readonly unclear = new Set<UnclearReason>();
  /** Arguments that count as file names only if another part of the line is unclear. */
  private readonly texts: ShellArgument[] = [];
  private words = 0;
  private source = "";
  readonly workingFolders: WorkingFolders;
  private readonly runs: NestedCommands;

  constructor(place: ShellContext) {
    this.workingFolders = new WorkingFolders(place, (reason) => this.note(reason));
    this.runs = new NestedCommands(this);
  }

  note(reason: UnclearReason): void {
    this.unclear.add(reason);
  }

  result(): ParsedShell {
    if (this.reads.size > 0) for (const path of this.streams) this.writes.add(path);
    if (this.unclear.size > 0) for (const argument of this.texts) this.path(argument);
    return {
      version: 1,
      commands: this.commands,
      reads: [...this.reads].sort(),
      writes: [...this.writes].sort(),
      paths: [...this.paths].sort(),
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

  /**
   * Records a command that runs.
   * @param files arguments that may be file names
   */
  recordCommand(name: ShellArgument, args: readonly ShellArgument[], via: readonly string[], files = args): void {
    this.words += args.length + 1;
    if (this.commands.length >= MAX_COMMANDS || this.words > MAX_WORDS) return this.note("size");
    const plain = this.workingFolders.commandName(name);
    this.commands.push({ name: plain, args: args.map(({ text }) => text), via: [...via] });
    const texts = textArguments(plain, args);
    this.texts.push(...texts);
    for (const argument of files) if (!texts.includes(argument)) this.path(argument);
    if (plain.includes("/")) this.path(name);
  }

  path(argument: ShellArgument): void {
    for (const path of this.workingFolders.possiblePaths(argument)) {
      if (this.paths.size >= MAX_PATHS) return this.note("size");
      this.paths.add(path);
    }
  }

  private walk(node: SyntaxNode, via: readonly string[], depth: number): void {
    switch (node.type) {
      case "Script":
        if ((node.errors ?? []).length > 0) this.note("syntax");
        break;
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
      if (each.type === "Word") return this.argument(each, via, depth);
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

/** What is known about the output of commands in `$(…)`. */
import type { CommandNode, ParsedScript, SyntaxNode } from "unbash";
import { listedFiles } from "./listed-files.ts";
import type { ProjectFiles } from "./tasks/task-body.ts";
import { PLAIN_VALUE, wordValue, type Known } from "./word-values.ts";

const TEXT: Known = { kind: "text" };
export const NEW_TEMPORARY_FILE = "/tmp/tmp.XXXXXXXXXX";
/** Git commands whose output is the name of a commit, or of several. */
const NAMES_COMMIT = new RegExp(
  [
    "merge-base( [\\w./~^@-]+)+",
    // With the name of a file, the output is that name.
    "rev-parse( --short(=\\d+)?| --verify| --abbrev-ref| --symbolic-full-name)* (HEAD|@)([~^]\\d*)*",
    "describe( --tags| --abbrev=\\d+| --always| --long)*( (HEAD|@)([~^]\\d*)*)?",
    "branch --show-current|symbolic-ref --short HEAD|hash-object -t tree /dev/null",
    "log -1 --format=%[hH]( [\\w./~-]+)?",
    "rev-list( --reverse| --no-merges| --first-parent| --max-count=\\d+| -n ?\\d+)* [\\w./~^@-]+",
    "rev-list (-1|-n 1|--max-count=1|--max-parents=0) [\\w./~-]+",
    "for-each-ref --format=%\\(refname(:short)?\\)( --sort=\\S+)*( refs/(heads|tags|remotes)[\\w./-]*)+",
  ]
    .map((each) => `^(${each})$`)
    .join("|"),
);

/** Returns what is known about the output of a command substitution. Its commands are recorded and decided on like all others. */
export function outputOf(script: ParsedScript, folders: readonly string[], project: ProjectFiles): Known | null {
  const [only, ...others] = script.commands;
  if ((script.errors ?? []).length > 0) return null;
  if (only === undefined || others.length > 0 || only.background === true) return TEXT;
  const commands: readonly SyntaxNode[] = only.command.type === "Pipeline" ? only.command.commands : [only.command];
  const last = commands.at(-1);
  if (last?.type !== "Command" || commands.some((each) => each.type !== "Command")) return TEXT;
  const words = [last.name, ...last.args].map((each) => (each?.type === "Word" ? wordValue(each).text : ""));
  const [name = "", ...args] = words;
  const isCount =
    (name === "wc" && args.every((arg) => /^-[lcwm]$/.test(arg)) && args.length > 0) ||
    // With other options, grep displays names of files.
    (name === "grep" &&
      args.some((arg) => arg.startsWith("-")) &&
      args.every((arg) => !arg.startsWith("-") || /^-[ivwxEFPh]*c[ivwxEFPh]*$/.test(arg)) &&
      args.filter((arg) => !arg.startsWith("-")).length < 3 &&
      !args.some((arg) => /[*?]/.test(arg))) ||
    words.join(" ") === "nproc" ||
    words.join(" ") === "date +%s";
  if (isCount) return { kind: "number" };
  const line = words.join(" ");
  if (/^git rev-list (?=.*--count)(?!.*(stash|--left-right))[\w./^@~ -]+$/.test(line)) return { kind: "number" };
  // A folder whose name needs quotes is text.
  const [folder = "", ...alternatives] = folders;
  if (line === "pwd" && commands.length === 1 && alternatives.length === 0 && PLAIN_VALUE.test(folder))
    return { kind: "literal", text: folder };
  // A missing file or folder that mktemp creates. The argument's name represents the one that mktemp chooses.
  if (commands.length === 1 && /^mktemp( -d)?$/.test(line)) return { kind: "literal", text: NEW_TEMPORARY_FILE };
  if (commands.length === 1 && name === "git" && !/stash/.test(words.join(" ")) && NAMES_COMMIT.test(args.join(" ")))
    return { kind: "commit", text: "HEAD" };
  const files = listedFiles(commands as readonly CommandNode[], folders, project);
  // A shell would replace brackets in the names.
  return files === null || files.some((path) => /[[\]()~]/.test(path)) ? TEXT : { kind: "files", paths: files };
}

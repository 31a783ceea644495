/**
 * Builds the action of a tool call, with canonical tool names and absolute paths. For a shell command, it also contains
 * the commands that would run.
 */
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import type { ActionRequest } from "../../typescript/index.ts";
import { limitArguments } from "./argument-limits.ts";
import { codexReportsFolder } from "./codex-version.ts";
import type { HookEnvironment, HookEvent } from "../hook-event.ts";
import { patternBaseFolders, PATH_MEMBERS, otherMemberPaths, pathSpellings, toolSearch } from "./file-arguments.ts";
import { isObject, PayloadError, type JsonObject } from "../payload.ts";
import { readPatchPaths } from "./patch-paths.ts";
import { toAbsolute, isInside, LinkFollower, realPath } from "./followed-paths.ts";
import { shellQuote } from "../shell/quote.ts";
import { changesWorktree, readsFilesOutsideRepository, usesWorkspaceGitSettings } from "./git-repository.ts";
import { fileProperties, type OwnFiles } from "./file-properties.ts";
import { WorkspaceFiles } from "./workspace-files.ts";
import { hostsInProse } from "../shell/addresses.ts";
import {
  CANONICAL_TOOL_BY_KIND,
  searchesFileNames,
  toolKind,
  parseMcpToolName,
  type ToolKind,
} from "./canonical-tools.ts";

/**
 * Members in which the model explains a call. Their text differs in each call, so they are sent as `meta`. A repeated
 * call can then join the same action.
 */
const REMARKS = new Set(["description", "explanation", "goal", "reason", "intent", "thought", "summary"]);

interface CanonicalAction {
  request: ActionRequest;
  /** The model's explanation of the call, for display. It is not part of the decision. */
  remarks: JsonObject;
  /** Files that the call creates. The agent knows their contents if the policies allow the call. */
  created: string[];
  workspace: string | null;
}

const NONE: ReadonlySet<string> = new Set();

export async function toCanonicalAction(
  event: HookEvent,
  agent: string,
  environment: HookEnvironment,
): Promise<CanonicalAction> {
  const mcp = parseMcpToolName(event.tool);
  const kind = mcp === null ? toolKind(event.tool) : undefined;
  const remarks: JsonObject = {};
  // Use `Object.fromEntries`, so that a member `__proto__` stays a normal member.
  const isRemark = ([name, value]: [string, unknown]): boolean =>
    mcp === null && REMARKS.has(name) && typeof value === "string";
  const members = Object.entries(event.input);
  for (const [name, value] of members.filter(isRemark)) remarks[name] = value;
  const input = Object.fromEntries(members.filter((member) => !isRemark(member)));
  const { tool, operation } = canonicalName(event.tool, kind, mcp);
  const location = await locateCall(event, environment);
  const params = kind === undefined ? input : await actionParams(event.tool, kind, input, location);
  return {
    request: { agent_id: agent, tool, operation, params: limitArguments(params), context: actionContext(location) },
    remarks,
    created: [...location.created].sort(),
    workspace: location.workspace,
  };
}

/**
 * Binds an approval to this machine and workspace, because the same paths and server names mean other files and servers
 * elsewhere.
 */
function actionContext({ workspace, cwd }: CallLocation): JsonObject {
  return { machine: hostname(), folder: workspace ?? cwd };
}

function canonicalName(
  tool: string,
  kind: ToolKind | undefined,
  mcp: ReturnType<typeof parseMcpToolName>,
): { tool: string; operation: string } {
  if (mcp !== null) return { tool: `mcp.${mcp.server}`, operation: mcp.name };
  if (kind === "agent") return { tool: "agent", operation: tool.toLowerCase() };
  // Use the tool name `other`, so that policies deny an unknown host tool unless a rule matches it.
  if (kind === undefined) return { tool: "other", operation: tool };
  const [name, operation] = CANONICAL_TOOL_BY_KIND[kind];
  return { tool: name, operation };
}

interface CallLocation {
  cwd: string;
  /**
   * Resolves to true if a command is certain to run in `cwd`. In Codex, the model can choose another folder, and older
   * versions do not report it.
   */
  isFolderCertain(): Promise<boolean>;
  home: string | null;
  /** Workspace with links resolved. Null if it is unknown, if it is `/`, or if it contains the home folder. */
  workspace: string | null;
  paths: LinkFollower;
  /** Whether the host types commands into the user's own terminal. */
  interactive: boolean;
  ownFiles: OwnFiles;
  /** Files that the call creates. */
  created: Set<string>;
}

async function locateCall(event: HookEvent, environment: HookEnvironment): Promise<CallLocation> {
  const { home, codexProgram: program, ownFiles } = environment;
  if (!event.cwd.startsWith("/")) throw new PayloadError("the call's working folder is not an absolute path");
  const folder = event.workspace ?? event.cwd;
  const workspace = folder.startsWith("/") ? await orPayloadError(realPath(folder)) : null;
  const all =
    workspace === null ||
    workspace === "/" ||
    (home !== null && isInside(await orPayloadError(realPath(home)), workspace));
  return {
    cwd: event.cwd,
    isFolderCertain: async () => event.host !== "codex" || (await codexReportsFolder(program)),
    home,
    workspace: all ? null : workspace,
    paths: new LinkFollower(workspace),
    interactive: event.host === "vscode",
    ownFiles: () => (workspace === null || all || ownFiles === undefined ? Promise.resolve(NONE) : ownFiles(workspace)),
    created: new Set(),
  };
}

async function actionParams(
  tool: string,
  kind: ToolKind,
  input: JsonObject,
  location: CallLocation,
): Promise<JsonObject> {
  const where = location.workspace === null ? {} : { workspace: location.workspace };
  switch (kind) {
    case "run":
      return { ...(await commandParams(input, location)), ...where };
    case "read":
    case "search":
    case "write":
    case "delete":
      return { ...(await fileParams(tool, kind, input, location)), ...where };
    case "patch":
      return { ...(await patchParams(input, location)), ...where };
    case "fetch":
      return fetchParams(input);
    case "find":
      return input;
    default:
      return { input };
  }
}

async function commandParams(input: JsonObject, location: CallLocation): Promise<JsonObject> {
  const { command, cmd, cwd, workdir, directory, dir_path, working_directory, workingDirectory, ...otherMembers } =
    input;
  const { timeout, ...others } = otherMembers;
  const { run_in_background, isBackground, is_background, ...rest } = others;
  const background = [run_in_background, isBackground, is_background].some((value) => value === true);
  if (command !== undefined && cmd !== undefined) throw new PayloadError("the call has two different commands");
  const named = [cwd, workdir, directory, dir_path, working_directory, workingDirectory];
  const folders = named.filter((value) => value !== undefined && value !== null && value !== "");
  if (folders.length > 1 || folders.some((value) => typeof value !== "string"))
    throw new PayloadError("the call has more than one working folder, or one that is not a string");
  const text = commandText(command ?? cmd);
  const folder = await orPayloadError(
    realPath(toAbsolute((folders[0] as string | undefined) ?? location.cwd, location.cwd, location.home)),
  );
  return {
    command: text,
    cwd: folder,
    ...(timeout === undefined ? {} : { timeout }),
    ...(background ? { background } : {}),
    ...(Object.keys(rest).length === 0 ? {} : { options: rest }),
    parsed: await parseCommand(text, folder, location),
  };
}

function commandText(value: unknown): string {
  if (typeof value === "string" && value.trim() !== "") return value;
  // Codex may send a list of words. Quote them, so that the command text has the same meaning.
  if (Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string"))
    return (value as string[]).map(shellQuote).join(" ");
  throw new PayloadError("the call's command is not a string");
}

/** Parses a command. Loads the parser at its first use. */
async function parseCommand(text: string, cwd: string, location: CallLocation): Promise<JsonObject> {
  const { readShellText } = await import("../shell/parse-command.ts");
  const project = new WorkspaceFiles(location.workspace);
  const { parsed, folders, uses } = readShellText(text, { cwds: [cwd], home: location.home, project });
  const unclear = new Set(parsed.unclear);
  if (!(await location.isFolderCertain())) unclear.add("directory");
  // Paths and shells differ on Windows, so the result would not be reliable.
  if (process.platform === "win32") unclear.add("shell");
  // Interactive shells replace "!" and "^", and zsh on macOS does not treat "#" as a comment.
  if (location.interactive && /[#!^]/.test(text)) unclear.add("shell");
  if (
    parsed.commands.some(({ name }) => name === "git") &&
    (await usesWorkspaceGitSettings(folders, location.workspace))
  )
    unclear.add("repository");
  const followed = async (paths: Iterable<string>): Promise<string[]> => {
    const all = await Promise.all(
      [...paths].map((path) =>
        allNamesOf(path, location).catch(() => {
          unclear.add("directory");
          return [path];
        }),
      ),
    );
    return [...new Set(all.flat())].sort();
  };
  const { reads, writes, paths } = parsed;
  // Of the files that a command lists, policies need only those outside the workspace.
  const isOutside = (path: string): boolean => location.workspace === null || !isInside(path, location.workspace);
  const outside = (await followed(uses.listed)).filter(isOutside);
  const named = [...new Set([...(await followed(paths)), ...outside])].sort();
  const files = { reads: await followed(reads), writes: await followed(writes), paths: named };
  const changed = await followed(uses.changed);
  const searched = await Promise.all(
    uses.searched.map(async (search) => (await followed([search.path])).map((path) => ({ ...search, path }))),
  );
  const [opened, replaced, copied, obeyed] = [
    await followed(uses.opened),
    await followed(uses.replaced),
    await followed(uses.copied),
    await followed(uses.obeyed),
  ];
  const used = [...opened, ...replaced, ...copied, ...obeyed, ...changed, ...searched.flat().map(({ path }) => path)];
  const properties = await fileProperties(
    {
      named: files.paths,
      // `ls .env` displays only the name, unless an unclear part of the line could read the file.
      used: unclear.size > 0 ? files.paths : [...new Set(used)],
      opened,
      replaced,
      copied,
      searched: searched.flat(),
      changed,
      obeyed,
      deleted: await followed(uses.deleted),
      deletedFolders: await followed(uses.deletedFolders),
    },
    location.workspace,
    location.ownFiles,
  );
  for (const path of await followed(uses.created)) if (!existsSync(path)) location.created.add(path);
  for (const command of parsed.commands) {
    if (command.name === "git") {
      const words = command.args.filter((word) => !word.startsWith("-"));
      const places = folders.flatMap((folder) => words.map((word) => toAbsolute(word, folder, location.home)));
      if (readsFilesOutsideRepository(command, folders, [...places, ...(await followed(places))]))
        unclear.add("repository");
    }
  }
  // The line changes a file whose text was read above, so another text would run.
  const changesTask = [...project.readPaths].some((path) => changed.some((each) => isInside(path, each)));
  if (project.readPaths.size > 0 && (changesTask || parsed.commands.some(changesWorktree))) unclear.add("script");
  return { ...parsed, ...files, ...properties, unclear: [...unclear].sort() };
}

/**
 * Returns the path's target, and the path's names before its links were resolved. For a name with invisible characters,
 * also returns the name without them, because some file systems ignore them.
 */
async function allNamesOf(path: string, { paths, workspace }: CallLocation): Promise<string[]> {
  const { target: end, names } = await paths.follow(path);
  const all = [end, ...names];
  return all.flatMap((name) => {
    const prefixLength = workspace !== null && isInside(name, workspace) ? workspace.length : 0;
    const displayed =
      name.slice(0, prefixLength) + name.slice(prefixLength).replace(/\p{Default_Ignorable_Code_Point}/gu, "");
    return displayed === name ? [name] : [name, displayed];
  });
}

async function fileParams(
  tool: string,
  kind: ToolKind,
  input: JsonObject,
  location: CallLocation,
): Promise<JsonObject> {
  const named = PATH_MEMBERS.filter((name) => input[name] !== undefined);
  const rest = Object.fromEntries(Object.entries(input).filter(([name]) => !named.includes(name)));
  const paths = [...named.map((name) => input[name]), ...otherMemberPaths(rest)];
  if (paths.some((path) => typeof path !== "string" || path === ""))
    throw new PayloadError("a path of the call is not a string");
  if (new Set(named.map((name) => input[name])).size > 1) throw new PayloadError("the call has two different paths");
  // A search without a path reads the working folder.
  if (paths.length === 0 && kind === "search") paths.push(location.cwd);
  if (searchesFileNames(tool)) paths.push(...patternBaseFolders(rest, paths[0] as string));
  if (paths.length === 0) throw new PayloadError("the call names no path");
  const absolute = await absolutePaths(paths as string[], location);
  return {
    paths: absolute,
    ...(await toolFileProperties(kind, tool, absolute, rest, location)),
    ...(Object.keys(rest).length === 0 ? {} : { options: rest }),
  };
}

async function toolFileProperties(
  kind: ToolKind,
  tool: string,
  paths: readonly string[],
  options: JsonObject,
  { workspace, ownFiles, created }: CallLocation,
): Promise<JsonObject> {
  const changes = kind === "write" || kind === "patch" || kind === "delete";
  if (changes) for (const path of paths) if (!existsSync(path)) created.add(path);
  const searches = changes || searchesFileNames(tool) ? [] : paths.map((path) => toolSearch(kind, path, options));
  const properties = await fileProperties(
    {
      named: paths,
      used: searchesFileNames(tool) ? [] : paths,
      opened: searches.flatMap((each) => (typeof each === "string" ? [each] : [])),
      // If the call changes a file, the file's content is lost or part of the tool's answer.
      replaced: changes ? paths : [],
      searched: searches.filter((each) => typeof each !== "string"),
      changed: changes ? paths : [],
    },
    workspace,
    ownFiles,
  );
  return { ...properties };
}

async function absolutePaths(paths: readonly string[], location: CallLocation): Promise<string[]> {
  if (paths.length > 128) throw new PayloadError("the call names more than 128 files");
  const spelled = paths.flatMap(pathSpellings);
  const all = await Promise.all(
    spelled.map((path) => orPayloadError(allNamesOf(toAbsolute(path, location.cwd, location.home), location))),
  );
  return [...new Set(all.flat())].sort();
}

async function patchParams(input: JsonObject, location: CallLocation): Promise<JsonObject> {
  const { input: text, patch, patchText, command, ...rest } = input;
  const given = [text, patch, patchText, command].filter((value) => value !== undefined);
  const [content] = given;
  if (given.length !== 1 || typeof content !== "string") throw new PayloadError("the call's patch is not a string");
  const { paths, deletes } = readPatchPaths(content);
  if (paths.length === 0) throw new PayloadError("the patch names no file");
  const absolute = await absolutePaths(paths, location);
  return {
    paths: absolute,
    ...(deletes.length === 0 ? {} : { deletes: await absolutePaths(deletes, location) }),
    ...(await toolFileProperties("patch", "apply_patch", absolute, {}, location)),
    options: { patch: content, ...rest },
  };
}

function fetchParams(input: JsonObject): JsonObject {
  const { url, urls, ...rest } = input;
  const given = [url, urls].flat().filter((each) => each !== undefined);
  if (given.some((each) => typeof each !== "string" || !URL.canParse(each)))
    throw new PayloadError("the call has an address that is not a URL");
  const main = given.map((each) => new URL(each as string).hostname);
  // Addresses in other arguments count too: Gemini's tool gets its addresses in a prompt.
  const hosts = [...new Set([...main, ...textsIn(input).flatMap(hostsInProse)])].sort();
  if (hosts.length === 0) throw new PayloadError("the call names no address");
  return { urls: given, hosts, ...(Object.keys(rest).length === 0 ? {} : { options: rest }) };
}

/** Returns all strings in a value, and the strings that result from percent-decoding them. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value, decodePercent(value)];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return isObject(value) ? [...Object.keys(value), ...Object.values(value).flatMap(textsIn)] : [];
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function orPayloadError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch {
    throw new PayloadError("a link in a path of the call cannot be resolved");
  }
}

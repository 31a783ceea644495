/** The action that a call of a tool is: canonical names, absolute paths, and for a shell what it would run. */
import { hostname } from "node:os";
import type { ActionRequest } from "../../client/index.ts";
import { bounded } from "./argument-limits.ts";
import { isTellingCodex } from "./codex-version.ts";
import type { HookEnvironment, HookEvent } from "../hook-event.ts";
import { baseOf, PATHS, pathsWithin, spellingsOf } from "./file-arguments.ts";
import { PayloadFault, type JsonObject } from "../payload.ts";
import { patched } from "./patch-paths.ts";
import { absolute, isInside, Paths, real } from "./followed-paths.ts";
import { quoted } from "../shell/quote.ts";
import { isEmbedded, isUnkept, namesFolder } from "./git-repository.ts";
import type { ParsedShell } from "../shell/types.ts";
import { CANONICAL, isNamesOnly, kindOf, mcpTool, type Kind } from "./canonical-tools.ts";

/** Said by the model to whoever reads along, and other each time: beside the request, so that the next try joins. */
const REMARKS = new Set(["description", "explanation", "goal", "reason", "intent", "thought", "summary"]);

export interface CanonicalAction {
  request: ActionRequest;
  /** The model's own words about the call: shown, and no part of what is asked. */
  remarks: JsonObject;
}

export async function actionOf(
  event: HookEvent,
  agent: string,
  environment: HookEnvironment,
): Promise<CanonicalAction> {
  const mcp = mcpTool(event.tool);
  const kind = mcp === null ? kindOf(event.tool) : undefined;
  const remarks: JsonObject = {};
  // A member "__proto__" stays one, and lends nothing to the others.
  const isRemark = ([name, value]: [string, unknown]): boolean =>
    mcp === null && REMARKS.has(name) && typeof value === "string";
  const members = Object.entries(event.input);
  for (const [name, value] of members.filter(isRemark)) remarks[name] = value;
  const input = Object.fromEntries(members.filter((member) => !isRemark(member)));
  const { tool, operation } = nameOf(event.tool, kind, mcp);
  const place = await placeOf(event, environment);
  const params = kind === undefined ? input : await paramsOf(event.tool, kind, input, place);
  return { request: { agent_id: agent, tool, operation, params: bounded(params), context: contextOf(place) }, remarks };
}

/**
 * What else the approval of a call is bound to. Another machine has other files behind the same paths, and another
 * workspace other servers behind the same names: a call there does not join.
 */
function contextOf({ workspace, cwd }: Place): JsonObject {
  return { machine: hostname(), folder: workspace ?? cwd };
}

function nameOf(
  tool: string,
  kind: Kind | undefined,
  mcp: ReturnType<typeof mcpTool>,
): { tool: string; operation: string } {
  if (mcp !== null) return { tool: `mcp.${mcp.server}`, operation: mcp.name };
  if (kind === "agent") return { tool: "agent", operation: tool.toLowerCase() };
  // A tool that is not in the table: policies deny it until one of them names it.
  if (kind === undefined) return { tool: "other", operation: tool };
  const [name, operation] = CANONICAL[kind];
  return { tool: name, operation };
}

interface Place {
  cwd: string;
  /** Whether a command runs there: Codex lets its model choose a folder, and older ones do not tell the hook which. */
  certain(): Promise<boolean>;
  home: string | null;
  /** Followed through links; null where nobody tells, or where it would be everything. */
  workspace: string | null;
  paths: Paths;
  /** Whether the host types commands into the user's own terminal. */
  interactive: boolean;
}

async function placeOf(event: HookEvent, { home, program }: HookEnvironment): Promise<Place> {
  if (!event.cwd.startsWith("/")) throw new PayloadFault("the call does not say in which folder it runs");
  const folder = event.workspace ?? event.cwd;
  const workspace = folder.startsWith("/") ? await follow(real(folder)) : null;
  const all =
    workspace === null || workspace === "/" || (home !== null && isInside(await follow(real(home)), workspace));
  return {
    cwd: event.cwd,
    certain: async () => event.host !== "codex" || (await isTellingCodex(program)),
    home,
    workspace: all ? null : workspace,
    paths: new Paths(workspace),
    interactive: event.host === "vscode",
  };
}

async function paramsOf(tool: string, kind: Kind, input: JsonObject, place: Place): Promise<JsonObject> {
  const where = place.workspace === null ? {} : { workspace: place.workspace };
  switch (kind) {
    case "run":
      return { ...(await runOf(input, place)), ...where };
    case "read":
    case "search":
    case "write":
    case "delete":
      return { ...(await filesOf(tool, kind, input, place)), ...where };
    case "patch":
      return { ...(await patchOf(input, place)), ...where };
    case "fetch":
      return fetchOf(input);
    case "find":
      return input;
    default:
      return { input };
  }
}

async function runOf(input: JsonObject, place: Place): Promise<JsonObject> {
  const { command, cmd, cwd, workdir, directory, dir_path, working_directory, workingDirectory, ...more } = input;
  const { timeout, ...others } = more;
  const { run_in_background, isBackground, is_background, ...rest } = others;
  const background = [run_in_background, isBackground, is_background].some((value) => value === true);
  if (command !== undefined && cmd !== undefined) throw new PayloadFault("the call names two commands");
  const named = [cwd, workdir, directory, dir_path, working_directory, workingDirectory];
  const folders = named.filter((value) => value !== undefined && value !== null && value !== "");
  if (folders.length > 1 || folders.some((value) => typeof value !== "string"))
    throw new PayloadFault("the call does not say in which folder it runs");
  const text = commandText(command ?? cmd);
  const at = await follow(real(absolute((folders[0] as string | undefined) ?? place.cwd, place.cwd, place.home)));
  return {
    command: text,
    cwd: at,
    ...(timeout === undefined ? {} : { timeout }),
    ...(background ? { background } : {}),
    ...(Object.keys(rest).length === 0 ? {} : { options: rest }),
    parsed: { ...(await parsedOf(text, at, place)) },
  };
}

function commandText(value: unknown): string {
  if (typeof value === "string" && value.trim() !== "") return value;
  // Codex may hand over the words; they are quoted, so that the text says the same.
  if (Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string"))
    return (value as string[]).map(quoted).join(" ");
  throw new PayloadFault("the call has no command as text");
}

/** Loaded when the first command comes: reading one needs the parser. */
async function parsedOf(text: string, cwd: string, place: Place): Promise<ParsedShell> {
  const { readShell } = await import("../shell/parse.ts");
  const { parsed, folders } = readShell(text, { cwds: [cwd], home: place.home });
  const unclear = new Set(parsed.unclear);
  if (!(await place.certain())) unclear.add("directory");
  // Its paths and its shells are others.
  if (process.platform === "win32") unclear.add("shell");
  // A shell that somebody types into replaces "!" and "^", and that of macOS takes "#" for no comment.
  if (place.interactive && /[#!^]/.test(text)) unclear.add("shell");
  if (parsed.commands.some(({ name }) => name === "git") && (await isEmbedded(folders, place.workspace)))
    unclear.add("repository");
  const followed = async (paths: string[]): Promise<string[]> => {
    const all = await Promise.all(paths.map((path) => namesOf(path, place).catch(() => null)));
    if (all.includes(null)) unclear.add("directory");
    return [...new Set(all.flatMap((names, i) => names ?? [paths[i] as string]))].sort();
  };
  const { reads, writes, paths } = parsed;
  const files = { reads: await followed(reads), writes: await followed(writes), paths: await followed(paths) };
  for (const command of parsed.commands) {
    if (command.name === "git" && isUnkept(command, folders, [...paths, ...files.paths])) unclear.add("repository");
    if (command.name === "diff" && namesFolder(command, folders, place.home)) unclear.add("folder");
  }
  return { ...parsed, ...files, unclear: [...unclear].sort() };
}

/** Where a path leads, and what it is called on the way; also without the characters that some file systems leave out. */
async function namesOf(path: string, { paths, workspace }: Place): Promise<string[]> {
  const { end, names } = await paths.way(path);
  const all = [end, ...names];
  return all.flatMap((name) => {
    const at = workspace !== null && isInside(name, workspace) ? workspace.length : 0;
    const shown = name.slice(0, at) + name.slice(at).replace(/\p{Default_Ignorable_Code_Point}/gu, "");
    return shown === name ? [name] : [name, shown];
  });
}

async function filesOf(tool: string, kind: Kind, input: JsonObject, place: Place): Promise<JsonObject> {
  const named = PATHS.filter((name) => input[name] !== undefined);
  const rest = Object.fromEntries(Object.entries(input).filter(([name]) => !named.includes(name)));
  const paths = [...named.map((name) => input[name]), ...pathsWithin(rest)];
  if (paths.some((path) => typeof path !== "string" || path === ""))
    throw new PayloadFault("a path of the call is no text");
  if (new Set(named.map((name) => input[name])).size > 1) throw new PayloadFault("the call names two paths");
  // Without one, a search looks through the working folder.
  if (paths.length === 0 && kind === "search") paths.push(place.cwd);
  if (isNamesOnly(tool)) paths.push(...baseOf(rest, paths[0] as string));
  if (paths.length === 0) throw new PayloadFault("the call names no path");
  return {
    paths: await pathsOf(paths as string[], place),
    ...(Object.keys(rest).length === 0 ? {} : { options: rest }),
  };
}

async function pathsOf(paths: readonly string[], place: Place): Promise<string[]> {
  if (paths.length > 128) throw new PayloadFault("the call names more than 128 files");
  const spelled = paths.flatMap(spellingsOf);
  const all = await Promise.all(spelled.map((path) => follow(namesOf(absolute(path, place.cwd, place.home), place))));
  return [...new Set(all.flat())].sort();
}

async function patchOf(input: JsonObject, place: Place): Promise<JsonObject> {
  const { input: text, patch, patchText, command, ...rest } = input;
  const given = [text, patch, patchText, command].filter((value) => value !== undefined);
  const [content] = given;
  if (given.length !== 1 || typeof content !== "string") throw new PayloadFault("the call has no patch as text");
  const { paths, deletes } = patched(content);
  if (paths.length === 0) throw new PayloadFault("the patch names no file");
  return {
    paths: await pathsOf(paths, place),
    ...(deletes.length === 0 ? {} : { deletes: await pathsOf(deletes, place) }),
    options: { patch: content, ...rest },
  };
}

function fetchOf(input: JsonObject): JsonObject {
  const { url, urls, ...rest } = input;
  const given = [url, urls].flat().filter((each) => each !== undefined);
  // Gemini's tool takes the address inside a text for the model.
  const inText = typeof rest["prompt"] === "string" ? (rest["prompt"].match(/https?:\/\/[^\s"'<>]+/gi) ?? []) : [];
  const all = given.length > 0 ? given : inText;
  if (all.length === 0 || all.some((each) => typeof each !== "string" || !URL.canParse(each)))
    throw new PayloadFault("the call names no address");
  const hosts = [...new Set(all.map((each) => new URL(each as string).hostname))].sort();
  return { urls: all, hosts, ...(Object.keys(rest).length === 0 ? {} : { options: rest }) };
}

async function follow<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch {
    throw new PayloadFault("a path of the call cannot be followed");
  }
}

/** Reads tasks of Python projects (pyproject.toml, tox.ini) and of Taskfile. */
import { parse as parseYaml } from "yaml";
import { isObject, type JsonObject } from "../../payload.ts";
import {
  nearestFile,
  unknownTask,
  withArguments,
  withNeededTasks,
  type ProjectFiles,
  type TaskBody,
} from "./task-body.ts";

/** For each runner, the table of pyproject.toml with its tasks. */
const TASK_TABLES: Readonly<Record<string, string>> = {
  poe: "tool.poe.tasks",
  poetry: "tool.poetry.scripts",
  pdm: "tool.pdm.scripts",
  hatch: "tool.hatch.envs.default.scripts",
  taskipy: "tool.taskipy.tasks",
  uv: "project.scripts",
};

/**
 * Reads `poe test` and `pdm run test`. Returns null if pyproject.toml has no task of this name: the runner then runs the
 * program of that name.
 */
export function pyprojectTasks(
  runner: string,
  [name = "", ...args]: readonly string[],
  folder: string,
  project: ProjectFiles,
): TaskBody[] | null {
  const file = nearestFile(project, folder, ["pyproject.toml"]);
  const value = file === null ? undefined : tomlTable(file.text, TASK_TABLES[runner] as string).get(name);
  if (file === null || value === undefined) return null;
  // A string, or an inline table that has only a command. Other forms, and functions of Python, are unknown.
  const [, text = unknownTask()] = /^(?:\{\s*(?:cmd|shell)\s*=\s*)?(?:"([^"\\]*)"|'[^']*')\s*\}?$/.exec(value) ?? [];
  if (["poetry", "uv"].includes(runner)) unknownTask();
  return [{ task: name, folder: file.folder, text: withArguments(text, args) }];
}

/** Returns the entries of a table of a TOML file that are on one line. */
function tomlTable(text: string, table: string): Map<string, string> {
  const entries = new Map<string, string>();
  let current = "";
  for (const line of text.split("\n")) {
    const [, header] = /^\s*\[+\s*([^\]]*?)\s*\]+\s*(?:#.*)?$/.exec(line) ?? [];
    if (header !== undefined) {
      current = header;
      // `[tool.poe.tasks.test]` defines a task in a table of its own.
      if (header.startsWith(`${table}.`)) entries.set(header.slice(table.length + 1).split(".")[0] as string, "");
      continue;
    }
    const [, key, value] = /^\s*"?([\w.-]+)"?\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (current === table && key !== undefined) entries.set(key, value as string);
  }
  return entries;
}

/** Reads `tox`, `tox -e lint` and `tox run -e py`. */
export function toxTasks(args: readonly string[], folder: string, project: ProjectFiles): TaskBody[] | null {
  const file = nearestFile(project, folder, ["tox.ini"]);
  if (file === null) return null;
  if (args.some((arg, at) => !/^(run|r|-q|-e|-e.+)$/.test(arg) && args[at - 1] !== "-e")) unknownTask();
  let section = "";
  let isCommand = false;
  return file.text.split("\n").flatMap((line) => {
    const [, header] = /^\[([^\]]*)\]/.exec(line) ?? [];
    if (header !== undefined) section = header;
    const [, key, value = ""] = /^(\w+)\s*=(.*)$/.exec(line) ?? [];
    if (header !== undefined || key !== undefined) isCommand = /^commands(_pre|_post)?$/.test(key ?? "");
    // All environments count, whichever the options select.
    const text = (key === undefined ? line : value).trim();
    if (!isCommand || !section.startsWith("testenv") || text === "" || text.startsWith("#")) return [];
    if (/\\$|^[\w,!-]+:\s/.test(text)) unknownTask();
    return [
      { task: "tox", folder: file.folder, text: text.replace(/\{posargs(?::([^{}]*))?\}/g, "$1").replace(/^-\s*/, "") },
    ];
  });
}

/** Reads `task build` of Taskfile.yml. A text with a template (`{{.NAME}}`) is unknown. */
export function taskfileTasks(args: readonly string[], folder: string, project: ProjectFiles): TaskBody[] | null {
  const names = ["Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml", "Taskfile.dist.yml"];
  const file = nearestFile(project, folder, names);
  if (file === null) return null;
  if (args.some((arg) => !/^[\w:-]+$/.test(arg) || arg.startsWith("-"))) unknownTask();
  let content: unknown;
  try {
    content = parseYaml(file.text, { maxAliasCount: 10 });
  } catch {
    unknownTask();
  }
  const { tasks } = isObject(content) ? (content as JsonObject) : {};
  if (!isObject(tasks) || /\{\{/.test(file.text)) return unknownTask();
  const stepsOf = (name: string): (string | { needs: string })[] => {
    const value = Object.hasOwn(tasks, name) ? tasks[name] : unknownTask();
    const {
      cmds = [],
      cmd = [],
      deps = [],
      dir,
      interactive: _,
      ...others
    } = isObject(value) ? value : { cmds: value };
    const plain = ["desc", "summary", "silent", "sources", "generates", "aliases", "label", "internal", "method"];
    if (dir !== undefined || !Object.keys(others).every((key) => plain.includes(key))) unknownTask();
    const needed = [deps].flat().map((each: unknown) => (isObject(each) ? each : { task: each }));
    return [...needed, cmds, cmd].flat().map((step: unknown) => {
      const { cmd: text = step, task, ...rest } = isObject(step) ? step : { cmd: step };
      if (!Object.keys(rest).every((key) => key === "silent")) unknownTask();
      if (typeof task === "string") return { needs: task };
      return typeof text === "string" ? text : unknownTask();
    });
  };
  return withNeededTasks(args.length > 0 ? args : ["default"], (name) =>
    stepsOf(name).flatMap((step) => (typeof step === "string" ? [] : [step.needs])),
  ).flatMap((task) =>
    stepsOf(task).flatMap((step) => (typeof step === "string" ? [{ task, folder: file.folder, text: step }] : [])),
  );
}

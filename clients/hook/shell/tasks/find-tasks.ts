/** Finds the text that a task runner would run: `npm test`, `make build`, `just lint`. */
import {
  canonicalManagerArguments,
  composerTasks,
  denoTasks,
  isManagerCommand,
  nxTasks,
  packageManagerTasks,
  runAllTasks,
  turboTasks,
} from "./package-scripts.ts";
import { pyprojectTasks, taskfileTasks, toxTasks } from "./configured-tasks.ts";
import { justTasks, makeTasks } from "./recipe-files.ts";
import { UnknownTaskError, type ProjectFiles, type TaskBody } from "./task-body.ts";

type Finder = (args: readonly string[], folder: string, project: ProjectFiles) => TaskBody[] | null;

const manager =
  (name: string): Finder =>
  (args, folder, project) =>
    packageManagerTasks(name, args, folder, project);
const runAll =
  (name: string): Finder =>
  (args, folder, project) =>
    runAllTasks(name, args, folder, project);
const pyproject =
  (name: string): Finder =>
  ([command, ...args], folder, project) =>
    command === "run" ? pyprojectTasks(name, args, folder, project) : [];

const FINDERS: Readonly<Record<string, Finder>> = {
  npm: manager("npm"),
  pnpm: manager("pnpm"),
  yarn: manager("yarn"),
  bun: manager("bun"),
  deno: denoTasks,
  composer: composerTasks,
  turbo: turboTasks,
  lerna: turboTasks,
  nx: nxTasks,
  make: makeTasks,
  gmake: makeTasks,
  just: justTasks,
  task: (args, folder, project) =>
    taskfileTasks(args, folder, project) ?? pyprojectTasks("taskipy", args, folder, project),
  tox: toxTasks,
  poe: (args, folder, project) => pyprojectTasks("poe", args, folder, project),
  poetry: pyproject("poetry"),
  pdm: pyproject("pdm"),
  hatch: pyproject("hatch"),
  uv: pyproject("uv"),
  "npm-run-all": runAll("npm-run-all"),
  "run-s": runAll("run-s"),
  "run-p": runAll("run-p"),
  concurrently: runAll("concurrently"),
};

/** Returns the arguments of a task runner in the form on which policies decide: `run lint` for `yarn lint`. */
export const canonicalTaskArguments = (name: string, args: readonly string[], runsTask: boolean): readonly string[] =>
  ["npm", "pnpm", "yarn", "bun"].includes(name) ? canonicalManagerArguments(name, args, runsTask) : args;

/**
 * Returns true if a package manager runs an installed program because it has no command or script of this name: `yarn
 * eslint`.
 */
export const runsInstalledProgram = (manager: string, command: string): boolean =>
  ["yarn", "pnpm"].includes(manager) &&
  !isManagerCommand(command) &&
  !["", "run", "test", "start", "t"].includes(command);

export const isTaskRunner = (name: string): boolean => Object.hasOwn(FINDERS, name);

/**
 * Returns the commands that a task runner runs. Empty if no commands of the project run; null if there is no task file
 * or no such task. Throws UnknownTaskError if the text cannot be determined.
 */
export function findTasks(
  name: string,
  args: readonly string[],
  folder: string,
  project: ProjectFiles,
): TaskBody[] | null {
  return (FINDERS[name] as Finder)(args, folder, project);
}

export { UnknownTaskError };
export type { ProjectFiles, TaskBody };

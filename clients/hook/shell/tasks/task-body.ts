/** The commands of a task, as text for a shell. */

export interface TaskBody {
  /** Name of the task, such as `build`; empty if the command line itself contains the text. */
  task: string;
  /** Folder in which the text runs, absolute. */
  folder: string;
  text: string;
}

/** Files of the project. Only files in the workspace can be read. */
export interface ProjectFiles {
  /** Returns the text of a file; null if there is no such file, if it is too large, or if it is outside the workspace. */
  read(path: string): string | null;
  /** Returns the names of the entries of a folder; null if it is outside the workspace or cannot be read. */
  list(folder: string): readonly string[] | null;
  /**
   * Returns the names of the files below a subfolder `place`, relative to the folder: those that git tracks or could
   * add, and with `ignored` also those that it ignores. Null if they are unknown, or too many.
   */
  files(folder: string, subfolder: string, ignored: boolean): readonly string[] | null;
}

/** Thrown if the text that a runner would run cannot be determined. */
export class UnknownTaskError extends Error {}

export function unknownTask(): never {
  throw new UnknownTaskError();
}

/** Returns the nearest file with one of the names, in the folder or a folder above it; null if there is none. */
export function nearestFile(
  project: ProjectFiles,
  folder: string,
  names: readonly string[],
): { folder: string; name: string; text: string } | null {
  for (let current = folder; ; current = current.slice(0, current.lastIndexOf("/"))) {
    for (const name of names) {
      const text = project.read(`${current}/${name}`);
      if (text !== null) return { folder: current, name, text };
    }
    if (current === "") return null;
  }
}

/** Adds arguments to the last command of a text. */
export function withArguments(text: string, args: readonly string[]): string {
  return [text, ...args.map((arg) => (/^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`))].join(
    " ",
  );
}

/**
 * Returns the tasks and all tasks that they require, which come first. Throws UnknownTaskError if there are too many.
 */
export function withNeededTasks(names: readonly string[], needsOf: (name: string) => readonly string[]): string[] {
  const seen = new Set<string>();
  const visit = (name: string): string[] => {
    if (seen.has(name)) return [];
    if (seen.add(name).size > 64) unknownTask();
    return [...needsOf(name).flatMap(visit), name];
  };
  return names.flatMap(visit);
}

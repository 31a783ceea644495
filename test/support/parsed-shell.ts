/**
 * Parses commands without a file system: every file counts as missing, or as tracked by git.
 * @needs hook
 */
import { resolve } from "node:path/posix";
import { runsLater, suggestsSecrets } from "../../clients/hook/action/place-table.ts";
import { readShellText } from "../../clients/hook/shell/parse-command.ts";
import type { ParsedShell, ShellContext } from "../../clients/hook/shell/shell-types.ts";

const plain = (paths: Iterable<string>): string[] => [...new Set([...paths].map((path) => resolve(path)))].sort();

/** Cannot resolve symbolic links, so a path with ".." after a folder name is reported in `unclear`. */
export function parseShell(text: string, place: ShellContext): ParsedShell {
  const { parsed } = readShellText(text, place);
  const climbs = (path: string): boolean => {
    const cwd = place.cwds.find((each) => path.startsWith(`${each}/`)) ?? "";
    return /[^/.][^/]*\/(.*\/)?\.\.(\/|$)/s.test(path.slice(cwd.length));
  };
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

/** Returns `params.parsed` as the hook sends it, for files with suspicious names that exist and that git does not track. */
export function parsedParams(text: string, workspace: string): Record<string, unknown> {
  const place = { cwds: [workspace], home: "/home/ada" };
  const parsed = parseShell(text, place);
  const changed = plain(readShellText(text, place).uses.changed);
  return {
    ...parsed,
    secrets: parsed.paths.filter(suggestsSecrets),
    untracked: [],
    later: changed.filter((path) => runsLater(path, workspace)),
  };
}

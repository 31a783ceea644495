/** Finds the files that a patch changes, in the format that Codex introduced. */

/**
 * Returns the paths in a patch. Some hosts accept whitespace around markers, so every line that resembles a marker
 * counts, even within a file's content. `deletes` contains the deleted files, which are also in `paths`.
 */
export function readPatchPaths(patch: string): { paths: string[]; deletes: string[] } {
  const paths: string[] = [];
  const deletes: string[] = [];
  // Split only at LF, like the hosts, and not at other Unicode line ends.
  for (const line of patch.split("\n")) {
    const match = /^[\s\u0085]*\*\*\*[\s\u0085]*(Add File|Update File|Delete File|Move to)\s*:(.*)$/isu.exec(line);
    const path = match?.[2]?.replace(/^[\s\u0085]+|[\s\u0085]+$/gu, "");
    if (path === undefined || path === "") continue;
    paths.push(path);
    if (/^delete/i.test(match?.[1] as string)) deletes.push(path);
  }
  return { paths, deletes };
}

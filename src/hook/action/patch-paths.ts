/** Which files a patch changes: the form that Codex made, and that others took over. */

/**
 * Some hosts take markers with blanks around them: whatever looks like one counts, also where it is a line of a file.
 * `deletes` are those of `paths` that go.
 */
export function readPatchPaths(patch: string): { paths: string[]; deletes: string[] } {
  const paths: string[] = [];
  const deletes: string[] = [];
  // Lines end where hosts end them: at LF, not at what else Unicode calls a line's end.
  for (const line of patch.split("\n")) {
    const match = /^[\s\u0085]*\*\*\*[\s\u0085]*(Add File|Update File|Delete File|Move to)\s*:(.*)$/isu.exec(line);
    const path = match?.[2]?.replace(/^[\s\u0085]+|[\s\u0085]+$/gu, "");
    if (path === undefined || path === "") continue;
    paths.push(path);
    if (/^delete/i.test(match?.[1] as string)) deletes.push(path);
  }
  return { paths, deletes };
}

/** Which files the arguments of a host's file tool name. Too many rather than too few: hosts call one thing by many names. */
import { fileURLToPath } from "node:url";
import { isObject, PayloadError, type JsonObject } from "../payload.ts";

/** Of which a call has one. */
export const PATH_MEMBERS = [
  "file_path",
  "filePath",
  "path",
  "notebook_path",
  "absolute_path",
  "dir_path",
  "dirPath",
  "target_file",
];

/** How members end that name files or folders, in whichever words: `target_directory`, `filePaths`. */
const PATH_MEMBER_ENDING = /(^|_)(paths?|files?|dirs?|director(y|ies)|folders?|cwd|root|uris?)$/;

/** `operations: [{ path }]` of Kiro, `replacements: [{ filePath }]` of VS Code, `include` of Gemini, `paths` of others. */
export function nestedPaths(rest: JsonObject): unknown[] {
  return Object.entries(rest).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? (value as unknown[]) : [value];
    const words = name.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase();
    const isNamed = PATH_MEMBER_ENDING.test(words) || (name === "include" && Array.isArray(value));
    return values.flatMap((each) => {
      if (isObject(each)) return Array.isArray(value) ? nestedPaths(each) : [];
      const isText = typeof each === "string" ? each !== "" : Array.isArray(value);
      return PATH_MEMBERS.includes(name) || (isNamed && isText) ? [each] : [];
    });
  });
}

/** What stands in a pattern before its first wildcard. */
const literalPrefix = (pattern: string): string => pattern.slice(0, /[*?[{]|$/.exec(pattern)?.index);

/** The folder where a pattern of names begins: it may lie elsewhere than the folder that is named. */
export function patternBaseFolders(rest: JsonObject, folder: string): string[] {
  const patterns = ["pattern", "glob_pattern", "query"].map((name) => rest[name]);
  return patterns
    .filter((pattern) => typeof pattern === "string")
    .flatMap((pattern) => {
      rejectParentSegments(pattern);
      const plain = literalPrefix(pattern);
      const base = plain.slice(0, plain.lastIndexOf("/") + 1);
      return /^[/~]/.test(base) ? [base] : [`${folder}/${base}`];
    });
}

/** Where a pattern climbs behind a folder that is not written out cannot be told. */
function rejectParentSegments(pattern: string): void {
  const wild = pattern.slice(literalPrefix(pattern).length);
  // "{.,x}" behind a dot, or two of them beside each other, are ".." too.
  const pieces = pattern.split(/[{},/]/);
  const isPut = pattern.includes("{") && pieces.filter((piece) => piece === ".").length > 1;
  if (/(^|[/{,])[.][.]([/,}]|$)/.test(wild) || isPut)
    throw new PayloadError("a pattern of the call leads out of its folder");
}

/** What a host may take a text for that names a file: an address of one, and blanks around it that it leaves out. */
export function pathSpellings(path: string): string[] {
  rejectParentSegments(path);
  if (/^\s*file:/i.test(path)) {
    try {
      return [fileURLToPath(path.trim())];
    } catch {
      throw new PayloadError("a path of the call is an address that names no file here");
    }
  }
  if (/^\s*[a-z][a-z0-9+.-]+:/i.test(path)) throw new PayloadError("a path of the call is an address");
  const trimmed = path.trim();
  return trimmed === path || trimmed === "" ? [path] : [path, trimmed];
}

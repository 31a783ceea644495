/**
 * Finds the paths in the arguments of a file tool. Member names differ between hosts, so the search is broad and can
 * return values that are not paths.
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isObject, PayloadError, type JsonObject } from "../payload.ts";
import { kindOf } from "./file-properties.ts";
import { typeGlob } from "../shell/file-uses.ts";
import type { Search } from "../shell/shell-types.ts";

/** Members that contain the path of the file. If a call has several of them, their values must be equal. */
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

/** Matches the ends of member names whose values are paths, such as `target_directory` and `filePaths`. */
const PATH_MEMBER_ENDING = /(^|_)(paths?|files?|dirs?|director(y|ies)|folders?|cwd|root|uris?)$/;

/**
 * Finds paths in a call's other members: `operations: [{ path }]` (Kiro), `replacements: [{ filePath }]` (VS Code),
 * `include` (Gemini), `paths` (others).
 */
export function otherMemberPaths(rest: JsonObject): unknown[] {
  return Object.entries(rest).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? (value as unknown[]) : [value];
    const words = name.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase();
    const isNamed = PATH_MEMBER_ENDING.test(words) || (name === "include" && Array.isArray(value));
    return values.flatMap((each) => {
      if (isObject(each)) return Array.isArray(value) ? otherMemberPaths(each) : [];
      const isText = typeof each === "string" ? each !== "" : Array.isArray(value);
      return PATH_MEMBERS.includes(name) || (isNamed && isText) ? [each] : [];
    });
  });
}

/** Returns the part of a pattern before its first wildcard. */
const literalPrefix = (pattern: string): string => pattern.slice(0, /[*?[{]|$/.exec(pattern)?.index);

/** Returns the folders in which file name patterns start. They may be outside `folder`. */
export function patternBaseFolders(rest: JsonObject, folder: string): string[] {
  const patterns = ["pattern", "glob_pattern", "query"].map((name) => rest[name]);
  return patterns
    .filter((pattern) => typeof pattern === "string")
    .flatMap((pattern) => {
      rejectParentSegments(pattern);
      const prefix = literalPrefix(pattern);
      const base = prefix.slice(0, prefix.lastIndexOf("/") + 1);
      return /^[/~]/.test(base) ? [base] : [`${folder}/${base}`];
    });
}

/**
 * Throws for a pattern with `..` after a wildcard, because the folders that the pattern matches cannot be determined.
 */
function rejectParentSegments(pattern: string): void {
  const wildcardPart = pattern.slice(literalPrefix(pattern).length);
  // Two alternatives with a single dot each can combine to "..".
  const segments = pattern.split(/[{},/]/);
  const combinesDots = pattern.includes("{") && segments.filter((chunk) => chunk === ".").length > 1;
  if (/(^|[/{,])[.][.]([/,}]|$)/.test(wildcardPart) || combinesDots)
    throw new PayloadError("a pattern of the call leaves its folder by `..`");
}

/**
 * Returns the paths that a host may read from a string. For a `file:` URL, this is its path. For other strings, this is
 * the string with and without surrounding whitespace. Throws PayloadError for other URLs.
 */
export function pathSpellings(path: string): string[] {
  rejectParentSegments(path);
  if (/^\s*file:/i.test(path)) {
    try {
      return [fileURLToPath(path.trim())];
    } catch {
      throw new PayloadError("a path of the call is a URL that names no local file");
    }
  }
  if (/^\s*[a-z][a-z0-9+.-]+:/i.test(path)) throw new PayloadError("a path of the call is a URL");
  const trimmed = path.trim();
  return trimmed === path || trimmed === "" ? [path] : [path, trimmed];
}

/** Options of search tools that neither add files to a search nor start programs. */
const SEARCH_OPTIONS = new Set(
  (
    "pattern query regex path paths dir_path glob include includepattern include_pattern type output_mode -n -i -a -b -c multiline context " +
    "head_limit offset limit max_results maxresults isregexp case_sensitive casesensitive -A -B -C"
  )
    .toLowerCase()
    .split(" "),
);

/**
 * Returns the files that a read or search tool displays: one file, or a search. An unknown option counts as one that
 * includes ignored files.
 */
export function toolSearch(kind: string, path: string, options: JsonObject): Search | string {
  const pattern = literalPrefix(path) === path || existsSync(path) ? null : path;
  if (kind === "read" && pattern === null)
    return kindOf(path) === "folder" ? { path, ignored: "read", globs: [] } : path;
  const entries = Object.entries(options).map(([name, value]) => [name.toLowerCase(), value] as const);
  const isKnown = entries.every(
    // Booleans with the default value, such as `respect_git_ignore: true` and `no_ignore: false`.
    ([name, value]) => SEARCH_OPTIONS.has(name) || value === /respect|default_?exclude/.test(name),
  );
  const globs = entries.flatMap(([name, value]) => {
    if (name === "type") return [typeof value === "string" ? (typeGlob(value) ?? "*") : "*"];
    return /^(glob|include|include_?pattern)$/.test(name) ? [value].flat().map(String) : [];
  });
  const folder = pattern === null ? path : literalPrefix(pattern).replace(/\/[^/]*$/, "");
  const named = pattern === null ? globs : [pattern.slice(folder.length + 1)];
  const hasPattern = pattern !== null || entries.some(([name]) => /^(glob|include|include_?pattern)$/.test(name));
  return { path: folder, ignored: !isKnown ? "read" : hasPattern ? "matched" : "skipped", globs: named };
}

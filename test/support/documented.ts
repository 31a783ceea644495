/** Extracts code blocks and commands from the documentation, for tests that run them. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { transformSync } from "esbuild";
import { ROOT } from "./process.ts";

/** Returns a page's code blocks in one language. */
export function codeBlocks(page: string, language: string): string[] {
  const text = readFileSync(join(ROOT, "docs", page), "utf8");
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "gm"))].map(
    ([, block = ""]) => block,
  );
}

/**
 * Returns the code blocks of one section of a page, in order and without the indentation of a list. The section ends at
 * the next heading.
 * @example
 * const [config, policy, commands] = sectionBlocks("docs/egress.md", "# APIs without their keys");
 */
export function sectionBlocks(page: string, heading: string): string[] {
  const text = readFileSync(join(ROOT, page), "utf8");
  const start = text.startsWith(`${heading}\n`) ? 0 : text.indexOf(`\n${heading}\n`);
  assert.notEqual(start, -1, `${page} has no section "${heading}"`);
  // A comment in a block begins as a heading of the first level does, and pages have only one such heading.
  const [section = ""] = text.slice(start + heading.length + 1).split(/^##+ /m);
  return [...section.matchAll(/^( *)```\w.*\n([\s\S]*?)^ *```$/gm)].map(([, indent = "", block = ""]) =>
    block.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  );
}

/**
 * Returns the arguments of each `assent` command on a page that begins with `name`.
 * @param replace returns the arguments that the test uses instead of a documented one, such as the path of a file
 */
export function documentedCommands(
  page: string,
  name: string,
  replace: Readonly<Record<string, string>> = {},
): string[][] {
  const lines = codeBlocks(page, "sh").join("\n").split("\n");
  const commands = lines.filter((line) => line.startsWith(`assent ${name} `));
  assert.notEqual(commands.length, 0, `${page} has no command assent ${name}`);
  return commands.map((line) =>
    line
      .split(" ")
      .slice(1)
      .map((word) => replace[word] ?? word),
  );
}

/**
 * Writes the first plugin on a page into a folder, as JavaScript that imports the entries `assent/plugin` and
 * `assent/<feature>` of these tests. Returns its path, for use in a configuration.
 */
export function writeDocumentedPlugin(page: string, folder: string): string {
  const [source] = codeBlocks(page, "ts");
  assert.ok(source !== undefined, `${page} has no plugin`);
  const urlOf = (module: string): string => new URL(`../../${module}${extname(import.meta.url)}`, import.meta.url).href;
  const withPaths = source.replace(/"assent\/(\w+)"/g, (_, name: string) =>
    JSON.stringify(urlOf(name === "plugin" ? "src/plugin" : `plugins/${name}/api`)),
  );
  const { code } = transformSync(withPaths, { loader: "ts" });
  const path = join(folder, `${page}.mjs`);
  writeFileSync(path, code);
  return path;
}

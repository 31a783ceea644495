/**
 * Checks that every test named in docs/security.md and docs/security-standards.md exists, and that no requirement is
 * missing.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT } from "../support/process.ts";

const PAGES = ["docs/security.md", "docs/security-standards.md"];
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** Returns the titles of the tests in a file, with `…` for each placeholder. */
function testsOf(path: string): Set<string> {
  return new Set(
    [...read(path).matchAll(/\b(?:test|it)\(\s*(["'`])((?:\\.|(?!\1)[^\\])*)\1/g)].map(([, , name = ""]) =>
      name.replaceAll(/\$\{[^}]*\}/g, "…").replaceAll(/\\(.)/g, "$1"),
    ),
  );
}

test("every test that the pages on security name exists", () => {
  const pointers = PAGES.flatMap((page) =>
    [...read(page).matchAll(/`(test\/[^`]*?\.test\.ts)(?:: ([^`]+))?`/g)].map(([, file = "", name]) => ({
      page,
      file,
      name,
    })),
  );
  assert.ok(pointers.length > 80);
  // The tests of a deleted feature are deleted with it, and in a copy also those that need it.
  const isDeleted = (file: string): boolean => {
    const [, feature] = /^test\/plugins\/([\w-]+)\//.exec(file) ?? [];
    if (feature !== undefined && !existsSync(join(ROOT, "plugins", feature))) return true;
    return process.env["ASSENT_WITHOUT"] !== undefined && !existsSync(join(ROOT, file));
  };
  assert.deepEqual(
    pointers.filter(
      ({ file, name }) =>
        !isDeleted(file) && (!existsSync(join(ROOT, file)) || (name !== undefined && !testsOf(file).has(name))),
    ),
    [],
  );
});

/** Number of requirements in each section of OWASP ASVS 5.0, for the chapters that the page covers. */
const ASVS: Readonly<Record<string, readonly number[]>> = {
  6: [3, 12, 8, 6, 8, 4, 2, 4],
  7: [3, 4, 2, 5, 3, 2],
  11: [4, 5, 5, 4, 2, 2, 2],
  13: [4, 6, 4, 7],
  14: [2, 8, 3],
  16: [1, 5, 4, 3, 4],
};
const AISVS =
  "9.2.1 9.2.2 9.2.3 9.2.4 9.2.5 9.2.6 9.2.7 9.2.8 9.2.9 9.5.6 9.6.1 9.6.2 9.6.3 10.2.4 10.4.8 12.1.2 12.4.1 12.4.2 12.4.3";
const STATES = new Set(["met", "operator", "n/a", "**missing**"]);

test("the page on standards covers each requirement, with one of four states", () => {
  const rows = [
    ...read("docs/security-standards.md").matchAll(/^\| ([0-9.]+|ASI\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]*) \|$/gm),
  ];
  assert.deepEqual(
    rows.map(([, number]) => number),
    [
      ...AISVS.split(" "),
      ...Array.from({ length: 10 }, (_, index) => `ASI${String(index + 1).padStart(2, "0")}`),
      ...Object.entries(ASVS).flatMap(([chapter, sections]) =>
        sections.flatMap((count, section) =>
          Array.from({ length: count }, (_, index) => `${chapter}.${section + 1}.${index + 1}`),
        ),
      ),
    ],
  );
  assert.deepEqual(
    rows.filter(([, , , state = ""]) => !STATES.has(state)).map(([row]) => row),
    [],
  );
});

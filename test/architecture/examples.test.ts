/** Each function of `assent/plugin` has an example. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as plugin from "../../src/plugin.ts";
import { ROOT } from "../support/process.ts";

const entry = readFileSync(join(ROOT, "src/plugin.ts"), "utf8");

/** Returns the source file of an export of the entry. */
function sourceOf(name: string): string {
  for (const [, names = "", file = ""] of entry.matchAll(/export \{([^}]*)\} from "\.\/([^"]+)"/g))
    if (names.split(",").some((each) => each.trim() === name)) return readFileSync(join(ROOT, "src", file), "utf8");
  return entry;
}

for (const [name, value] of Object.entries(plugin)) {
  if (typeof value !== "function" || /^class\b/.test(Function.prototype.toString.call(value))) continue;
  test(`${name} has an example in its doc comment`, () => {
    const comment = new RegExp(`(/\\*\\*(?:(?!\\*/)[\\s\\S])*\\*/)\\n(?:export )(?:async )?function ${name}\\b`).exec(
      sourceOf(name),
    );
    assert.match(comment?.[1] ?? "", /@example\n \* \S/);
  });
}

/**
 * Each public function has an example: those of every entry but `assent/core`, `assent/actions` and `assent/policies`,
 * which features share, and `assent/console`, whose examples are the pages in plugins/<name>/page.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { ROOT } from "../support/process.ts";

const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  exports: Record<string, string | { types: string }>;
};

/** Returns the comments of the functions that a file exports, directly or from other files. */
function commentsIn(file: string, wanted: (name: string) => boolean = () => true): Map<string, string> {
  const text = readFileSync(join(ROOT, file), "utf8");
  const comments = new Map<string, string>();
  const declared =
    /(\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?export (?:async )?(?:function|const) (\w+)( = (?:async )?(?:\(|<))?/g;
  for (const [declaration, comment = "", name = "", arrow] of text.matchAll(declared))
    if (wanted(name) && (declaration.includes("function") || arrow !== undefined)) comments.set(name, comment);
  for (const [, names, from = ""] of text.matchAll(/^export (?:\*|\{([^}]*)\}) from "(\.[^"]+)"/gm)) {
    const chosen = names?.split(",").map((each) => each.trim());
    const reexported = commentsIn(
      join(dirname(file), from),
      (name) => wanted(name) && (chosen?.includes(name) ?? true),
    );
    for (const [name, comment] of reexported) comments.set(name, comment);
  }
  return comments;
}

for (const [entry, target] of Object.entries(exports)) {
  if (typeof target === "string" || ["./core", "./actions", "./policies", "./console"].includes(entry)) continue;
  const source = target.types.replace("./dist/", "").replace(/\.d\.ts$/, ".ts");
  // The folder of an optional feature may be deleted.
  if (!existsSync(join(ROOT, source))) continue;
  test(`each function of assent${entry.slice(1)} has an example in its doc comment`, () => {
    const comments = commentsIn(source);
    assert.ok(comments.size > 0);
    for (const [name, comment] of comments) assert.match(comment, /@example\n \* \S/, name);
  });
}

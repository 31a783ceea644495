/** Compares the tables of pages that repeat a table of the code, in both directions. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { TSchema } from "@sinclair/typebox";
import type { Plugin } from "../../src/plugin.ts";
import { ConfigSchema, ENVIRONMENT_VARIABLES, loadConfig } from "../../src/config/index.ts";
import { listBuiltIn } from "../../src/config/built-in-plugins.ts";
import { errorCodePrefix, ERRORS } from "../../src/contract/errors.ts";
import { ROOT } from "../support/process.ts";

const page = (name: string): string => readFileSync(join(ROOT, "docs", name), "utf8");

test("docs/errors.md lists every code with its status and title, and no other", () => {
  const rows = [...page("errors.md").matchAll(/^\| `([A-Z_0-9]+)` \| (\d+) \| ([^|]+) \| ([^|]+) \|$/gm)].map(
    ([, code, status, title]) => [code, Number(status), title],
  );
  assert.deepEqual(
    rows,
    Object.entries(ERRORS).map(([code, [status, title]]) => [code, status, title]),
  );
});

test("the README of a plugin lists its errors that have no prefix, and no other", async () => {
  for (const [name, load] of Object.entries(listBuiltIn())) {
    const { errors = {} } = (await load()).default as Plugin;
    const declared = Object.values(errors)
      .filter(({ code }) => !code.startsWith(errorCodePrefix(name)) || ["break-glass", "stop"].includes(name))
      .map(({ code, status, title }) => [code, status, title]);
    if (declared.length === 0) continue;
    const readme = readFileSync(join(ROOT, "plugins", name, "README.md"), "utf8");
    const rows = [...readme.matchAll(/^\| `([A-Z_0-9]+)` \| (\d+) \| ([^|]+) \| ([^|]+) \|$/gm)];
    assert.deepEqual(
      rows.map(([, code, status, title]) => [code, Number(status), title]),
      declared,
    );
  }
});

function keysOf(schema: TSchema, prefix = ""): string[] {
  return Object.entries((schema["properties"] ?? {}) as Record<string, TSchema>).flatMap(([name, inner]) =>
    inner["properties"] === undefined ? [`${prefix}${name}`] : keysOf(inner, `${prefix}${name}.`),
  );
}

test("docs/configuration.md lists every key and variable, and no other", () => {
  const rows = [...page("configuration.md").matchAll(/^\| `([a-z_.]+)` \| /gm)].map(([, key]) => key);
  assert.deepEqual([...rows].sort(), keysOf(ConfigSchema).sort());
  const variables = [...page("configuration.md").matchAll(/^\| `([A-Z_]+)` \| `([a-z_.]+)` \|$/gm)].map(
    ([, name, key]) => [name, key],
  );
  assert.deepEqual(
    variables,
    ENVIRONMENT_VARIABLES.map(({ name, path }) => [name, path.join(".")]),
  );
});

test("pages that run the package say where it comes from, because its names in the registries are not ours", () => {
  const pages = [
    "README.md",
    "clients/python/README.md",
    ...readdirSync(join(ROOT, "docs"))
      .filter((name) => name.endsWith(".md"))
      .map((name) => `docs/${name}`),
  ].filter((path) => existsSync(join(ROOT, path)));
  const runsPackage = /\b(?:npx|bunx) assent\b|npm:assent\b|pip install (?!-r)\S*(?:assent|clients\/python)/;
  const silent = pages.filter((path) => {
    const text = readFileSync(join(ROOT, path), "utf8");
    return runsPackage.test(text) && !/install-the-package|### Install the package/.test(text);
  });
  assert.deepEqual(silent, []);
  const byName = /\bnpm (?:install|i)\b[^`\n]* assent(?:@\S*)?(?=[\s`]|$)/;
  assert.match("npm install --global assent@0.1.0", byName);
  for (const path of pages) assert.doesNotMatch(readFileSync(join(ROOT, path), "utf8"), byName, path);
});

test("every key has a description, and the documented defaults are the schema's", () => {
  const { config } = loadConfig({ cwd: "/nonexistent", env: {} });
  for (const [, key, value] of page("configuration.md").matchAll(/^\| `([a-z_.]+)` \| `([^`]+)` \|/gm)) {
    const actual = (key as string)
      .split(".")
      .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], config);
    const shown =
      typeof actual === "string" && actual.startsWith("/nonexistent")
        ? `.${actual.slice("/nonexistent".length)}`
        : String(actual);
    assert.equal(shown, value, key);
  }
  const undescribed = (schema: TSchema, path: string): string[] => [
    ...(typeof schema.description === "string" ? [] : [path]),
    ...Object.entries((schema["properties"] ?? {}) as Record<string, TSchema>).flatMap(([name, inner]) =>
      undescribed(inner, `${path}.${name}`),
    ),
  ];
  assert.deepEqual(undescribed(ConfigSchema, "config"), []);
});

test("the README of a plugin lists its options and the fields of its entries", async () => {
  for (const [folder, load] of Object.entries(listBuiltIn())) {
    const { records = {}, options } = (await load()).default as Plugin;
    const readme = readFileSync(join(ROOT, "plugins", folder, "README.md"), "utf8");
    const listed = new Set([...readme.matchAll(/^\| `([a-z_]+)` +\|/gm)].map(([, name]) => name));
    for (const schema of Object.values(records))
      for (const field of Object.keys(schema.properties)) assert.ok(listed.has(field), `${folder}: ${field}`);
    if (Object.keys(records).length === 0) continue;
    for (const name of Object.keys(options?.properties ?? {}))
      assert.ok(listed.has(name), `${folder}: the option ${name}`);
  }
});

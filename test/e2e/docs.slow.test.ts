/**
 * Runs the examples of the pages as printed: the plugin in docs/plugins.md, and the files in docs/configuration.md and
 * docs/notifications.md.
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../../src/config/index.ts";
import { POLICIES } from "../support/service.ts";
import { ROOT, startProcess, stopProcess } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const block = (page: string, language: string): string => {
  const found = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(
    readFileSync(join(ROOT, "docs", page), "utf8"),
  )?.[1];
  assert.ok(found !== undefined, `${page} has no ${language} block`);
  return found;
};

test("the example plugin of docs/plugins.md loads by its path, with options, alongside the built-in plugins", async () => {
  const folder = temporaryFolder("assent-docs-");
  mkdirSync(join(folder, "plugins"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(ROOT, join(folder, "node_modules", "assent"));
  symlinkSync(join(ROOT, "node_modules", "@sinclair"), join(folder, "node_modules", "@sinclair"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  writeFileSync(join(folder, "plugins", "hello.ts"), block("plugins.md", "ts"));
  writeFileSync(join(folder, "assent.yaml"), block("plugins.md", "yaml"));
  const service = await startProcess({ ASSENT_POLICIES: POLICIES, ASSENT_DATA: join(folder, "data") }, [
    "--config",
    join(folder, "assent.yaml"),
  ]);
  try {
    const answer = await fetch(`${service.url}/v1/hello`);
    assert.equal(((await answer.json()) as { greeting: string }).greeting, "good morning");
    assert.equal((await fetch(`${service.url}/v1/actions`)).status, 401, "the built-in plugins are loaded too");
  } finally {
    await stopProcess(service);
    rmSync(folder, { recursive: true, force: true });
  }
});

test("the first example of docs/configuration.md and of docs/notifications.md is a valid configuration without any environment variable", () => {
  const folder = temporaryFolder("assent-docs-");
  try {
    writeFileSync(join(folder, "assent.yaml"), block("configuration.md", "yaml"));
    const { config } = loadConfig({ cwd: folder, env: {} });
    assert.deepEqual([config.server.port, config.policies], [8000, join(folder, "policies")]);
    writeFileSync(join(folder, "assent.yaml"), block("notifications.md", "yaml"));
    assert.deepEqual(Object.keys(loadConfig({ cwd: folder, env: {} }).config.channels), ["finance"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

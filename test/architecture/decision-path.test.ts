/** Compares the files that run during a decision with the path in plugins/actions/README.md. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import type { Profiler } from "node:inspector";
import { Session } from "node:inspector/promises";
import { findSourceMap } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { READER_METHODS, StorageError } from "../../src/contract/storage.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { ROOT } from "../support/process.ts";
import { ALLOWED, DENIED, startService } from "../support/service.ts";

const page = readFileSync(join(ROOT, "plugins/actions/README.md"), "utf8");
const path = page.slice(page.indexOf("## Path of a decision"), page.indexOf("## Routes"));
const files = [...new Set([...path.matchAll(/`((?:src|plugins)\/[^`]+\.ts)`/g)].map((match) => match[1] as string))];

/** Returns the sources of the functions of a script that ran; a bundle has many. */
function sourcesThatRan({ url, functions }: Profiler.ScriptCoverage): string[] {
  if (!url.startsWith("file:")) return [];
  const starts = functions
    .filter(({ functionName, ranges }) => functionName !== "" && ranges[0]?.count)
    .map(({ ranges }) => ranges[0]?.startOffset ?? 0);
  const map = findSourceMap(fileURLToPath(url));
  if (map === undefined || starts.length === 0) return starts.length === 0 ? [] : [url];
  const text = readFileSync(fileURLToPath(url), "utf8");
  let [line, begin] = [0, 0];
  return starts
    .sort((a, b) => a - b)
    .map((start) => {
      for (let end; (end = text.indexOf("\n", begin)) >= 0 && end < start; begin = end + 1) line++;
      const entry = map.findEntry(line, start - begin);
      return "originalSource" in entry ? entry.originalSource : url;
    });
}

test("the files that the page names exist, and are at most 19", () => {
  assert.ok(files.length > 10 && files.length <= 19, `${files.length} files`);
  for (const file of files) assert.ok(existsSync(join(ROOT, file)), file);
});

test("the files that the page names run for a request that policies decide", async () => {
  const service = await startService();
  const session = new Session();
  try {
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
    assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).status, 200);
    // Rejections are looked up only if the policies require approval.
    const unknown = { ...ALLOWED, tool: "stripe", operation: "refund", params: { amount: 5000, currency: "USD" } };
    assert.ok((await service.call("POST", "/v1/actions", { body: unknown })).status < 300);
    const { result } = await session.post("Profiler.takePreciseCoverage");
    const ran = result.flatMap(sourcesThatRan);
    for (const file of files)
      assert.ok(
        ran.some((url) => url.endsWith(`/${file}`)),
        `${file} did not run`,
      );
  } finally {
    session.disconnect();
    await service.close();
  }
});

test("an allow runs no code for limits and grants that no rule uses", async () => {
  const service = await startService();
  const session = new Session();
  try {
    assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).status, 200);
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
    assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).status, 200);
    const { result } = await session.post("Profiler.takePreciseCoverage");
    const ran = [...new Set(result.flatMap(sourcesThatRan))].filter((url) => /\/(?:src|plugins)\//.test(url));
    const unused = /plugins\/actions\/limit-usage|decide\/grant\.ts|plugins\/(?:grants|throttle)\//;
    assert.deepEqual(
      ran.filter((url) => unused.test(url)),
      [],
    );
  } finally {
    session.disconnect();
    await service.close();
  }
});

test("an action that is allowed or denied needs no read outside its batch, which would delay the next request", async () => {
  let failReads = false;
  // Like a database that other processes write to.
  const storage = { ...memoryStorage(), exclusive: false };
  const methods = storage as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>;
  for (const name of READER_METHODS) {
    const read = methods[name] as (...given: unknown[]) => Promise<unknown>;
    methods[name] = async (...given) => {
      if (failReads) throw new StorageError("unavailable", `${name} was read`);
      return read(...given);
    };
  }
  const service = await startService({ storage: () => storage });
  try {
    assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).status, 200);
    failReads = true;
    for (const body of [ALLOWED, DENIED]) {
      const answer = await service.call("POST", "/v1/actions", { body });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    }
  } finally {
    failReads = false;
    await service.close();
  }
});

/**
 * The operations that the console calls exist. The compiler cannot tell, because it accepts operations of deleted
 * features.
 * @needs agents, analytics, console, coverage, deliveries, events, provenance, replay, stop, users
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startPeople } from "../../support/people.ts";
import { ROOT } from "../../support/runtimes.ts";

test("every operation that a page names is in the OpenAPI document", async () => {
  const service = await startPeople();
  try {
    const { paths } = (await service.call("GET", "/openapi.json")).body;
    const named = readdirSync(join(ROOT, "plugins"), { recursive: true, encoding: "utf8" })
      .filter((path) => /^[^/]+\/(?:app|page)\/.*\.tsx?$/.test(path))
      .flatMap((path) => [
        ...readFileSync(join(ROOT, "plugins", path), "utf8").matchAll(
          /"(GET|POST|PUT|PATCH|DELETE) (\/v1\/(?:[\w/.-]|\{\w+\})*)"/g,
        ),
      ]);
    assert.ok(named.length > 80, String(named.length));
    for (const [text, method = "", path = ""] of named)
      assert.ok(paths[path]?.[method.toLowerCase()] !== undefined, `the API has no operation ${text}`);
  } finally {
    await service.close();
  }
});

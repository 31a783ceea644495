import assert from "node:assert/strict";
import { test } from "node:test";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { startService } from "../support/service.ts";

test("a public linter finds no fault in the OpenAPI document", async (t) => {
  const service = await startService();
  t.after(() => service.close());
  const { body: document } = await service.call("GET", "/openapi.json", { key: null });
  process.env["REDOCLY_TELEMETRY"] = "off";
  // test/http/openapi.test.ts validates the examples in a fraction of the time.
  const rules = { "no-invalid-media-type-examples": "off" } as const;
  const config = await createConfig({ extends: ["recommended"], rules });
  const problems = await lintFromString({ source: JSON.stringify(document), config, absoluteRef: "/openapi.json" });
  assert.deepEqual(
    problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ""}`),
    [],
  );
});

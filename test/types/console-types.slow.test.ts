/** The console's types of requests and responses are those of the OpenAPI document. ASSENT_UPDATE=1 rewrites them. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startPeople } from "../support/people.ts";
import { ROOT } from "../support/process.ts";
import { printOperations } from "../support/type-printer.ts";

const FILE = join(ROOT, "plugins/console/app/core/api-types.ts");
const HEAD = `/**
 * Requests and responses of the API, generated from the OpenAPI document. Do not edit:
 *
 *   ASSENT_UPDATE=1 node test/run.mjs test/types/console-types.slow.test.ts
 */
`;

test("the console's types match the OpenAPI document", async () => {
  const service = await startPeople();
  try {
    const { body: document } = await service.call("GET", "/openapi.json");
    const text = `${HEAD}\n${printOperations("Api", document)}`;
    if (process.env["ASSENT_UPDATE"] === "1") writeFileSync(FILE, text);
    assert.equal(readFileSync(FILE, "utf8"), text, "run this test with ASSENT_UPDATE=1 and commit the file");
  } finally {
    await service.close();
  }
});

/**
 * The client's types of requests and responses are generated from the served document. ASSENT_UPDATE=1 rewrites them.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT } from "../support/process.ts";
import { startService } from "../support/service.ts";
import { printTypes, queryOf } from "../support/type-printer.ts";

const FILE = join(ROOT, "src/client/api.ts");
const HEAD = `/**
 * Requests and responses of the API, generated from the OpenAPI document. Do not edit:
 *
 *   ASSENT_UPDATE=1 node test/run.mjs test/types/client-types.slow.test.ts
 */
`;

test("the client's types match the document", async () => {
  const service = await startService();
  try {
    const { body: document } = await service.call("GET", "/openapi.json");
    const { paths, components } = document;
    const bodyOf = (path: string) => paths[path].post.requestBody.content["application/json"].schema;
    const list = paths["/v1/actions"].get;
    const text = `${HEAD}\n${printTypes([
      { name: "Action", schema: components.schemas.Action },
      { name: "Plan", schema: components.schemas.Plan },
      { name: "ListedPlan", schema: components.schemas.PlanSummary },
      { name: "ActionList", schema: list.responses["200"].content["application/json"].schema },
      { name: "Submission", schema: bodyOf("/v1/actions"), sent: true },
      { name: "Result", schema: bodyOf("/v1/actions/{id}/result"), sent: true },
      { name: "ListQuery", schema: queryOf(list), sent: true, without: ["agent", "offset"] },
      { name: "Event", schema: components.schemas.Event },
      { name: "EventsQuery", schema: queryOf(paths["/v1/events"].get), sent: true, without: ["agent"] },
    ])}`;
    if (process.env["ASSENT_UPDATE"] === "1") writeFileSync(FILE, text);
    assert.equal(readFileSync(FILE, "utf8"), text, "run this test with ASSENT_UPDATE=1 and commit the file");
  } finally {
    await service.close();
  }
});

/** Unknown options, which plain JavaScript does not detect. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { governTools } from "../../src/adapters/ai-sdk.ts";
import { wrapToolCall } from "../../src/adapters/langchain.ts";
import { createAssent, govern } from "../../src/client/index.ts";

const run = (): string => "ran";
const assent = createAssent({ url: "http://127.0.0.1:9", apiKey: "none" });
/** As JavaScript calls it. */
const loose = (work: (...given: never[]) => unknown, ...given: unknown[]) => work(...(given as never[]));

describe("an unknown option is rejected before any request", () => {
  for (const [what, make, says] of [
    ["a client under another name", () => loose(govern, run, { tool: "t", operation: "o", client: assent }), "client"],
    ["an agent", () => loose(govern, run, { tool: "t", operation: "o", agent_id: "bot" }), "agent_id"],
    ["an address", () => loose(createAssent, { URL: "http://127.0.0.1:9" }), "URL"],
    ["a key", () => loose(createAssent, { api_key: "assent_x" }), "api_key"],
    ["of an adapter", () => loose(governTools, { t: { execute: run } }, { tool: "t", client: assent }), "client"],
    ["of another adapter", () => loose(governTools, {}, { tool: "t", assent, interrupt: run }), "interrupt"],
  ] as const)
    test(what, () => {
      assert.throws(make, (error) => error instanceof TypeError && error.message.includes(`no option "${says}"`));
    });

  test("an adapter's own options are known", () => {
    assert.equal(typeof wrapToolCall({ tool: "t", assent, message: run, interrupt: run }), "function");
  });
});

test("the tool's name for policies is required when it is governed, not when it is called", () => {
  for (const make of [
    () => loose(govern, run, {}),
    () => loose(govern, run, { tool: "t" }),
    () => loose(govern, run, { operation: "o" }),
    () => loose(governTools, {}, { assent }),
  ])
    assert.throws(make, (error) => error instanceof TypeError && / needs the options? `tool`/.test(error.message));
});

test("a call without a key names ASSENT_API_KEY if the service requires one", async () => {
  const problem = { code: "UNAUTHENTICATED", detail: "this route needs an API key" };
  const respond = () => Promise.resolve(Response.json(problem, { status: 401 }));
  const call = (apiKey: string | null) => createAssent({ url: "http://assent.test", apiKey, fetch: respond }).agent();
  await assert.rejects(call(null), { status: 401, message: /no API key was sent; set ASSENT_API_KEY/ });
  await assert.rejects(call("assent_x"), { status: 401, message: "this route needs an API key" });
});

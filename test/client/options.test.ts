/** Unknown options, which plain JavaScript does not detect. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { governTools } from "../../clients/typescript/adapters/ai-sdk.ts";
import { wrapToolCall } from "../../clients/typescript/adapters/langchain.ts";
import { createAssent, govern } from "../../clients/typescript/index.ts";

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

test("wrong arguments of govern are named, with what it takes", async () => {
  const options = { tool: "t", operation: "o", assent };
  for (const [make, says] of [
    [
      () => loose(govern, options, run),
      /^govern takes the function first and its options second; got an object first$/,
    ],
    [() => loose(govern), /function first and its options second; got undefined first/],
    [() => loose(govern, run), /^govern takes its options as an object; got undefined$/],
    [() => loose(govern, run, "t"), /^govern takes its options as an object; got the string "t"$/],
    [() => loose(govern, run, ["t", "o"]), /options as an object; got an array/],
    [() => loose(createAssent, "http://127.0.0.1:9"), /options as an object; got the string/],
  ] as const)
    assert.throws(make, (error) => error instanceof TypeError && says.test(error.message));
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  const governed = govern(run as () => string, options) as (...given: unknown[]) => Promise<unknown>;
  for (const [given, says] of [
    [[5, "USD"], /^the function for t o takes one object with named parameters, .* got the number 5\. Nothing/],
    [[], /one object with named parameters, .* got undefined/],
    [["ch_1"], /got the string "ch_1"/],
    [[[1, 2]], /got an array/],
    [[{ amount: 5n }], /^the arguments\.amount holds the bigint 5, which JSON cannot represent exactly/],
    [
      [{ at: new Date(0) }],
      /^the arguments\.at holds an instance of a class; give its members as a plain object\. Nothing/,
    ],
    [[circular], /^the arguments(\.self){1,20}\.?s?e?l?f?… is nested too deeply, or contains itself/],
    [[{ n: NaN }], /^the arguments\.n holds NaN, which JSON/],
    [[{}, { timeout: 5 }], /^a governed call has no option "timeout"; it has approvalTimeout, meta, signal$/],
  ] as const)
    await assert.rejects(governed(...given), (error) => error instanceof TypeError && says.test(error.message));
});

test("the tool's name for policies is required when it is governed, not when it is called", () => {
  for (const make of [
    () => loose(govern, run, {}),
    () => loose(govern, run, { tool: "t" }),
    () => loose(govern, run, { operation: "o" }),
    () => loose(govern, run, { tool: "", operation: "o" }),
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

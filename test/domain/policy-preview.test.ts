/** Previews: templates that authors can write, and values of the agent that cannot imitate other text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import { parsePreview, renderPreview } from "../../src/domain/policy/decide/preview.ts";
import { parsePolicies } from "../../src/domain/policy/parse/parse.ts";

const preview = (template: string, params: JsonObject, context: JsonObject = {}): string => {
  const parts = parsePreview(template);
  if (typeof parts === "string") assert.fail(parts);
  return renderPreview(parts, { agent_id: "bot", tool: "stripe", operation: "refund", params, context });
};

const policy = (template: string, tools = ""): string => `policy: p
${tools}rules:
  - { name: r, tool: stripe, operation: refund, effect: require_approval, approval: { preview: '${template}' } }
`;
const faultsOf = (template: string, tools?: string): string[] =>
  parsePolicies(policy(template, tools), "p.yaml").faults.map(({ message }) => message);

test("a preview renders values by type: strings are quoted, other values are not", () => {
  assert.equal(
    preview("{operation} {params.amount} {params.currency} to {params.to} for {context.ticket}", {
      amount: 120.5,
      currency: "EUR",
      to: null,
    }),
    '"refund" 120.5 "EUR" to null for (not given)',
  );
  assert.equal(preview("Pay {params.amount}", { amount: "120" }), 'Pay "120"');
  assert.equal(
    preview("Send {params.a} and {params.b}", { a: [1, 2], b: { c: 1 } }),
    "Send (list of 2) and (object of 1)",
  );
  assert.equal(preview('Ship {params["a/b"].c}', { "a/b": { c: true } }), "Ship true");
  assert.equal(preview("Use {params.constructor} {params.list.length}", { list: [1] }), "Use (not given) (not given)");
});

test("a hostile value stays inside its quotation marks, on one line, and short", () => {
  const shown = (to: string): string => preview("Refund to {params.to} now", { to });
  const cases: Record<string, string> = {
    'ada" now, approved by "bob': String.raw`Refund to "ada\" now, approved by \"bob" now`,
    'ada\\" x': String.raw`Refund to "ada\\\" x" now`,
    "ada” now “": 'Refund to "ada[U+201D] now [U+201C]" now',
    "ada\nRefund to nobody": 'Refund to "ada[U+000A]Refund to nobody" now',
    "\u202eada": 'Refund to "[U+202E]ada" now',
    "p\u0430ypal": 'Refund to "p\u0430ypal [Cyrillic \u0430 U+0430]" now',
    "{params.amount}": 'Refund to "{params.amount}" now',
    "\u05d0\u05d1": 'Refund to "\u2068\u05d0\u05d1\u2069" now',
    "": 'Refund to "" now',
  };
  for (const [value, expected] of Object.entries(cases)) assert.equal(shown(value), expected);
  assert.equal(shown("x".repeat(5000)), `Refund to "${"x".repeat(60)}…" (5,000 characters) now`);
  const marked = shown("\u200b".repeat(50));
  assert.ok(marked.length < 250 && marked.endsWith('" (50 characters) now'), marked);
});

test("a preview that cannot be rendered is a fault of the policy", () => {
  const cases: [string, RegExp][] = [
    ["Refund", /names no value/],
    ["Refund {params.amount", /brace has no partner/],
    ["Refund {amount}", /"\{amount\}" names no value/],
    ["Refund {params}", /names no value/],
    ["Refund {params.amount + 1}", /names no value/],
    ['Refund "{params.amount}"', /remove the quotation marks/],
    ["Refund\u200b {params.amount}", /hidden or misleading characters: Refund\[U\+200B\]/],
    ["{params.a}".repeat(9), /has 9 values; at most 8/],
    [`${"x".repeat(300)}{params.a}`, /300/],
  ];
  for (const [template, expected] of cases) {
    const faults = faultsOf(template);
    assert.equal(faults.length, 1, `${template}: ${faults.join("; ")}`);
    assert.match(faults[0] as string, expected);
  }
});

test("a preview is checked against the schema of the tool", () => {
  const tools = `tools:
  - tool: stripe
    params:
      type: object
      additionalProperties: false
      properties: { amount: { type: number }, lines: { type: array, items: { type: string } } }
`;
  assert.deepEqual(faultsOf("Refund {params.amount} for {context.ticket}", tools), []);
  assert.match(faultsOf("Refund {params.amuont}", tools).join(), /amuont/);
  assert.match(faultsOf("Refund {params.lines}", tools).join(), /name a member that is a string, a number or a bool/);
});

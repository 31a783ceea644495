/** LiteLLM's logs of model calls: each counts once against budgets, which then deny the agent's later actions. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import litellm from "../../../plugins/litellm/index.ts";
import { startService, type Answer, type Service } from "../../support/service.ts";

const POLICY = `policy: budget
rules:
  - { name: models, tool: litellm, operation: model call, effect: allow, when: 'params.model != "ask"' }
  - { name: ask, tool: litellm, operation: model call, effect: require_approval }
  - { name: tools, tool: litellm, operation: search, effect: allow }
limits:
  - { name: a day, tool: litellm, per: agent, sum: usage.cost_usd, reserve: 0.01, at_most: 1, window: 24h }
`;

let service: Service;
before(async () => {
  service = await startService({
    policy: POLICY,
    change: (config) => void (config.agents = "any"),
    plugins: [{ plugin: litellm, options: { enabled: true }, origin: "litellm" }],
  });
});
after(() => service.close());

let n = 0;
const log = (more: object = {}): Record<string, unknown> => ({
  id: `chatcmpl-${++n}`,
  model: "large",
  status: "success",
  response_cost: 0.4,
  total_tokens: 900,
  startTime: 1_750_000_000.5,
  endTime: 1_750_000_002,
  metadata: { user_api_key_hash: "a".repeat(64), user_api_key_alias: "support" },
  messages: "are ignored",
  ...more,
});
const post = (body: unknown, key: string | null = service.agent): Promise<Answer> =>
  service.call("POST", "/litellm/usage", { key, raw: JSON.stringify(body) });
const search = async (): Promise<string> => {
  const call = { id: "c", type: "function", function: { name: "search", arguments: `{"n":${++n}}` } };
  const { body } = await service.call("POST", "/litellm/beta/litellm_basic_guardrail_api", {
    key: service.agent,
    raw: JSON.stringify({ input_type: "response", tool_calls: [call], request_data: log()["metadata"] }),
  });
  return body.action;
};
const newest = async (): Promise<Answer["body"]> =>
  (await service.call("GET", "/v1/actions?limit=1", { key: service.admin })).body.actions[0];

test("a log is recorded once, with its cost, tokens and duration, for the agent of the tool calls", async () => {
  const one = log();
  assert.deepEqual((await post(one)).body, { recorded: 1, refused: 0 });
  const { id, agent_id, status, operation, params } = await newest();
  assert.deepEqual([status, operation, params], ["succeeded", "model call", { model: "large" }]);
  const rows = await service.runtime.host.storage.entriesOfAction(id);
  const entries = rows.map(({ bytes }) => Buffer.from(bytes).toString()).join("\n");
  for (const amount of ['"cost_usd":0.4', '"tokens":900', '"seconds":1.5']) assert.ok(entries.includes(amount), amount);
  assert.deepEqual((await post([one, one])).body, { recorded: 2, refused: 0 });
  assert.equal((await newest()).id, id, "a repeated log adds nothing");
  assert.equal(await search(), "NONE");
  assert.equal((await newest()).agent_id, agent_id);
});

test("a budget that models have used up denies the tool calls of the agent", async () => {
  assert.deepEqual((await post([log()])).body, { recorded: 1, refused: 0 });
  assert.equal(await search(), "NONE");
  assert.deepEqual((await post([log({ response_cost: 0.5 })])).body, { recorded: 1, refused: 0 });
  assert.equal(await search(), "BLOCKED");
});

test("a call that requires approval waits for no one, and logs without usage are ignored", async () => {
  const other = { metadata: { user_api_key_hash: "b".repeat(64), user_api_key_alias: "other" } };
  assert.deepEqual((await post(log({ model: "ask", ...other }))).body, { recorded: 0, refused: 1 });
  assert.equal((await newest()).status, "cancelled");
  const none = { response_cost: null, total_tokens: null, startTime: null, endTime: null };
  assert.deepEqual((await post(log({ ...none, ...other }))).body, { recorded: 0, refused: 0 });
});

test("rejects what it cannot count", async () => {
  for (const body of [
    7,
    [null],
    log({ id: "" }),
    log({ id: "two words" }),
    log({ model: null }),
    log({ response_cost: -1 }),
    log({ total_tokens: "many" }),
    log({ metadata: {} }),
    Array.from({ length: 101 }, () => log()),
  ])
    assert.equal((await post(body)).status, 400, JSON.stringify(body).slice(0, 80));
  assert.equal((await post(log(), null)).status, 401);
});

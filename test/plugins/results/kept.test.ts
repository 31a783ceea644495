/**
 * `history.keep`: later decisions read the kept members of results, an erasure of the action removes them, and they can be
 * neither too large nor ambiguous.
 * @needs retention
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startService, type Answer, type Service } from "../../support/service.ts";
import { createAssent } from "../../../clients/typescript/index.ts";
import { govern } from "../../../clients/typescript/govern.ts";
import { eraseActionParts } from "../../../plugins/retention/erase.ts";
import { auditStore } from "../../../src/testing/index.ts";

const POLICY = `policy: refunds
history:
  per: agent
  tool: crm
  window: 1h
  max: 20
  keep: [result.customer_id, result.order.total]
rules:
  - name: to a customer that was looked up
    tool: stripe
    operation: refund
    when: >-
      params.amount > 0 && history.any(h, has(h.result.customer_id) && h.result.customer_id == params.customer
      && params.amount <= h.result.order.total)
    effect: allow
  - { name: lookups, tool: crm, effect: allow }
results:
  - { name: secret customers, tool: crm, operation: secret, effect: redact, members: [result.customer_id] }
  - { name: no output, tool: crm, operation: withheld, effect: withhold }
`;
const CUSTOMER = { customer_id: "c-1", name: "Ada", order: { total: 50, lines: [1, 2] } };
const KEPT = { customer_id: "c-1", order: { total: 50 } };

let service: Service;
let n = 0;
before(async () => {
  service = await startService({ policy: POLICY });
});
after(() => service.close());

const freshAgent = (): string => `bot-${++n}`;
const call = (path: string, body: object, key = service.agent): Promise<Answer> =>
  service.call("POST", path, { key, body });
async function started(agent_id: string, operation = "lookup", tool = "crm"): Promise<string> {
  const { body } = await call("/v1/actions", { agent_id, tool, operation, params: { n: ++n } });
  assert.equal((await call(`/v1/actions/${body.id}/start`, {})).status, 200);
  return body.id;
}
const inspect = async (id: string, output: unknown): Promise<Answer["body"]> =>
  (await call(`/v1/actions/${id}/inspect`, { output })).body;
const report = (id: string, meta: object): Promise<Answer> => call(`/v1/actions/${id}/result`, { success: true, meta });
const refund = async (agent_id: string, amount = 50, customer = "c-1"): Promise<string> => {
  const params = { amount, customer, n: ++n };
  return (await call("/v1/actions", { agent_id, tool: "stripe", operation: "refund", params })).body.status;
};

test("a later decision reads the kept members, and the history keeps no others", async () => {
  const agent = freshAgent();
  const { body } = await call("/v1/actions", { agent_id: agent, tool: "crm", operation: "lookup" });
  assert.equal(body.inspect, true);
  await call(`/v1/actions/${body.id}/start`, {});
  const size = (await service.storage.head()).size;
  const inspection = await inspect(body.id, CUSTOMER);
  assert.deepEqual([inspection.verdict, inspection.kept], ["allow", KEPT]);
  // No rule inspects the output, so nothing is recorded.
  assert.equal((await service.storage.head()).size, size);
  assert.equal(await refund(agent), "denied");
  await report(body.id, { ...inspection.kept, name: "Ada" });
  assert.deepEqual(
    [await refund(agent), await refund(agent, 51), await refund(agent, 5, "c-2")],
    ["allowed", "denied", "denied"],
  );
  assert.equal(await refund(freshAgent()), "denied");
  const past = (
    await service.storage.actions({ limit: 1, visibility: { all: true }, agent_id: agent, tool: "stripe" })
  )[0]?.past;
  assert.doesNotMatch(past ?? "", /Ada/);
});

test("the service reads members of MCP results and JSON texts, but not of ambiguous texts", async () => {
  for (const output of [
    { content: [{ type: "text", text: "found" }], structuredContent: CUSTOMER },
    { content: [{ type: "text", text: JSON.stringify(CUSTOMER) }] },
    JSON.stringify(CUSTOMER),
  ])
    assert.deepEqual((await inspect(await started(freshAgent()), output)).kept, KEPT);
  const texts = ["c-1", "c-2"].map((customer_id) => ({ type: "text", text: JSON.stringify({ customer_id }) }));
  assert.equal((await inspect(await started(freshAgent()), { content: texts })).kept, undefined, "different values");
  for (const output of ["c-1", [CUSTOMER], '{"customer_id":"c-1","customer_id":"c-2"}', { content: "customer_id" }])
    assert.equal((await inspect(await started(freshAgent()), output)).kept, undefined);
});

test("a history keeps no members that the agent does not get, or that are too large", async () => {
  assert.deepEqual((await inspect(await started(freshAgent(), "secret"), CUSTOMER)).kept, {
    customer_id: "[redacted]",
    order: { total: 50 },
  });
  assert.equal((await inspect(await started(freshAgent(), "withheld"), CUSTOMER)).kept, undefined);
  const large = { ...CUSTOMER, customer_id: "c".repeat(5000) };
  assert.equal((await inspect(await started(freshAgent()), large)).kept, undefined);
});

test("an action allows no refund without a report, or if its report is too long to read", async () => {
  const agent = freshAgent();
  const id = await started(agent);
  await inspect(id, CUSTOMER);
  assert.equal(await refund(agent), "denied");
  await report(id, { ...KEPT, rest: "x".repeat(20_000) });
  assert.equal(await refund(agent), "denied");
});

test("the client reports the kept members", async () => {
  const agent = freshAgent();
  const assent = createAssent({
    url: "http://service.test",
    apiKey: service.agent,
    fetch: (url, init) => service.runtime.fetch(new Request(url as string, init), {}),
  });
  const lookup = govern(() => CUSTOMER, { tool: "crm", operation: "lookup", agent, assent });
  assert.deepEqual(await lookup({}), CUSTOMER);
  assert.equal(await refund(agent), "allowed");
});

test("a search for erasures finds kept members, and an erasure removes them", async () => {
  const agent = freshAgent();
  const id = await started(agent);
  await report(id, { customer_id: "c-erased", order: { total: 50 } });
  assert.equal(await refund(agent, 5, "c-erased"), "allowed");
  const body = { value: "c-erased", pointer: "/result/meta/customer_id", reason: "r", dry_run: true };
  const found = await call("/v1/erasures", body, service.admin);
  assert.equal(found.status, 200, JSON.stringify(found.body));
  const erased = await call(`/v1/actions/${id}/erase`, { reason: "request 4711" }, service.admin);
  assert.equal(erased.status, 200, JSON.stringify(erased.body));
  assert.equal(await refund(agent, 5, "c-erased"), "denied");
});

test("the retention of results removes it, and later decisions of the agent are made without it", async () => {
  const agent = freshAgent();
  const id = await started(agent);
  await report(id, KEPT);
  assert.equal(await refund(agent), "allowed");
  const { host } = service.runtime;
  const { erased } = await host.ledger.transact((tx) => eraseActionParts(host, tx, [id], "result", "30 days"));
  assert.equal(erased, 1);
  assert.equal(await refund(agent), "denied");
});

test("the audit accepts the store", async () => {
  assert.deepEqual((await auditStore(service.storage)).faults, []);
});

/**
 * Calls that a model makes together are submitted as one plan, including after the run is resumed.
 * @needs plans
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { wrapToolCall } from "../../clients/typescript/adapters/langchain.ts";
import { createAssent } from "../../clients/typescript/index.ts";
import { startService } from "../support/service.ts";

const POLICY = `policy: ask
rules:
  - { name: read, tool: db, operation: read, effect: allow }
  - { name: ask, tool: db, effect: require_approval }
`;

test("the LangChain adapter submits the calls of one turn as a plan, and each runs once as its action", async (t) => {
  const service = await startService({ policy: POLICY });
  t.after(() => service.close());
  const assent = createAssent({
    url: "http://test",
    apiKey: service.agent,
    fetch: (url, init) => service.runtime.fetch(new Request(url as string, init)),
  });
  const ran: string[] = [];
  const calls = ["read", "write", "drop"].map((name, i) => ({ id: `call-${i}`, name, args: { table: "orders" } }));
  const state = { messages: [{ tool_calls: [{ id: "earlier", name: "read", args: {} }] }, { tool_calls: calls }] };
  /** Runs one turn, or resumes it in another process. */
  const turn = (over: object = {}): Promise<string[]> => {
    const governed = wrapToolCall({
      tool: "db",
      agent: "bot",
      assent,
      approvalTimeout: 0,
      message: ({ content }) => content,
      ...over,
    });
    return Promise.all(
      calls.map((toolCall) =>
        governed({ toolCall, state, runtime: { configurable: { thread_id: "t" } } }, ({ toolCall: { name } }: any) => {
          ran.push(name);
          return "ran";
        }),
      ),
    );
  };
  const plans = async (): Promise<any[]> => (await service.call("GET", "/v1/plans", { key: service.admin })).body.plans;
  assert.deepEqual((await turn())[0], "ran");
  assert.deepEqual(ran, ["read"]);
  const [plan, ...others] = await plans();
  assert.deepEqual([plan.actions.map(({ operation }: any) => operation), others], [["read", "write", "drop"], []]);
  const { approval_token: token } = (await service.call("GET", `/v1/plans/${plan.id}`, { key: service.admin })).body;
  const body = { token, approve: true, strikes: [{ position: 3, reason: "not this table" }] };
  const voted = await service.call("POST", `/v1/plans/${plan.id}/approval`, { key: service.admin, body });
  assert.equal(voted.status, 200, JSON.stringify(voted.body));
  const [, , struck] = await turn();
  assert.match(struck ?? "", /not this table/);
  assert.deepEqual(ran.slice(1).sort(), ["read", "write"]);
  assert.equal((await plans()).length, 1, "a resumed turn is the same plan");
  calls.forEach((call, i) => Object.assign(call, { id: `other-${i}` }));
  await turn({ plans: false });
  assert.equal((await plans()).length, 1);
});

/**
 * Decisions read past actions that several processes changed or erased. No honest change may look like one outside the
 * service.
 * @needs users, sub-agents
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStorage } from "../../../src/testing/index.ts";
import { SECRET } from "../../support/deployment.ts";
import { newKey } from "../../support/keys.ts";
import { startPeople } from "../../support/people.ts";
import { makeKey, startService, type Answer, type Service, type ServiceOptions } from "../../support/service.ts";

const POLICY = ["agent", "key", "params.item"]
  .map(
    (per, i) => `policy: history-${i}
history: { per: ${per}, tool: work, window: 1h, max: 100 }
rules:
  - { name: look, tool: look, when: history.size() < 100, effect: allow }
  - { name: work, tool: work, effect: allow }
`,
  )
  .join("---\n");

/** Submits, changes and erases an action in these processes, and lets both read it after each step. */
async function changeIn(processes: readonly Service[], order: readonly number[]): Promise<void> {
  const key = processes[0]?.admin ?? "";
  const call = async (process: number, path: string, body: object): Promise<Answer["body"]> => {
    const answer = await (processes[process] as Service).call("POST", path, { key, body });
    assert.equal(
      answer.status,
      200,
      `${path} in process ${process} of ${order.join()}: ${JSON.stringify(answer.body)}`,
    );
    return answer.body;
  };
  const submit = (process: number, tool: string): Promise<Answer["body"]> =>
    call(process, "/v1/actions", { agent_id: "bot", tool, operation: "o", params: { item: "a" } });
  const [submitting = 0, starting = 0, reporting = 0, erasing = 0] = order;
  const { id } = await submit(submitting, "work");
  for (const [process, step, body] of [
    [starting, "start", {}],
    [reporting, "result", { success: true }],
    [erasing, "erase", { reason: "asked" }],
  ] as const) {
    await call(process, `/v1/actions/${id}/${step}`, body);
    if (step === "start") continue;
    // A process that has not read the history before is more likely to remember an earlier state.
    if (step === "erase" || order[0] === 0)
      for (const reading of [0, 1]) assert.equal((await submit(reading, "look")).status, "allowed");
  }
}

test("each process changes an action that the other one has changed", async () => {
  const memory = memoryStorage();
  await memory.open();
  const none = (): Promise<void> => Promise.resolve();
  const shared = { ...memory, exclusive: false, open: none, close: none, lease: () => Promise.resolve(true) };
  const logKey = newKey();
  const options: ServiceOptions = {
    policy: POLICY,
    storage: () => shared,
    change(config) {
      config.secret = SECRET;
      config.ledger.key = logKey;
      config.ledger.origin = "past-actions.test/log";
    },
  };
  const processes = [await startService(options), await startService(options)];
  try {
    for (let order = 0; order < 16; order++)
      await changeIn(
        processes,
        [8, 4, 2, 1].map((bit) => ((order & bit) === 0 ? 0 : 1)),
      );
  } finally {
    for (const process of processes.reverse()) await process.close();
  }
});

test("an erased action under an authority stays in the histories of its delegators after a restart", async () => {
  const service = await startPeople({
    policy: POLICY,
    change(config) {
      config.agents = "bound";
      config.approvals.trust_key_makers = true;
    },
  });
  try {
    const agent = async (name: string, owner: string): Promise<{ name: string; key: string }> => {
      const { key } = await makeKey(service, { name, preset: "agent", agent_id: name, owner });
      return { name, key };
    };
    const [boss, worker, helper] = [
      await agent("boss", "ada"),
      await agent("worker", "bob"),
      await agent("helper", "bob"),
    ];
    const post = (path: string, key: string, body: object): Promise<Answer> =>
      service.call("POST", path, { key, body });
    const give = async (from: { key: string }, to: { name: string }, more: object): Promise<string> =>
      (await post("/v1/authorities", from.key, { agent_id: to.name, tools: ["*"], ...more })).body.id;
    const parent = await give(boss, worker, { for: "2h" });
    const authority = await give(worker, helper, { parent });
    const submit = (who: { name: string; key: string }, tool: string, more: object = {}): Promise<Answer> =>
      post("/v1/actions", who.key, { agent_id: who.name, tool, operation: "o", params: { item: "a" }, ...more });
    const { id } = (await submit(helper, "work", { authority })).body;
    await post(`/v1/actions/${id}/start`, helper.key, {});
    await post(`/v1/actions/${id}/result`, helper.key, { success: true });
    assert.equal((await post(`/v1/actions/${id}/erase`, service.admin, { reason: "asked" })).status, 200);
    await service.restart();
    for (const who of [helper, worker, boss]) {
      const { body } = await submit(who, "look");
      assert.equal(body.status, "allowed", `${who.name}: ${JSON.stringify(body)}`);
      const { past } = (await service.storage.action(body.id)) ?? assert.fail();
      assert.ok(past?.includes(id), who.name);
    }
  } finally {
    await service.close();
  }
});

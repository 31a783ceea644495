/** The pending actions that a process keeps in memory, compared with the store after each kind of change. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createPendingIndex, type PendingIndex } from "../../../plugins/actions/pending-index.ts";
import { addPerson, approve, startService, type Service } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/wait.ts";

const policy = (preview: string): string => `policy: asked
rules:
  - { name: one, operation: pay, effect: require_approval, approval: { expires_in: 1h, preview: "${preview}" } }
  - { name: two, operation: two, effect: require_approval, approval: { expires_in: 2h, quorum: 2 } }
  - { name: free, operation: read, effect: allow }
`;

async function start(): Promise<{ service: Service; write(preview: string): void; close(): Promise<void> }> {
  const folder = temporaryFolder("assent-pending-index-");
  const write = (preview: string): void => writeFileSync(join(folder, "asked.yaml"), policy(preview));
  write("Pay {params.amount}");
  const service = await startService({
    policies: folder,
    change: (config) => (config.approvals.trust_key_makers = true),
  });
  const close = async (): Promise<void> => {
    await service.close();
    rmSync(folder, { recursive: true });
  };
  return { service, write, close };
}

const submit = async (
  { call, agent }: Service,
  operation: string,
  amount: number,
  key = agent,
  agent_id = "bot",
): Promise<string> =>
  (await call("POST", "/v1/actions", { key, body: { agent_id, tool: "bank", operation, params: { amount } } })).body
    .id as string;

async function listed({ call }: Service, key: string, query = ""): Promise<string[]> {
  const { body } = await call("GET", `/v1/approvals?sort=oldest&${query}`, { key });
  const { body: groups } = await call("GET", `/v1/approvals/groups?${query}`, { key });
  assert.equal(body.total, body.actions.length);
  assert.equal(groups.total, body.total);
  return body.actions.map(({ id }: { id: string }) => id);
}

/** Ids of the pending actions according to the list of all actions, which reads the store. */
async function stored({ call, admin }: Service): Promise<string[]> {
  const { body } = await call("GET", "/v1/actions?status=pending_approval&limit=100", { key: admin });
  return body.actions.map(({ id }: { id: string }) => id).reverse();
}

describe("the pending actions in memory", () => {
  it("follow submissions, votes, cancellations and expiry at once", async () => {
    const { service, close } = await start();
    try {
      const { call, admin } = service;
      const owner = await addPerson(service, "Ada");
      const other = (
        await call("POST", "/v1/api-keys", { key: admin, body: { name: "ada", preset: "approver", owner } })
      ).body.key as string;
      const [first, second, two] = [
        await submit(service, "pay", 1),
        await submit(service, "pay", 2),
        await submit(service, "two", 3),
      ];
      assert.deepEqual(await listed(service, admin, "view=mine"), [first, second, two]);
      await approve(service, first);
      assert.deepEqual(await listed(service, admin), [second, two]);
      await approve(service, two);
      assert.deepEqual(await listed(service, admin, "view=mine"), [second]);
      assert.deepEqual(await listed(service, admin, "view=second_vote"), [two]);
      assert.deepEqual(await listed(service, other, "view=mine"), [second, two]);
      await approve(service, two, other);
      assert.deepEqual(await listed(service, other, "view=mine"), [second]);
      await call("POST", `/v1/actions/${second}/cancel`, { body: {} });
      assert.deepEqual(await listed(service, admin), []);
      const third = await submit(service, "pay", 4);
      for (let n = 0; n < 5; n++) await submit(service, "read", n);
      assert.deepEqual(await listed(service, admin), [third]);
      service.clock.now += 3_600_000;
      assert.deepEqual(await listed(service, admin), []);
      assert.deepEqual(await stored(service), []);
    } finally {
      await close();
    }
  });

  it("have the previews of new policies", async () => {
    const { service, write, close } = await start();
    try {
      const preview = async (): Promise<string> =>
        (await service.call("GET", "/v1/approvals/groups", { key: service.admin })).body.groups[0].preview;
      await submit(service, "pay", 1);
      assert.equal(await preview(), "Pay 1");
      write("Send {params.amount}");
      await until("the policies are loaded", async () => (await preview()) === "Send 1");
      await submit(service, "pay", 3);
      assert.equal(await preview(), "Send 1 or 3");
    } finally {
      await close();
    }
  });

  it("are read from the store for each request while there are more than the maximum", async () => {
    const { service, close } = await start();
    try {
      const { host } = service.runtime;
      const { body: own } = await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "own", preset: "agent", agent_id: "own-bot" },
      });
      const read: PendingIndex = createPendingIndex(host, 3);
      const ids = async (key: string): Promise<[string[], boolean, boolean]> => {
        const credential = await host.keys.authenticate(key);
        assert.ok(credential !== null);
        const { actions, isComplete, isBounded } = await read(credential);
        return [actions.map(({ id }) => id), isComplete, isBounded];
      };
      const all = [await submit(service, "pay", 1), await submit(service, "pay", 2), await submit(service, "pay", 3)];
      assert.deepEqual(await ids(service.admin), [all, true, true]);
      const late = await submit(service, "two", 4, own.key, "own-bot");
      assert.deepEqual(await ids(service.admin), [all, false, false]);
      // The only one of this agent is not among the first three.
      assert.deepEqual(await ids(own.key), [[late], true, false]);
      await service.call("POST", `/v1/actions/${all[0]}/cancel`, { body: {} });
      assert.deepEqual(await ids(service.admin), [[...all.slice(1), late], true, true]);
      assert.deepEqual(await ids(own.key), [[late], true, true]);
    } finally {
      await close();
    }
  });
});

/** Lists of pending actions on two processes and one Postgres: each list shows every change of the other process. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { postgresStorage } from "../../../plugins/storage-postgres/index.ts";
import { newKey } from "../../support/keys.ts";
import { startPostgres, withoutPostgres } from "../../support/postgres.ts";
import { createRandom } from "../../support/random.ts";
import { addPerson, approve, plainVotes, startService, type Service } from "../../support/service.ts";

const POLICY = `policy: asked
rules:
  - { name: pay, operation: pay, effect: require_approval, approval: { preview: "Pay {params.amount}" } }
  - { name: two, operation: two, effect: require_approval, approval: { quorum: 2 } }
  - { name: free, effect: allow }
`;
const STEPS = 60;

test("follow each submission, vote and cancellation of the other process", { skip: withoutPostgres }, async () => {
  const server = await startPostgres();
  const url = await server.database();
  const log = newKey();
  const services: Service[] = [];
  try {
    for (let i = 0; i < 2; i++)
      services.push(
        await startService({
          policy: POLICY,
          storage: () => postgresStorage({ url, poolSize: 3 }),
          change(config) {
            plainVotes(config);
            config.secret = "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU";
            config.ledger.key = log;
            config.ledger.origin = "pending.test/log";
          },
        }),
      );
    const first = services.find(({ admin }) => admin !== "") as Service;
    const { admin, agent } = first;
    const { body } = await first.call("POST", "/v1/api-keys", {
      key: admin,
      body: { name: "ada", preset: "approver", owner: await addPerson(first, "Ada") },
    });
    const voters = [admin, body.key as string];
    const { random, pick } = createRandom(48);
    /** The pending actions, with the keys that approved them. */
    const pending = new Map<string, { isTwo: boolean; votes: Set<string> }>();
    const submit = async (service: Service, operation: string, n: number): Promise<string> => {
      const sent = { agent_id: "bot", tool: "bank", operation, params: { amount: n } };
      return (await service.call("POST", "/v1/actions", { key: agent, body: sent })).body.id;
    };
    for (let n = 0; n < STEPS; n++) {
      const service = pick(services);
      const id = pick([...pending.keys()]);
      const action = pending.get(id);
      const step = random(6);
      if (step < 2 || action === undefined) {
        const isTwo = random(2) === 0;
        pending.set(await submit(service, isTwo ? "two" : "pay", n), { isTwo, votes: new Set() });
      } else if (step === 2) await submit(service, "read", n);
      else if (step === 3) {
        await service.call("POST", `/v1/actions/${id}/cancel`, { key: agent, body: {} });
        pending.delete(id);
      } else {
        const key = pick(voters.filter((each) => !action.votes.has(each)));
        await approve(service, id, key);
        action.votes.add(key);
        if (!action.isTwo || action.votes.size === 2) pending.delete(id);
      }
      for (const [i, reader] of services.entries()) {
        const where = `step ${n}, process ${i}`;
        for (const key of voters) {
          const mine = [...pending].filter(([, { votes }]) => !votes.has(key)).map(([each]) => each);
          const page = await reader.call("GET", "/v1/approvals?view=mine&sort=oldest&limit=100", { key });
          assert.deepEqual(
            page.body.actions.map((each: { id: string }) => each.id),
            mine,
            where,
          );
        }
        const { groups, total } = (await reader.call("GET", "/v1/approvals/groups", { key: admin })).body;
        const counts = Object.fromEntries(
          groups.map((group: { rule: string; count: number }) => [group.rule, group.count]),
        );
        const twos = [...pending.values()].filter(({ isTwo }) => isTwo).length;
        assert.deepEqual([counts.two ?? 0, counts.pay ?? 0, total], [twos, pending.size - twos, pending.size], where);
      }
    }
  } finally {
    for (const service of services) await service.close();
    await server.stop();
  }
});

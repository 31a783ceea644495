/** A label holds in every process from the response to its inspection on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { postgresStorage } from "../../../plugins/storage-postgres/index.ts";
import { newKey } from "../../support/keys.ts";
import { startPostgres, withoutPostgres } from "../../support/postgres.ts";
import { startService, type Service } from "../../support/service.ts";

const POLICY = `policy: work
rules:
  - { name: after, tool: mail, when: '"outside" in session.labels', effect: require_approval }
  - { name: others, effect: allow }
results: [{ name: outside, tool: web, effect: allow, labels: [outside] }]
`;

test(
  "on two processes and one Postgres, the next decision of the other process reads the label",
  {
    skip: withoutPostgres,
  },
  async () => {
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
              config.secret = "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU";
              config.ledger.key = log;
              config.ledger.origin = "results.test/log";
            },
          }),
        );
      const [one, two] = services as [Service, Service];
      const key = services.find(({ agent }) => agent !== "")?.agent as string;
      const submit = (service: Service, agent_id: string, tool: string) =>
        service.call("POST", "/v1/actions", { key, body: { agent_id, tool, operation: "read" } });
      for (const [i, [here, there]] of [
        [one, two],
        [two, one],
        [one, one],
      ].entries()) {
        const agent = `bot-${i}`;
        const { body } = await submit(here as Service, agent, "web");
        assert.equal(body.inspect, true);
        const call = (path: string, sent: object) =>
          (i === 1 ? there : here)?.call("POST", `/v1/actions/${body.id}/${path}`, { key, body: sent });
        assert.equal((await call("start", { inspects: true }))?.status, 200);
        assert.equal((await submit(there as Service, agent, "mail")).body.status, "allowed");
        assert.equal((await call("inspect", { output: "text" }))?.status, 200);
        assert.equal((await submit(there as Service, agent, "mail")).body.status, "pending_approval");
        assert.equal((await submit(here as Service, agent, "mail")).body.status, "pending_approval");
      }
    } finally {
      for (const service of services) await service.close();
      await server.stop();
    }
  },
);

/**
 * Votes, starts, suspensions and revocations race on several processes. The order of the ledger decides the outcome for
 * all processes.
 * @needs agents
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { decodeEntry } from "../../src/domain/entries.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { needs } from "../support/features.ts";
import { SECRET } from "../support/deployment.ts";
import { newKey } from "../support/keys.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { startService, type Service } from "../support/service.ts";

const LOG_KEY = newKey();
const OPEN = `policy: open
rules:
  - { name: ask, operation: ask, effect: require_approval, approval: { expires_in: 2h } }
  - { name: go, operation: go, effect: allow }
`;
const ROUNDS = 12;

describe("containment on two processes", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let services: Service[];
  let keys: { admin: string; agent: string };

  before(async () => {
    server = await startPostgres();
    const url = await server.database();
    const options = {
      policy: OPEN,
      storage: () => postgresStorage({ url, poolSize: 3 }),
      change(config: Parameters<NonNullable<NonNullable<Parameters<typeof startService>[0]>["change"]>>[0]) {
        config.secret = SECRET;
        config.ledger.key = LOG_KEY;
        config.ledger.origin = "containment.test/log";
      },
    };
    services = [await startService(options), await startService(options)];
    keys = services.find(({ admin }) => admin !== "") as Service;
  });
  after(async () => {
    // `close` audits the store.
    for (const service of services) await service.close();
    await server.stop();
  });

  const call = (process: number, method: string, path: string, key: string, body?: object) =>
    (services[process] as Service).call(method, path, { key, ...(body === undefined ? {} : { body }) });

  /** Returns the ledger's entries after `size`, in order. */
  async function since(size: number): Promise<Record<string, unknown>[]> {
    const { storage } = services[0] as Service;
    return (await storage.entries(size, (await storage.head()).size)).map(({ bytes }) =>
      decodeEntry<JsonObject>(bytes),
    );
  }

  for (const [what, contain] of [
    ["agent", (bot: string) => call(0, "POST", `/v1/agents/${bot}/suspend`, keys.admin)],
    ["api_key", (_: string, id: string) => call(0, "DELETE", `/v1/api-keys/${id}`, keys.admin)],
  ] as const)
    it(
      `nothing is approved or started after the entry of type ${what}, and no action stays open`,
      needs("agents"),
      async () => {
        for (let round = 0; round < ROUNDS; round++) {
          const bot = `${what}-bot-${round}`;
          await call(0, "POST", "/v1/agents", keys.admin, { id: bot });
          const made = (await call(0, "POST", "/v1/api-keys", keys.admin, { name: bot, preset: "agent" })).body;
          const submit = async (operation: string) =>
            (await call(1, "POST", "/v1/actions", made.key, { agent_id: bot, tool: "t", operation })).body;
          const asked = await Promise.all([1, 2, 3].map(() => submit("ask")));
          const allowed = await Promise.all([1, 2, 3].map(() => submit("go")));
          const tokens = await Promise.all(
            asked.map(async ({ id }) => (await call(1, "GET", `/v1/actions/${id}`, keys.admin)).body.approval_token),
          );
          const permits = await Promise.all(
            allowed.map(
              async ({ id }) => (await call(1, "POST", `/v1/actions/${id}/permit`, keys.agent, {})).body.permit,
            ),
          );
          const { size } = await (services[0] as Service).storage.head();
          await Promise.all([
            ...asked.map(({ id }, i) =>
              call(1, "POST", `/v1/actions/${id}/approval`, keys.admin, { token: tokens[i], approve: true }),
            ),
            contain(bot, made.id),
            ...allowed.map(({ id }, i) =>
              call(1, "POST", `/v1/actions/${id}/start`, keys.agent, { permit: permits[i] }),
            ),
          ]);
          const entries = await since(size);
          const end = entries.findIndex(({ type, change }) => type === what && change !== "created");
          assert.ok(end >= 0, "it is recorded");
          for (const { type, status } of entries.slice(end))
            assert.ok(
              type === what || ["cancelled", "denied"].includes(status as string),
              `${String(type)} ${String(status)}`,
            );
          for (const { id } of [...asked, ...allowed]) {
            const row = await (services[0] as Service).storage.action(id);
            assert.ok(["cancelled", "denied", "executing"].includes(row?.status ?? ""), `${row?.status}`);
          }
        }
      },
    );
});

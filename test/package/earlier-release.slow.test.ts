/**
 * This release and an earlier one: side by side on one Postgres under load, on the earlier one's store, and a downgrade.
 * `ASSENT_EARLIER` is the folder of the unpacked earlier package. There is no earlier release before 0.1.0, so without
 * the variable this build stands in for it, which tests the procedure and not the formats.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import process from "node:process";
import { after, before, describe, it } from "node:test";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import { ADMIN, sharedEnvironment } from "../support/deployment.ts";
import { assent, runProgram, type Run } from "../support/cli.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { ASSENT, startCommand, startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { ALLOWED, FEW_POLICIES } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { withTimeout, until } from "../support/wait.ts";

const EARLIER = process.env["ASSENT_EARLIER"];
const earlierCommand = (args: string[]): string[] =>
  EARLIER === undefined ? [...ASSENT, ...args] : [join(EARLIER, "bin/assent.mjs"), ...args];
const startEarlier = (env: Record<string, string>): Promise<ServiceProcess> =>
  startCommand([process.execPath, earlierCommand(["serve"])], env);
const CLIENTS = 4;

const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
async function submit(url: string): Promise<string> {
  const answer = await fetch(`${url}/v1/actions`, { method: "POST", headers, body: JSON.stringify(ALLOWED) });
  const body = (await answer.json()) as { id: string };
  assert.equal(answer.status, 200, JSON.stringify(body));
  return body.id;
}
const isKnown = async (url: string, id: string): Promise<boolean> =>
  (await fetch(`${url}/v1/actions/${id}`, { headers })).status === 200;

describe("an earlier release and this one", () => {
  it("use the same embedded store, and refuse to go back once a newer version has migrated it", async () => {
    const data = temporaryFolder("assent-earlier-");
    const env = { ASSENT_DATA: data, ASSENT_POLICIES: FEW_POLICIES, ASSENT_ADMIN_KEY: ADMIN };
    const earlier = await startEarlier(env);
    const ids = await Promise.all(Array.from({ length: 20 }, () => submit(earlier.url)));
    assert.equal(await stopProcess(earlier), 0);

    const service = await startProcess(env);
    for (const id of ids) assert.ok(await isKnown(service.url, id), id);
    await submit(service.url);
    assert.equal(await stopProcess(service), 0);
    const audit = await assent(["audit"], { env });
    assert.equal(audit.code, 0, audit.out + audit.err);

    // The result of a migration of a later version.
    const { DatabaseSync } = await loadSqlite();
    const store = new DatabaseSync(join(data, "assent.db"));
    store.exec("insert into schema_migrations (version, name, applied_at) values (9999, 'later', 0)");
    store.close();
    const refused: Run = await runProgram(process.execPath, earlierCommand(["serve"]), {
      env: { ...env, ASSENT_PORT: "0" },
    });
    assert.notEqual(refused.code, 0);
    assert.match(
      refused.out + refused.err,
      /the store was written by a newer version \(schema 9999, this one knows \d+\); run that version, or restore a backup/,
    );
  });

  describe("on one Postgres", { skip: withoutPostgres }, () => {
    let server: PostgresServer;
    before(async () => {
      server = await startPostgres();
    });
    after(() => server.stop());

    it("both versions make decisions together under load, and the new one continues by itself", async () => {
      const shared = {
        ...sharedEnvironment("earlier.test/log"),
        DATABASE_URL: await server.database(),
        ASSENT_POLICIES: FEW_POLICIES,
      };
      const envOf = (name: string) => ({ ...shared, ASSENT_DATA: temporaryFolder(`assent-${name}-`) });
      const earlier = await startEarlier(envOf("earlier"));
      const decided = new Map<string, string[]>([[earlier.url, []]]);
      const urls = [earlier.url];
      let isStopping = false;
      const clients = Array.from({ length: CLIENTS }, async (_, client) => {
        for (let turn = client; !isStopping; turn++) {
          const url = urls[turn % urls.length] as string;
          decided.get(url)?.push(await submit(url));
        }
      });
      const newEnv = envOf("new");
      const service = await startProcess(newEnv);
      try {
        decided.set(service.url, []);
        urls.push(service.url);
        const count = (url: string): number => decided.get(url)?.length ?? 0;
        await until("both have decided", () => count(earlier.url) > 50 && count(service.url) > 50);
        // The load balancer sends the old process no more requests before it stops.
        urls.shift();
        const before = count(service.url);
        await until("the new one decides alone", () => count(service.url) > before + 50);
        assert.equal(await stopProcess(earlier), 0);
        await until("and after the end of the old one", () => count(service.url) > before + 100);
        isStopping = true;
        await withTimeout("the clients end", Promise.all(clients));
        for (const ids of decided.values()) assert.ok(await isKnown(service.url, ids.at(-1) as string));
        const audit = await assent(["audit"], { env: newEnv });
        assert.equal(audit.code, 0, audit.out + audit.err);
      } finally {
        isStopping = true;
        await Promise.allSettled(clients);
        await Promise.all([stopProcess(earlier, "SIGKILL"), stopProcess(service, "SIGKILL")]);
      }
    });
  });
});

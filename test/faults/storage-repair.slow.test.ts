/**
 * A store that a lost connection damaged in an earlier version. The service rejects it, and the repair removes the rows
 * after the head.
 * @needs agents
 */
import assert from "node:assert/strict";
import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { LedgerTampered } from "../../src/ledger/tampered.ts";
import { encodeEntry, type EntryBody } from "../../src/domain/entries.ts";
import { NON_VOTE_FIELDS } from "../../src/domain/open-actions.ts";
import { defaultConfig } from "../../src/config/index.ts";
import { repairStore, readRepairs } from "../../src/cli/repair.ts";
import type { Output } from "../../src/cli/command.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { ALLOWED, ASKED, startService, type Service } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const silent = { out: () => undefined, err: () => undefined, watched: false } as unknown as Output;

describe("assent audit --repair", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let service: Service;
  let url: string;
  const folder = temporaryFolder("assent-repair-");
  before(async () => {
    server = await startPostgres();
    url = await server.database();
    service = await startService({ storage: () => postgresStorage({ url, poolSize: 2 }) });
  });
  after(async () => {
    // A Postgres that is still running prevents this process from exiting.
    try {
      await service.close();
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it(
    "keeps everything that the head covers, saves a copy of the rest, and the service starts again",
    { timeout: 120_000 },
    async () => {
      const kept = (await service.call("POST", "/v1/actions", { body: ALLOWED })).body;
      const asked = (await service.call("POST", "/v1/actions", { body: ASKED })).body;
      const { size } = await service.storage.head();
      await service.runtime.stop();

      // The damage: an action with its entry and a vote on another action, each written without updating the head.
      await service.storage.open();
      const decision = (await service.storage.entriesOfAction(kept.id))[0];
      const request = await service.storage.action(kept.id);
      await service.storage.close();
      const strays: EntryBody[] = [
        { ...(JSON.parse(new TextDecoder().decode(decision?.bytes)) as EntryBody), action_id: "stray" } as EntryBody,
        {
          type: "approval",
          v: 1,
          action_id: asked.id,
          at: "2026-01-01T00:00:00.000Z",
          agent_id: "support-bot",
          commitment: "00",
          verdict: "approve",
          by: null,
          comment: null,
          ...NON_VOTE_FIELDS,
          approvals: 1,
          quorum: 1,
          status: "approved",
          approved_until: null,
          rejection_until: null,
        },
        {
          type: "agent",
          v: 1,
          at: "2026-01-01T00:00:00.000Z",
          change: "registered",
          agent: { id: "stray-agent" },
          by: null,
        },
      ];
      await server.run(url, async (client) => {
        await client.begin(async (tx) => {
          await tx`select set_config('assent.transaction', 'test', true), set_config('assent.copying', 'on', true)`;
          for (const [i, body] of strays.entries()) {
            const { bytes, leafHash } = encodeEntry(body, size + i);
            await tx`insert into entries (seq, type, leaf_hash, bytes, action_id, agent_id, submitted_by, followed, created_at)
            values (${size + i}, ${body.type}, ${Buffer.from(leafHash)}, ${Buffer.from(bytes)}, ${(body as { action_id?: string }).action_id ?? null}, 'support-bot', 'k', ${body.type === "agent" ? 1 : 0}, 1)`;
          }
          await tx`insert into actions select (jsonb_populate_record(a, jsonb_build_object('id', 'stray', 'decision_seq', ${size}::bigint))).* from actions a where id = ${kept.id}`;
          await tx`insert into approvals (action_id, principal, key_id, approve, self_approval, break_glass, signed, seq, created_at)
          values (${asked.id}, 'owner:x', 'k', 1, 0, 0, 0, ${size + 1}, 1)`;
          await tx`insert into agents (id, name, metadata, version, registered_seq, created_at, updated_at)
          values ('stray-agent', 'stray', '{}', 1, ${size + 2}, 1, 1)`;
          await tx`insert into idempotency values ('k', 'POST /v1/actions', 'i', 'h', 'stray', 1, '')`;
          await tx`insert into idempotency values ('k', 'POST /v1/agents', 'i', 'h', 'stray-agent', 1, '')`;
          await tx`update actions set status = 'approved', approved_until = 2, waited_ms = 1 where id = ${asked.id}`;
        });
      });
      await assert.rejects(service.restart(), (error: unknown) => {
        assert.ok(error instanceof LedgerTampered, String(error));
        return /after the end of the ledger/.test(error.message);
      });

      const config = defaultConfig({ data: folder, policies: folder });
      config.database_url = url;
      const copy = join(folder, "copy.jsonl");
      const repair = await repairStore(config, copy, silent);
      assert.deepEqual([repair?.size, repair?.entries, repair?.rows], [size, 3, 8]);
      const lines = readFileSync(copy, "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { table: string; row: Record<string, unknown> });
      assert.deepEqual(lines.map(({ table }) => table).sort(), [
        "actions",
        "agents",
        "approvals",
        "entries",
        "entries",
        "entries",
        "idempotency",
        "idempotency",
      ]);
      assert.equal(lines.find(({ table }) => table === "actions")?.row["request"], request?.request);
      assert.equal(statSync(copy).mode & 0o777, 0o600);
      assert.equal(await repairStore(config, undefined, silent), null, "a second time there is nothing to do");

      await service.restart();
      assert.equal((await service.call("GET", `/v1/actions/${kept.id}`)).body.status, "allowed");
      const again = (await service.call("GET", `/v1/actions/${asked.id}`, { key: service.admin })).body;
      assert.deepEqual([again.status, again.permit, again.approvals], ["pending_approval", null, []]);
      assert.equal(await service.storage.action("stray"), null);
      assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).status, 200);
      assert.deepEqual(await readRepairs(service.storage), [repair]);
      await assert.rejects(
        server.run(url, (client) =>
          client.unsafe("begin; select set_config('assent.transaction', 'x', true); delete from entries; commit"),
        ),
        /append-only/,
        "entries are append-only again",
      );
    },
  );

  it("does not remove signed entries, and removes nothing without a copy", { timeout: 60_000 }, async () => {
    const config = defaultConfig({ data: folder, policies: folder });
    config.database_url = url;
    await service.runtime.stop();
    const storage = postgresStorage({ url, poolSize: 1 });
    await storage.open();
    // A pool that is still open prevents this process from exiting.
    try {
      const { size } = await storage.head();
      await server.run(url, (client) =>
        client.begin(async (tx) => {
          await tx`select set_config('assent.transaction', 'test', true), set_config('assent.copying', 'on', true)`;
          await tx`insert into entries (seq, type, leaf_hash, bytes, followed, created_at) values (${size}, 'agent', '\\x00', ${Buffer.from('{"type":"agent"}')}, 1, 1)`;
        }),
      );
      await assert.rejects(repairStore(config, join(folder, "copy.jsonl"), silent), /EEXIST.*|cannot be written/);
      assert.equal((await storage.entries(size, size + 1)).length, 1);
      const checkpoint = await storage.checkpoint();
      await storage.write((tx) => tx.putCheckpoint(size + 1, "signed over more"));
      await assert.rejects(
        repairStore(config, undefined, silent),
        /a checkpoint covers these entries, so they are not deleted/,
      );
      assert.equal((await storage.entries(size, size + 1)).length, 1);
      // Restore the rows for the end of the test.
      await server.run(url, (client) =>
        client.unsafe(
          `begin; select set_config('assent.transaction', 'x', true); alter table checkpoint disable trigger user; update checkpoint set size = ${checkpoint?.size ?? 0}, note = '${checkpoint?.note ?? ""}'; alter table checkpoint enable trigger user; commit`,
        ),
      );
    } finally {
      await storage.close();
    }
    assert.equal((await repairStore(config, join(folder, "second.jsonl"), silent))?.entries, 1);
    await service.restart();
  });
});

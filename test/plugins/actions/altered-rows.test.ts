/** A row that someone altered so that it cannot be read does not hide the other rows of a page. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { rawSqlite } from "../../support/raw-store.ts";
import { tableOf } from "../../support/engines.ts";
import { ASKED, startService } from "../../support/service.ts";

for (const [column, value] of [
  ["request", "{not json"],
  ["request", '{"agent_id":"a"}'],
] as const)
  test(`lists mark an action whose ${column} is ${value}, and its own routes refuse it`, async () => {
    let path = "";
    const service = await startService({
      broken: true,
      storage: (folder) => sqliteStorage({ path: (path = join(folder, "store.db")) }),
    });
    try {
      const ids: string[] = [];
      for (let i = 0; i < 3; i++)
        ids.push((await service.call("POST", "/v1/actions", { body: { ...ASKED, context: { i } } })).body.id as string);
      const [first, altered, last] = ids as [string, string, string];
      const raw = await rawSqlite(path);
      const table = tableOf(raw, "actions");
      const row = (await raw.rows(table)).find(({ id }) => id === altered);
      assert.ok(row !== undefined);
      await raw.set(table, row, column, value);
      await raw.close();
      const get = (url: string) => service.call("GET", url, { key: service.admin });
      for (const list of ["/v1/actions", "/v1/approvals"]) {
        const { status, body } = await get(list);
        assert.equal(status, 200, JSON.stringify(body));
        const found = new Map(
          (body.actions as { id: string; altered?: true; context: object; approval_token?: string }[]).map((action) => [
            action.id,
            action,
          ]),
        );
        assert.deepEqual([found.get(first)?.context, found.get(first)?.altered], [{ i: 0 }, undefined]);
        assert.deepEqual([found.get(last)?.context, found.get(last)?.altered], [{ i: 2 }, undefined]);
        assert.deepEqual([found.get(altered)?.context, found.get(altered)?.altered], [{}, true]);
      }
      for (const answer of [
        await get(`/v1/actions/${altered}`),
        await service.call("POST", `/v1/actions/${altered}/approve`, {
          key: service.admin,
          body: { approval_token: "x" },
        }),
        await service.call("POST", `/v1/actions/${altered}/cancel`, { key: service.admin, body: {} }),
      ])
        assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status} ${JSON.stringify(answer.body)}`);
      assert.equal((await get(`/v1/actions/${altered}`)).body.code, "RECORD_ALTERED");
    } finally {
      await service.close();
    }
  });

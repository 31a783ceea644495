/** Requests that wait for a decision: the limit for each key, and what happens above it. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ASKED, startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

describe("waiting requests of one key", () => {
  let service: Service;
  before(async () => {
    service = await startService({ pluginOptions: { actions: { max_waits_per_key: 2 } } });
  });
  after(() => service.close());

  it("are limited; another GET gets 429, a submission is accepted without waiting, and finished waits make room", async () => {
    const { id } = (await service.call("POST", "/v1/actions", { body: ASKED })).body as { id: string };
    const look = (seconds: number, key?: string): Promise<Answer> =>
      service.call("GET", `/v1/actions/${id}?wait=${seconds}`, key === undefined ? {} : { key });
    const waiting = [look(60), look(60)];
    await until("both requests wait", async () => (await look(0)).status === 429);
    const refused = await look(60);
    assert.deepEqual(
      [refused.status, refused.body.code, refused.headers.get("retry-after")],
      [429, "TOO_MANY_WAITS", "5"],
    );
    const submitted = await service.call("POST", "/v1/actions", { body: ASKED, headers: { prefer: "wait=60" } });
    assert.deepEqual([submitted.status, submitted.headers.get("preference-applied")], [202, null]);
    assert.equal((await service.call("GET", `/v1/actions/${id}`)).status, 200, "to look is not to wait");
    assert.equal((await look(0, service.admin)).status, 200, "another key has places of its own");
    await service.call("POST", `/v1/actions/${id}/cancel`, { body: {} });
    assert.deepEqual(
      (await Promise.all(waiting)).map(({ body }) => body.status),
      ["cancelled", "cancelled"],
    );
    const other = (await service.call("POST", "/v1/actions", { body: ASKED, headers: { prefer: "wait=0" } })).headers;
    assert.equal(other.get("preference-applied"), "wait=0", "their places are free");
  });

  it("make room when the client disconnects", async () => {
    const { id } = (await service.call("POST", "/v1/actions", { body: ASKED })).body as { id: string };
    const leaving = new AbortController();
    const gone = [1, 2].map(() =>
      service.runtime.fetch(
        new Request(`http://test/v1/actions/${id}?wait=60`, {
          headers: { authorization: `Bearer ${service.agent}` },
          signal: leaving.signal,
        }),
      ),
    );
    const look = (): Promise<Answer> => service.call("GET", `/v1/actions/${id}?wait=0`);
    await until("both requests wait", async () => (await look()).status === 429);
    leaving.abort();
    await Promise.all(gone);
    assert.equal((await look()).status, 200);
  });
});

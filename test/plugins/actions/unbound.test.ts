/** The submitting key determines the agent, unless the configuration lets keys submit for any agent. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ALLOWED, startService, type Answer, type Service } from "../../support/service.ts";

let service: Service;
before(async () => {
  service = await startService({ change: (config) => (config.agents = "bound") });
});
after(() => service.close());

const ask = (route: string, agent_id: string, key = service.agent): Promise<Answer> =>
  service.call("POST", route, { key, body: { ...ALLOWED, agent_id } });
const said = ({ status, body }: Answer): unknown[] => [status, body.code ?? body.decision];

test("the first agent key is bound and submits only for its agent", async () => {
  const { body } = await service.call("GET", "/v1/me");
  assert.equal(body.key.agent_id, "support-bot");
  for (const route of ["/v1/actions", "/v1/gate/decide"]) {
    assert.deepEqual(said(await ask(route, "support-bot")), [200, "allow"]);
    for (const other of ["another", "Support-bot"])
      assert.deepEqual(said(await ask(route, other)), [403, "AGENT_MISMATCH"]);
  }
});

test("an unbound key, including the admin's, cannot submit, and the response that creates it contains a warning", async () => {
  const make = (body: object): Promise<Answer> =>
    service.call("POST", "/v1/api-keys", { key: service.admin, body: { preset: "agent", ...body } });
  const unbound = (await make({ name: "unbound" })).body;
  assert.match(unbound.warnings[0], /bound to no agent/);
  assert.deepEqual((await make({ name: "bound", agent_id: "bot" })).body.warnings, []);
  const { size } = await service.storage.head();
  for (const key of [unbound.key, service.admin])
    for (const route of ["/v1/actions", "/v1/gate/decide"])
      assert.deepEqual(said(await ask(route, "support-bot", key)), [403, "AGENT_UNBOUND"]);
  assert.equal((await service.storage.head()).size, size);
  await service.restart();
  assert.match(service.logged.join("\n"), /keys that are not bound to an agent can no longer submit.*"unbound"/);
});

test("with agents: any the first key is unbound", async () => {
  const open = await startService({ change: (config) => (config.agents = "any") });
  try {
    assert.equal((await open.call("GET", "/v1/me")).body.key.agent_id, null);
    assert.equal((await open.call("POST", "/v1/actions", { body: { ...ALLOWED, agent_id: "another" } })).status, 200);
  } finally {
    await open.close();
  }
});

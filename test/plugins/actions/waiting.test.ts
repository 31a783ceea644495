/** How many pending actions one key can have, and what a key gets if it is revoked while it waits. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ASKED, startService, type Answer, type Service, makeKey as makeKeyOn } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

let service: Service;
before(async () => {
  service = await startService({ change: (config) => (config.approvals.max_pending_per_key = 3) });
});
after(() => service.close());

let n = 0;
const makeKey = (more: object = {}, maker = service.admin): ReturnType<typeof makeKeyOn> =>
  makeKeyOn(service, { name: `key ${++n}`, preset: "agent", ...more }, maker);

const submit = (key: string, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("POST", "/v1/actions", { key, body: ASKED, headers });
const revoke = (id: string, key = service.admin): Promise<Answer> =>
  service.call("DELETE", `/v1/api-keys/${id}`, { key });

async function approve(id: string): Promise<void> {
  const { approval_token: token } = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
  const path = `/v1/actions/${id}/approval`;
  assert.equal((await service.call("POST", path, { key: service.admin, body: { token, approve: true } })).status, 200);
}

test("a key that is revoked while it waits gets neither the action nor its permit", async () => {
  const [submitter, looker] = [await makeKey(), await makeKey({ scopes: ["actions:read", "actions:execute"] })];
  const { id } = (await submit(service.agent)).body;
  const looking = service.call("GET", `/v1/actions/${id}?wait=60`, { key: looker.key });
  const submitting = submit(submitter.key, { prefer: "wait=60" });
  await until("both requests wait", async () => {
    const { actions } = (await service.call("GET", "/v1/approvals", { key: service.admin })).body;
    return actions.some(({ submitted_by }: { submitted_by: string }) => submitted_by === submitter.id);
  });
  for (const key of [submitter, looker]) assert.equal((await revoke(key.id)).status, 200);
  await approve(id);
  for (const answer of [await looking, await submitting]) {
    assert.deepEqual([answer.status, answer.body.code], [401, "INVALID_CREDENTIAL"]);
    assert.ok(answer.headers.has("www-authenticate"));
    assert.equal(answer.body.permit, undefined);
  }
});

test("the number of pending actions of a key is limited, and a vote on one makes room for a new one", async () => {
  const [one, other] = [await makeKey(), await makeKey()];
  const answers = await Promise.all([1, 2, 3, 4, 5].map(() => submit(one.key)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 202, 202, 429, 429]);
  const refused = answers.find(({ status }) => status === 429);
  assert.deepEqual([refused?.body.code, refused?.headers.get("retry-after")], ["TOO_MANY_PENDING", "60"]);
  assert.equal((await submit(other.key)).status, 202, "others have their own room");
  await approve(answers.find(({ status }) => status === 202)?.body.id as string);
  assert.equal((await submit(one.key)).status, 202);
});

test("a bound key that manages keys sees and revokes only keys of its agent", async () => {
  const manager = await makeKey({ agent_id: "bot", scopes: ["keys:manage"] });
  const [own, foreign] = [await makeKey({ agent_id: "bot" }), await makeKey()];
  const { api_keys } = (await service.call("GET", "/v1/api-keys", { key: manager.key })).body;
  assert.deepEqual(api_keys.map(({ id }: { id: string }) => id).sort(), [manager.id, own.id].sort());
  const names = await service.call("GET", `/v1/api-keys/names?ids=${own.id},${foreign.id}`, { key: manager.key });
  assert.deepEqual(
    names.body.keys.map(({ id }: { id: string }) => id),
    [own.id],
  );
  const bare = await makeKey({ agent_id: "other", preset: undefined, scopes: ["keys:manage"] });
  assert.deepEqual([(await revoke(bare.id, manager.key)).body.code], ["KEY_NOT_FOUND"]);
  const child = await makeKey({ agent_id: "bot", preset: undefined, scopes: ["keys:manage"] }, manager.key);
  assert.equal((await revoke(child.id, manager.key)).status, 200);
});

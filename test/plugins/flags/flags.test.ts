/**
 * An approver flags an action that was let through. A flag changes no decision.
 * @needs flags
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { NoticeMessage } from "../../../src/contract/notifier.ts";
import { testNotifier } from "../../support/notifier.ts";
import { approve, makeKey, person, startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const POLICY = `policy: work
rules:
  - { name: reads, operation: read, effect: allow }
  - { name: others, effect: require_approval, approval: { expires_in: 8h } }
`;
const pigeon = testNotifier();
let service: Service;
const keys: Record<string, string> = {};
before(async () => {
  service = await startService({
    policy: POLICY,
    plugins: [pigeon.plugin],
    change(config) {
      config.approvals.trust_key_makers = true;
      config.groups = {
        staff: { members: [person("Ada"), person("Bob")] },
        support: { members: [person("Linus")], agents: ["support-*"] },
      };
      config.channels = { desk: { notifier: "pigeon", people: [{ owner: person("Ada"), to: "ada" }] } } as never;
    },
  });
  for (const name of ["Ada", "Bob", "Linus"])
    keys[name] = (await makeKey(service, { name, owner: person(name), preset: "approver" })).key;
});
// Audits the store, too.
after(() => service.close());

let n = 0;
const submit = async (operation = "pay"): Promise<string> => {
  const body = { agent_id: "bot", tool: "bank", operation, params: { n: ++n } };
  return (await service.call("POST", "/v1/actions", { body })).body.id as string;
};
const flag = (id: string, name: string, body: object = { reason: "paid last week" }): Promise<Answer> =>
  service.call("POST", `/v1/actions/${id}/flag`, { key: keys[name] ?? name, body });
const code = ({ status, body }: Answer): unknown[] => [status, body?.code];

test("a flag is in the ledger with its reason, notifies the approver, and changes nothing else", async () => {
  const id = await submit();
  assert.deepEqual(code(await flag(id, "Bob")), [409, "ACTION_NOT_FLAGGABLE"], "it still waits");
  await approve(service, id, keys["Ada"]);
  assert.equal((await flag(id, "Bob")).status, 204);
  assert.deepEqual(code(await flag(id, "Bob")), [409, "ALREADY_FLAGGED"]);
  const { events } = (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body;
  const { type, data, by } = events.at(-1).entry;
  assert.deepEqual(
    [type, data, by.principal],
    ["flags:flag", { reason: "paid last week", approver: person("Ada") }, person("Bob")],
  );
  await until("Ada is notified", () => pigeon.messages.some(({ kind }) => kind === "notice"));
  const notices = pigeon.messages.filter((message): message is NoticeMessage => message.kind === "notice");
  assert.deepEqual(
    notices.map(({ to, notice, link }) => [to, notice.title, link.endsWith(`#/actions/${id}`)]),
    [["ada", "An action of bot that you approved was flagged", true]],
  );
  assert.equal((await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body.status, "approved");
});

test("only an approver who sees the action can flag it, with a reason, if it was let through", async () => {
  const allowed = await submit("read");
  assert.deepEqual(code(await flag(allowed, "Linus")), [404, "ACTION_NOT_FOUND"]);
  assert.deepEqual(code(await flag(allowed, service.agent)), [403, "INSUFFICIENT_SCOPE"]);
  for (const body of [{}, { reason: "" }, { reason: "x".repeat(501) }])
    assert.deepEqual(code(await flag(allowed, "Bob", body)), [422, "VALIDATION_FAILED"]);
  assert.equal((await flag(allowed, "Bob")).status, 204, "without an approver, no one is notified");
  const cancelled = await submit();
  await service.call("POST", `/v1/actions/${cancelled}/cancel`, { key: service.admin, body: {} });
  assert.deepEqual(code(await flag(cancelled, "Bob")), [409, "ACTION_NOT_FLAGGABLE"]);
});

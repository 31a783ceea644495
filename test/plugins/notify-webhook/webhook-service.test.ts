/**
 * notify-webhook in a whole service: a request arrives, its link votes, the outcome arrives; a feed contains no link.
 */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Webhook } from "standardwebhooks";
import notifyWebhook from "../../../plugins/notify-webhook/index.ts";
import { PluginError } from "../../../src/runtime/plugins/plugin-options.ts";
import type { Plugin } from "../../../src/plugin.ts";
import { needs } from "../../support/features.ts";
import { voteByLink } from "../../support/link-vote.ts";
import { ASKING, HOSTILE_ACTION, startReceiver, type Receiver } from "../../support/receiver.ts";
import { approve, startService, type Service, person } from "../../support/service.ts";

const SECRET = `whsec_${Buffer.alloc(32, 3).toString("base64")}`;
let receiver: Receiver;
let service: Service;

const plugin = (options: unknown): { plugin: Plugin; options: unknown; origin: string } => ({
  plugin: notifyWebhook as Plugin,
  options,
  origin: "notify-webhook",
});

beforeEach(async () => {
  receiver = await startReceiver();
  const to = (path: string, more: object = {}): object => ({
    url: `http://127.0.0.1:${receiver.port}/${path}`,
    secret: SECRET,
    allow_private: true,
    ...more,
  });
  service = await startService({
    policy: ASKING,
    plugins: [plugin({ destinations: { desk: to("desk"), audit: to("audit", { events: ["decision", "approval"] }) } })],
    change(config) {
      config.server.public_url = "https://assent.example";
      config.channels = { finance: { notifier: "notify-webhook", people: [{ owner: person("anna"), to: "desk" }] } };
    },
  });
});
afterEach(async () => {
  await service.close();
  await receiver.close();
});

test("a hostile request arrives complete, its link votes, and the outcome is sent; the feed contains no token", async () => {
  const submitted = await service.call("POST", "/v1/actions", { body: HOSTILE_ACTION });
  assert.equal(submitted.status, 202, JSON.stringify(submitted.body));
  const asked = await receiver.next(({ path, body }) => path === "/desk" && body.includes("approval_requested"));
  const { data } = new Webhook(SECRET).verify(asked.body, asked.headers as Record<string, string>) as {
    data: { link: string; person: string; action: Record<string, unknown> };
  };
  assert.deepEqual(
    [data.action["agent_id"], data.action["operation"], data.action["params"], data.person],
    [HOSTILE_ACTION.agent_id, HOSTILE_ACTION.operation, HOSTILE_ACTION.params, person("anna")],
  );
  const token = data.link.slice(data.link.indexOf("#") + 1);
  const voted = await voteByLink(service, token, false, "no\r\nBcc: x");
  assert.equal(voted.status, 200, JSON.stringify(voted.body));
  const closed = await receiver.next(({ path, body }) => path === "/desk" && body.includes("approval_closed"));
  const end = JSON.parse(closed.body).data.action;
  assert.deepEqual(
    [end.status, end.votes[0].approver, end.votes[0].approve, end.votes[0].reason],
    ["denied", person("anna"), false, "no\r\nBcc: x"],
  );
  await receiver.next(({ path, body }) => path === "/audit" && body.includes('"ledger.approval"'));
  const feed = receiver.received.filter(({ path }) => path === "/audit");
  assert.deepEqual(
    feed.map(({ body }) => JSON.parse(body).type),
    ["ledger.decision", "ledger.approval"],
  );
  assert.ok(!feed.some(({ body }) => body.includes("apl1_") || body.includes('link":')));
});

test(
  "the person behind an agent is notified once of an unknown outcome, without a link that votes",
  needs("deliveries"),
  async () => {
    const anna = { name: "anna's agent", preset: "agent", owner: person("anna") };
    const { key } = (await service.call("POST", "/v1/api-keys", { key: service.admin, body: anna })).body;
    for (const owned of [true, false]) {
      const by = owned ? key : service.agent;
      const request = { agent_id: "support-bot", tool: "t", operation: "go", params: { owned } };
      const submitted = (await service.call("POST", "/v1/actions", { key: by, body: request })).body;
      await approve(service, submitted.id);
      assert.equal(
        (await service.call("POST", `/v1/actions/${submitted.id}/start`, { key: by, body: {} })).status,
        200,
      );
    }
    service.clock.now += 61 * 60_000;
    await service.restart();
    const told = await receiver.next(({ path, body: sent }) => path === "/desk" && sent.includes("outcome_unknown"));
    const { data } = JSON.parse(told.body);
    assert.deepEqual(
      [data.action.status, data.action.params, data.person, data.link],
      ["unknown", { owned: true }, person("anna"), undefined],
    );
    const { deliveries } = (await service.call("GET", "/v1/deliveries", { key: service.admin })).body;
    assert.deepEqual(
      deliveries.flatMap(({ kind }: { kind: string }) => (kind === "outcome_unknown" ? [kind] : [])),
      ["outcome_unknown"],
    );
  },
);

test("options are validated at startup, and channels against the destinations; without options there is no notifier", async () => {
  const start = (options: unknown, to = "desk"): Promise<Service> =>
    startService({
      plugins: [plugin(options)],
      change: (config) => void (config.channels = { finance: { notifier: "notify-webhook", places: [{ to }] } }),
    });
  const desk = { url: "https://example.com/", secret: SECRET };
  const wrong: [object, RegExp][] = [
    [
      { destinations: { desk: { url: "https://example.com/" } } },
      /option "destinations\.desk\.secret": this member is required/,
    ],
    [
      { destinations: { desk: { ...desk, secret: 5 } } },
      /option "destinations\.desk\.secret": expected a string or an array/,
    ],
    [
      { destinations: { desk: { ...desk, events: ["decisions"] } } },
      /destination "desk": no entry of the ledger has the type "decisions"; did you mean "decision"\?/,
    ],
    [{ destinations: { desk: { ...desk, url: "nope" } } }, /destination "desk": its url must begin with https/],
    [{ destination: {} }, /did you mean "destinations"/],
  ];
  for (const [options, words] of wrong)
    await assert.rejects(
      start(options),
      (error: Error) => error instanceof PluginError && words.test(error.message),
      JSON.stringify(options),
    );
  await assert.rejects(
    start({ destinations: { desk } }, "dusk"),
    /channels\/finance: notify-webhook has no destination "dusk"; did you mean "desk"/,
  );
  await assert.rejects(start({}), /there is no notifier "notify-webhook"/);
  const idle = await startService({ plugins: [plugin({})] });
  await idle.close();
});

/**
 * The notice to the owner of a throttled key.
 * @needs deliveries, notify-email, notify-slack, notify-teams, notify-webhook
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderCard } from "../../../plugins/notify-teams/card.ts";
import { renderMail } from "../../../plugins/notify-email/mail.ts";
import { renderNoticeBlocks } from "../../../plugins/notify-slack/blocks.ts";
import { buildWebhookBody } from "../../../plugins/notify-webhook/webhook-body.ts";
import type { NoticeMessage } from "../../../src/contract/notifier.ts";
import { testNotifier } from "../../support/notifier.ts";
import { person, setSection, startService } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const ASKING = `policy: work
rules: [{ name: ask, effect: require_approval }]
`;

test("only the owner of an agent's key is notified that it is throttled, and only once", async () => {
  const pigeon = testNotifier();
  const service = await startService({
    policy: ASKING,
    plugins: [pigeon.plugin],
    change(config) {
      setSection(config, "throttle", { times: 2, minimum: 1 });
      config.channels = {
        a: { notifier: "pigeon", people: [{ owner: person("anna"), to: "anna" }], places: [{ to: "room" }] },
        b: { notifier: "pigeon", people: [{ owner: person("ben"), to: "ben" }] },
      } as never;
    },
  });
  try {
    const HOUR = 3_600_000;
    const anna = { name: "anna's agent", preset: "agent", owner: person("anna") };
    const { key } = (await service.call("POST", "/v1/api-keys", { key: service.admin, body: anna })).body;
    let n = 0;
    let last = "";
    for (const requests of [1, 1, 1, 4]) {
      service.clock.now += HOUR - ((Date.now() + service.clock.now) % HOUR);
      for (let i = 0; i < requests; i++) {
        const request = { agent_id: "support-bot", tool: "t", operation: "go", params: { n: ++n } };
        const answer = await service.call("POST", "/v1/actions", { key, body: request });
        assert.equal(answer.status, i < 2 ? 202 : 429, JSON.stringify(answer.body));
        if (answer.status === 202) last = answer.body.id as string;
      }
    }
    const notices = (): NoticeMessage[] =>
      pigeon.messages.filter((message): message is NoticeMessage => message.kind === "notice");
    await until("the owner is notified", () => notices().length > 0);
    const [message] = notices() as [NoticeMessage];
    assert.deepEqual([message.to, message.person, message.notice.name], ["anna", person("anna"), "agent_throttled"]);
    const { throttle, ...about } = message.notice.data as { throttle: Record<string, unknown> };
    assert.deepEqual([throttle["requests"], throttle["usual"]], [2, { requests: 3, hours: 3 }]);
    assert.deepEqual(about, { agent_id: "support-bot", action_id: last });
    assert.match(message.notice.opening, /made 2 requests for approval in this hour\. It usually makes 1\./);
    assert.ok(message.link.endsWith(`/#/actions/${last}`), message.link);
    for (const text of [renderCard(message), renderMail(message), renderNoticeBlocks(message)])
      assert.match(JSON.stringify(text), /Agent throttled: support-bot|agent throttled: support-bot/);
    assert.equal((JSON.parse(buildWebhookBody(message)) as { type: string }).type, "agent_throttled");
    const { deliveries } = (await service.call("GET", "/v1/deliveries", { key: service.admin })).body;
    assert.equal(deliveries.filter(({ kind }: { kind: string }) => kind === "agent_throttled").length, 1);
  } finally {
    await service.close();
  }
});

/**
 * Notices of stops to people in channels, once each, with their text escaped.
 * @needs notify-email, notify-slack, notify-webhook
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderMail } from "../../../plugins/notify-email/mail.ts";
import { renderNoticeBlocks } from "../../../plugins/notify-slack/blocks.ts";
import { buildWebhookBody } from "../../../plugins/notify-webhook/webhook-body.ts";
import type { NoticeMessage } from "../../../src/contract/notifier.ts";
import { needs } from "../../support/features.ts";
import { testNotifier } from "../../support/notifier.ts";
import { startService, person, setSection } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

interface StopData {
  change: string;
  reason: string;
  comment: string | null;
  approvals: number;
  needed: number;
  tool: string | null;
}

const REASON = "<b>refunds</b>\u202e & worse";

test("placing a stop, asking to lift and lifting notify each person once, also if another channel fails", async () => {
  const pigeon = testNotifier();
  const owl = testNotifier("owl");
  const service = await startService({
    plugins: [pigeon.plugin, owl.plugin],
    change(config) {
      setSection(config, "stop", { lift_approvals: 2 });
      config.channels = {
        a: { notifier: "pigeon", people: [{ owner: person("Anna"), to: "anna" }], places: [{ to: "room" }] },
        b: { notifier: "pigeon", people: [{ owner: person("Anna"), to: "anna" }] },
        c: { notifier: "owl", places: [{ to: "tree" }] },
      } as never;
    },
  });
  try {
    owl.plans = Array.from({ length: 9 }, () => () => Promise.reject(new Error("the owl sleeps")));
    const other = (await service.runtime.createAdminKey("other")).key;
    const stop = (key: string, path: string, body: object) => service.call("POST", `/v1/stop${path}`, { key, body });
    const { id } = (await stop(service.admin, "", { reason: REASON, tool: "stripe" })).body;
    assert.equal((await stop(service.admin, `/${id}/lift`, { reason: "it is over" })).status, 202);
    assert.equal((await stop(other, `/${id}/lift`, {})).status, 200);
    await until("everyone is notified", () => pigeon.messages.length === 6);
    const told = pigeon.messages
      .filter((message): message is NoticeMessage => message.kind === "notice")
      .map((notice) => ({ ...notice, stop: notice.notice.data["stop"] as unknown as StopData }));
    assert.deepEqual(told.map(({ to, stop: { change } }) => `${to} ${change}`).sort(), [
      "anna lift_asked",
      "anna lifted",
      "anna placed",
      "room lift_asked",
      "room lifted",
      "room placed",
    ]);
    const message = told.find(({ stop: { change } }) => change === "lift_asked");
    assert.ok(message !== undefined);
    assert.deepEqual(
      [message.stop.reason, message.stop.comment, message.stop.approvals, message.stop.needed, message.stop.tool],
      [REASON, "it is over", 1, 2, "stripe"],
    );
    const mail = renderMail(message);
    assert.equal(mail.subject, "[Assent] someone wants to lift a stop: tool stripe");
    assert.match(mail.text, /1 of 2 people have requested that/);
    assert.ok(!mail.html.includes("<b>") && mail.html.includes("&lt;b&gt;"));
    assert.ok(!mail.text.includes("\u202e"), "what hides is shown");
    const slack = JSON.stringify(renderNoticeBlocks(message));
    assert.ok(slack.includes("&lt;b&gt;refunds") && !slack.includes("<b>"));
    const body = JSON.parse(buildWebhookBody(message)) as { type: string; data: { stop: { id: string } } };
    assert.deepEqual([body.type, body.data.stop.id], ["stop", id]);
  } finally {
    await service.close();
  }
});

test(
  "only the configured channels are notified, and an unknown channel aborts startup",
  needs("deliveries"),
  async () => {
    const pigeon = testNotifier();
    const channels = {
      a: { notifier: "pigeon", places: [{ to: "room" }] },
      b: { notifier: "pigeon", places: [{ to: "hall" }] },
    };
    const start = (notify: string[]) =>
      startService({
        plugins: [pigeon.plugin],
        change: (config) => {
          config.channels = channels;
          setSection(config, "stop", { notify });
        },
      });
    await assert.rejects(start(["c"]), /stop.notify names it, but there is no such channel/);
    const service = await start(["b"]);
    try {
      await service.call("POST", "/v1/stop", { key: service.admin, body: { reason: "drill", agent: "nobody" } });
      await until("one person is notified", () => pigeon.messages.length > 0);
      const sent = await service.call("GET", "/v1/deliveries", { key: service.admin });
      assert.deepEqual(
        sent.body.deliveries.map(({ kind, recipient }: { kind: string; recipient: string }) => [kind, recipient]),
        [["stop", "hall"]],
      );
    } finally {
      await service.close();
    }
  },
);

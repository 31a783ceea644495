/** notify-teams with a receiver instead of a workflow's webhook. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createNotifier } from "../../../plugins/notify-teams/index.ts";
import type { NotifierError } from "../../../src/plugin.ts";
import {
  askedMessage,
  closedMessage,
  eventMessage,
  HOSTILE,
  type Receiver,
  startReceiver,
} from "../../support/receiver.ts";

const never = new AbortController().signal;
const PLACE = { person: null, link: "https://assent.example/approve#0190" };
let teams: Receiver;
before(async () => {
  teams = await startReceiver();
});
after(() => teams.close());

const urlOf = (): string => `http://127.0.0.1:${teams.port}/workflow?sig=secret`;
const notifier = () => createNotifier({ finance: { url: urlOf(), allow_private: true } });
const cardOf = async (message: Parameters<ReturnType<typeof notifier>["deliver"]>[0]) => {
  await notifier().deliver(message, never);
  const [attachment] = JSON.parse(teams.received.at(-1)?.body ?? "").attachments;
  assert.equal(attachment.contentType, "application/vnd.microsoft.card.adaptive");
  return attachment.content;
};
const textsOf = ({ body }: { body: { inlines: { text: string }[] }[] }): string[] =>
  body.map(({ inlines }) => inlines.map(({ text }) => text).join(""));

test("a request is a card with its facts, parameters and a button to the page, and the outcome is a card without one", async () => {
  const card = await cardOf(askedMessage("finance", PLACE, { preview: "Refund 500" }));
  const texts = textsOf(card);
  for (const text of [
    "Approval needed: stripe refund (high risk)",
    "Request: Refund 500",
    "Agent: support-bot",
    "Expires: 2026-01-31 20:00:00 UTC",
    "amount: 500",
  ])
    assert.ok(texts.includes(text), `${text} in ${texts.join("\n")}`);
  assert.deepEqual(card.actions, [{ type: "Action.OpenUrl", title: "Open the approval page", url: PLACE.link }]);
  const closed = await cardOf(closedMessage("finance", null));
  assert.ok(textsOf(closed).includes("Approved by anna at 2026-01-31 13:00:00 UTC."));
  assert.equal(closed.actions, undefined);
});

test("text that an agent wrote is only in text runs, without hidden characters and date functions", async () => {
  const params = { ...HOSTILE.params, link: "[click](https://evil.example)", date: "{{DATE(2026-01-01T00:00:00Z)}}" };
  const { body } = await cardOf(askedMessage("finance", PLACE, { ...HOSTILE, params }));
  for (const block of body) {
    assert.equal(block.type, "RichTextBlock");
    for (const { type, text } of block.inlines) {
      assert.equal(type, "TextRun");
      assert.ok(!/[\u200b\u202e\u2067\r\n]|\{\{DATE/.test(text), text);
    }
  }
});

test("a request that is too long for Teams is a card that says so", async () => {
  const params = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`key${i}`, "x".repeat(2000)]));
  const card = await cardOf(askedMessage("finance", PLACE, { params }));
  assert.ok(Buffer.byteLength(JSON.stringify(card)) < 28_000);
  assert.ok(textsOf(card).some((text) => /too long for Teams|more/.test(text)));
  assert.equal(card.actions.length, 1);
});

test("errors are retried unless the workflow was removed, and do not contain an address", async () => {
  for (const [status, permanent] of [
    [429, false],
    [503, false],
    [404, true],
  ] as const) {
    teams.answer = (_, response) => void response.writeHead(status, { "retry-after": "7" }).end();
    await assert.rejects(notifier().deliver(askedMessage("finance", PLACE), never), (error: NotifierError) => {
      assert.deepEqual([error.permanent, error.retryAfterMs], [permanent, 7000]);
      return !error.message.includes("secret");
    });
  }
  teams.answer = (_, response) => void response.end();
  await assert.rejects(notifier().deliver(eventMessage("finance"), never), /no feeds/);
});

test("a person, an unknown destination and a private address are refused", async () => {
  const { check } = notifier();
  assert.equal(check?.("finance", null), null);
  assert.match(check?.("finance", "anna") ?? "", /name "finance" under places/);
  assert.match(check?.("finanz", null) ?? "", /did you mean "finance"/);
  assert.throws(() => createNotifier({ x: { url: urlOf() } }), /destination "x": its url must begin with https/);
  const { connections } = teams;
  const named = createNotifier({ x: { url: `https://teams.example:${teams.port}/` } }, async () => ["127.0.0.1"]);
  await assert.rejects(named.deliver(askedMessage("x", PLACE), never), /not a public address/);
  assert.equal(teams.connections, connections);
});

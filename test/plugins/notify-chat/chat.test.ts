/** notify-chat with a receiver instead of a chat service. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createNotifier } from "../../../plugins/notify-chat/index.ts";
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
let chat: Receiver;
before(async () => {
  chat = await startReceiver();
});
after(() => chat.close());

const url = (): string => `http://127.0.0.1:${chat.port}/hooks/secret`;
const notifier = (body?: Record<string, string>) =>
  createNotifier({ finance: { url: url(), allow_private: true, ...(body === undefined ? {} : { body }) } });
const posted = (): Record<string, string> => JSON.parse(chat.received.at(-1)?.body ?? "");

test("a request is one text with its facts, parameters and the link, and the outcome is a text without a link", async () => {
  await notifier().deliver(askedMessage("finance", PLACE, { preview: "Refund 500" }), never);
  assert.deepEqual(Object.keys(posted()), ["text"]);
  const { text = "" } = posted();
  for (const part of [
    "`Approval needed: stripe refund (high risk)`",
    "\nRequest: Refund 500\n",
    "\n  amount: 500\n",
    "\nOpen the approval page: https://assent.example/approve#0190\nThe page asks for your key.",
  ])
    assert.ok(text.includes(part), `${part} in ${text}`);
  await notifier().deliver(closedMessage("finance", null), never);
  assert.match(posted()["text"] ?? "", /Approved by anna at 2026-01-31 13:00:00 UTC\./);
  assert.ok(!posted()["text"]?.includes("http"));
});

test("a template adds members, and replaces each name once", async () => {
  const about = { reason: "{link} {title}" };
  await notifier({ text: "{text}", username: "Assent", summary: "{title}: {link}" }).deliver(
    askedMessage("finance", PLACE, about),
    never,
  );
  const { username, summary, text = "" } = posted();
  assert.deepEqual([username, summary], ["Assent", `Approval needed: stripe refund (high risk): ${PLACE.link}`]);
  assert.ok(text.includes("Reason: {link} {title}"));
  assert.throws(() => notifier({ text: "x" }), /destination "finance": no member of "body" contains \{text\}/);
});

test("text that an agent wrote cannot leave the code, mention anyone, or become a link", async () => {
  const params = { ...HOSTILE.params, all: "@all <users/all> [x](https://evil.example) ```\n# big" };
  await notifier().deliver(askedMessage("finance", PLACE, { ...HOSTILE, params }), never);
  const { text = "" } = posted();
  const outside = text.replace(/^```\n[^]*?\n```$/m, "").replace(/^`[^`\n]*`$/gm, "");
  assert.match(outside, /^\s*Open the approval page: https:\/\/assent\.example\/approve#0190\nThe page asks/);
  assert.ok(!/[@<\u200b\u202e\u2067]/.test(text), text);
  assert.equal(text.match(/:\/\//g)?.length, 1);
});

test("a request that is too long is a text that says so and keeps the link", async () => {
  const params = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`key${i}`, "x".repeat(2000)]));
  await notifier().deliver(askedMessage("finance", PLACE, { params }), never);
  const { text = "" } = posted();
  assert.ok(text.length <= 4000);
  assert.match(text, /too long for this message/);
  assert.ok(text.includes(PLACE.link));
});

test("errors are retried unless the webhook was removed, and a redirect is not followed", async () => {
  const { received } = chat;
  for (const [status, permanent] of [
    [429, false],
    [503, false],
    [302, false],
    [404, true],
  ] as const) {
    const count = received.length;
    chat.answer = (_, response) =>
      void response.writeHead(status, { "retry-after": "7", location: `${url()}/elsewhere` }).end("<html>");
    await assert.rejects(notifier().deliver(askedMessage("finance", PLACE), never), (error: NotifierError) => {
      assert.deepEqual([error.permanent, error.retryAfterMs], [permanent, 7000]);
      return !error.message.includes("secret");
    });
    assert.equal(received.length, count + 1);
  }
  chat.answer = (_, response) => void response.end();
  await assert.rejects(notifier().deliver(eventMessage("finance"), never), /no feeds/);
});

test("a person and an unknown destination are refused", () => {
  const { check } = notifier();
  assert.equal(check?.("finance", null), null);
  assert.match(check?.("finance", "anna") ?? "", /name "finance" under places/);
  assert.match(check?.("finanz", null) ?? "", /did you mean "finance"/);
});

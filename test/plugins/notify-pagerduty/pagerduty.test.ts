/** notify-pagerduty with a receiver that rejects what PagerDuty rejects. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import notifyPagerDuty, { createNotifier } from "../../../plugins/notify-pagerduty/index.ts";
import type { NotifierError } from "../../../src/plugin.ts";
import { askedMessage, closedMessage, HOSTILE, type Receiver, startReceiver } from "../../support/receiver.ts";

const never = new AbortController().signal;
const KEY = "0123456789abcdef0123456789abcdef";
const PLACE = { person: null, link: "https://assent.example/approve#0190" };
let pagerDuty: Receiver;
before(async () => {
  pagerDuty = await startReceiver();
});
after(() => pagerDuty.close());

const notifier = () =>
  createNotifier({
    oncall: { routing_key: KEY, url: `http://127.0.0.1:${pagerDuty.port}/v2/enqueue`, allow_private: true },
  });
type Event = Record<string, any>;
const send = async (message: Parameters<ReturnType<typeof notifier>["deliver"]>[0]): Promise<Event> => {
  pagerDuty.answer = ({ body }, response) => {
    const { event_action, payload, dedup_key } = JSON.parse(body) as Event;
    const isValid =
      dedup_key.length <= 255 &&
      (event_action === "resolve" || (payload.summary.length <= 1024 && body.length <= 524_288));
    response.writeHead(isValid ? 202 : 400).end('{"status":"success"}');
  };
  await notifier().deliver(message, never);
  return JSON.parse(pagerDuty.received.at(-1)?.body ?? "") as Event;
};

test("a request opens an incident with a link, its reminder belongs to it, and the outcome resolves it", async () => {
  const opened = await send(askedMessage("oncall", PLACE));
  assert.deepEqual(
    [opened["routing_key"], opened["event_action"], opened["payload"].severity, opened["payload"].summary],
    [KEY, "trigger", "error", "Approval needed: stripe refund (high risk)"],
  );
  assert.deepEqual(opened["links"], [{ href: PLACE.link, text: "Open the approval page" }]);
  const { Agent, Parameters } = opened["payload"].custom_details;
  assert.deepEqual([Agent, Parameters], ["support-bot", "amount: 500\ncurrency: USD"]);
  const reminded = await send(
    askedMessage("oncall", { ...PLACE, kind: "approval_reminder" }, { risk_level: "critical" }),
  );
  assert.deepEqual([reminded["dedup_key"], reminded["payload"].severity], [opened["dedup_key"], "critical"]);
  const closed = await send(closedMessage("oncall", null));
  assert.deepEqual(closed, { routing_key: KEY, event_action: "resolve", dedup_key: opened["dedup_key"] });
  const emergency = await send({ ...closedMessage("oncall", null), kind: "break_glass" });
  assert.notEqual(emergency["dedup_key"], opened["dedup_key"]);
  assert.equal(emergency["event_action"], "trigger");
});

test("hostile and long requests do not prevent the incident, and hidden characters are visible", async () => {
  const event = await send(askedMessage("oncall", PLACE, HOSTILE));
  assert.ok(!/[\u200b\u202e\u2067]/.test(JSON.stringify(event)));
  const params = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`key${i}`, "\u0001".repeat(4000)]));
  const long = await send(askedMessage("oncall", PLACE, { params, tool: "x".repeat(3000) }));
  assert.ok(long["payload"].summary.length <= 1024);
});

test("errors are retried unless PagerDuty refuses the event, and contain no key", async () => {
  for (const [status, permanent] of [
    [429, false],
    [500, false],
    [301, false],
    [400, true],
  ] as const) {
    pagerDuty.answer = (_, response) => void response.writeHead(status, { "retry-after": "3" }).end("garbage");
    await assert.rejects(notifier().deliver(askedMessage("oncall", PLACE), never), (error: NotifierError) => {
      assert.deepEqual([error.permanent, error.retryAfterMs], [permanent, 3000]);
      return !error.message.includes(KEY);
    });
  }
  assert.match(notifier().check?.("oncall", "anna") ?? "", /under places/);
  assert.equal(notifyPagerDuty.name, "notify-pagerduty");
});

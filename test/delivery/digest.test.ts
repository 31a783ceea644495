/** Messages about several requests: every notifier shows each of them with its own link. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderMail } from "../../plugins/notify-email/mail.ts";
import { renderBlocks } from "../../plugins/notify-slack/blocks.ts";
import { buildWebhookBody } from "../../plugins/notify-webhook/webhook-body.ts";
import { delayToDigest } from "../../src/domain/quiet-hours.ts";
import { askedMessage } from "../support/receiver.ts";

const others = [
  { tool: "stripe", operation: "refund", preview: "Refund 40" },
  { tool: "crm", operation: "delete\n<b>all</b>", preview: null },
].map((about, i) => ({
  action: askedMessage("anna", {}, about).action,
  link: `https://assent.example/approve#apl1_other${i}.mac`,
}));
const message = askedMessage("anna", { others });

test("a mail, a Slack message and a webhook show every request of a digest with its link", () => {
  const mail = renderMail(message);
  const { text, blocks } = renderBlocks(message);
  for (const title of [mail.subject, text]) assert.match(title, / and 2 more$/);
  for (const shown of [mail.text, mail.html, JSON.stringify(blocks), buildWebhookBody(message)]) {
    for (const { link } of others) assert.ok(shown.includes(link), link);
    assert.match(shown, /Refund 40/);
  }
  for (const shown of [mail.text, mail.html]) assert.doesNotMatch(shown, /delete\n/);
  for (const shown of [mail.html, JSON.stringify(blocks)]) assert.doesNotMatch(shown, /<b>/);
  assert.doesNotMatch(renderMail(askedMessage("anna")).text, /Also waiting/);
});

test("a request waits for the next digest, unless it is critical or would lose half of its time", () => {
  const notice = { at: 1_000_000, expiresAt: 9_000_000, risk: null };
  assert.equal(delayToDigest(900_000, notice), 1_800_000);
  assert.equal(delayToDigest(900_000, { ...notice, at: 1_800_000 }), 1_800_000);
  assert.equal(delayToDigest(900_000, { ...notice, risk: "critical" }), 1_000_000);
  assert.equal(delayToDigest(900_000, { ...notice, expiresAt: 2_599_999 }), 1_000_000);
  assert.equal(delayToDigest(900_000, { ...notice, expiresAt: 2_600_000 }), 1_800_000);
  assert.equal(delayToDigest(null, notice), 1_000_000);
});

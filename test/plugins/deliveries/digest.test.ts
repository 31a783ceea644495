/**
 * Messages about several requests: every notifier shows each of them with its own link.
 * @needs notify-email, notify-slack, notify-webhook
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderMail } from "../../../plugins/notify-email/mail.ts";
import { renderBlocks } from "../../../plugins/notify-slack/blocks.ts";
import { buildWebhookBody } from "../../../plugins/notify-webhook/webhook-body.ts";
import { askedMessage } from "../../support/receiver.ts";

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

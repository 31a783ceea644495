/** Reviewers by webhook: the signature, the addresses that are allowed, and the answers that count. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { createWebhookReviewer } from "../../../plugins/review-webhook/index.ts";
import type { ReviewRequest, ReviewResponse } from "../../../src/plugin.ts";
import { startReceiver, type Receiver } from "../../support/receiver.ts";

const KEY = Buffer.alloc(32, 7);
const SECRET = `whsec_${KEY.toString("base64")}`;
const REQUEST = { format: "assent-review/1", id: "1.2.scan" } as unknown as ReviewRequest;
const TERMS = { secret: SECRET, timeout_seconds: 15, version: "1" };

let receiver: Receiver;
before(async () => {
  receiver = await startReceiver();
});
after(() => receiver.close());

const ask = (url = `http://127.0.0.1:${receiver.port}/review`): Promise<ReviewResponse> =>
  createWebhookReviewer("scan", { ...TERMS, url, allow_private: true }).review(REQUEST, new AbortController().signal);

describe("a reviewer by webhook", () => {
  test("receives a signed request, with the same id for each call about one request", async () => {
    receiver.answer = (_, response) => void response.end('{"answer":"deny","reason":"no"}');
    assert.deepEqual(await ask(), { answer: "deny", reason: "no" });
    const { headers, body } = receiver.received.at(-1) as Receiver["received"][number];
    const { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signature } = headers;
    assert.deepEqual([id, JSON.parse(body)], ["1.2.scan", REQUEST]);
    const mac = createHmac("sha256", KEY)
      .update(`${String(id)}.${String(at)}.${body}`)
      .digest("base64");
    assert.equal(signature, `v1,${mac}`);
  });

  test("fails unless it answers 200, also with a redirect", async () => {
    for (const status of [204, 302, 403, 500]) {
      receiver.answer = (_, response) =>
        void response.writeHead(status, { location: "/approve" }).end('{"answer":"approve"}');
      await assert.rejects(ask(), new RegExp(`responded with status ${status}`));
    }
  });

  test("makes a malformed answer if the body is not one JSON value, is too long, or is incomplete", async () => {
    for (const body of [
      "approve",
      '{"answer":"approve","answer":"deny"}',
      `{"answer":"approve"}${" ".repeat(70_000)}`,
    ]) {
      receiver.answer = (_, response) => void response.end(body);
      assert.equal(await ask(), null);
    }
    receiver.answer = (_, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write('{"answer":"approve"}');
      setImmediate(() => response.destroy());
    };
    assert.equal(await ask(), null);
  });

  test("must be at a public address unless the operator allows others", async () => {
    assert.throws(
      () => createWebhookReviewer("scan", { ...TERMS, url: "https://127.0.0.1/review" }),
      /not a public address/,
    );
    const internal = createWebhookReviewer("scan", { ...TERMS, url: "https://reviewer.example.com/" }, () =>
      Promise.resolve(["10.0.0.7"]),
    );
    await assert.rejects(internal.review(REQUEST, new AbortController().signal), /not a public address/);
  });
});

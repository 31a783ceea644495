/** notify-webhook with real HTTP and HTTPS servers on loopback; the receiver uses the reference library. */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { isPublicAddress } from "../../../src/webhook/address.ts";
import { buildWebhookBody } from "../../../plugins/notify-webhook/webhook-body.ts";
import { createNotifier, readRetryAfter } from "../../../plugins/notify-webhook/index.ts";
import { readSigningSecret, signatureHeaders } from "../../../src/webhook/sign.ts";
import { NotifierError } from "../../../src/contract/notifier.ts";
import {
  askedMessage,
  closedMessage,
  eventMessage,
  makeCertificate,
  startReceiver,
  withoutOpenssl,
  type Receiver,
} from "../../support/receiver.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD_SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const never = new AbortController().signal;
type Options = Parameters<typeof createNotifier>[0][string];

const open = (port: number, more: Partial<Options> = {}): Options => ({
  url: `http://127.0.0.1:${port}/hook?x=1`,
  secret: SECRET,
  allow_private: true,
  ...more,
});
const failure = async (delivery: Promise<unknown> | undefined): Promise<NotifierError> => {
  const error = await Promise.resolve(delivery).then(
    () => assert.fail("it was delivered"),
    (e: unknown) => e,
  );
  assert.ok(error instanceof Error);
  return error as NotifierError;
};

describe("signatures", () => {
  test("match the test vector of Standard Webhooks 1.0.0", () => {
    const key = readSigningSecret(SECRET);
    assert.ok(key !== null);
    const headers = signatureHeaders([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, '{"test": 2432232314}');
    assert.equal(headers["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });

  test("need a secret of whsec_ and the base64 of 24 to 64 bytes", () => {
    const of = (bytes: number): string => `whsec_${Buffer.alloc(bytes, 1).toString("base64")}`;
    assert.deepEqual(
      [of(23), of(24), of(64), of(65), of(32).slice(6), "whsec_not base64 but long enough for one", ""].map(
        (text) => readSigningSecret(text)?.length ?? null,
      ),
      [null, 24, 64, null, null, null, null],
    );
  });
});

test("only public internet addresses count as public, in every notation", () => {
  const open4 = [
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.0.1",
    "172.32.0.1",
    "169.253.1.1",
    "192.167.1.1",
    "223.255.255.255",
  ];
  const open6 = ["2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "64:ff9b::808:808", "64:ff9b::8.8.8.8", "2003::"];
  const closed4 = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
  ];
  const closed6 = [
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:8.8.8.8",
    "::ffff:0:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2001:1ff::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fdff::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "2606:4700:4700::1111%1",
  ];
  for (const address of [...open4, ...open6]) assert.equal(isPublicAddress(address), true, address);
  for (const address of [...closed4, ...closed6, "", "localhost", "0x7f.1", "1.2.3"])
    assert.equal(isPublicAddress(address), false, address);
});

describe("bodies", () => {
  test("a request for approval contains the action and the link; its outcome and feed entries contain no link", () => {
    const asked = JSON.parse(buildWebhookBody(askedMessage("ops")));
    assert.deepEqual(
      [asked.type, asked.timestamp, asked.data.link, asked.data.person, asked.data.channel],
      [
        "approval_requested",
        "2026-01-31T12:00:00.000Z",
        "https://assent.example/approve#apl1_secret.mac",
        "user:anna",
        "finance",
      ],
    );
    assert.deepEqual(
      [asked.data.action.params, asked.data.action.truncated, asked.data.action.request_hash],
      [{ amount: 500, currency: "USD" }, false, "ab".repeat(32)],
    );
    assert.equal(asked.data.action.text, "Parameters:\namount: 500\ncurrency: USD");
    const closed = JSON.parse(buildWebhookBody(closedMessage("ops", null)));
    assert.deepEqual(
      [closed.type, "link" in closed.data, closed.data.action.status, closed.data.action.votes[0].approver],
      ["approval_closed", false, "approved", "user:anna"],
    );
    const event = JSON.parse(buildWebhookBody(eventMessage("ops")));
    assert.deepEqual(event, {
      type: "ledger.decision",
      timestamp: "2026-01-31T12:00:00.000Z",
      data: {
        seq: 7,
        hash: "cd".repeat(32),
        entry: { type: "decision", v: 1, seq: 7, at: "2026-01-31T12:00:00.000Z" },
      },
    });
  });

  test("a value that is too large is replaced by its digest, and the body says so", () => {
    const large = { note: "ä".repeat(150_000) };
    const text = buildWebhookBody(askedMessage("ops", {}, { params: large, context: { a: 1 } }));
    assert.ok(Buffer.byteLength(text) < 262_144);
    const { action } = JSON.parse(text).data;
    assert.deepEqual([action.truncated, action.params, action.context], [true, null, { a: 1 }]);
    assert.match(action.text, /^Parameters:\nnote:\n( {2}\| ä{100}\n){6} {2}… 1,494 more lines\n\nContext:\na: 1$/);
    assert.match(action.params_digest, /^sha256:[0-9a-f]{64}$/);
    const both = JSON.parse(buildWebhookBody(askedMessage("ops", {}, { params: large, context: large }))).data.action;
    assert.deepEqual(
      [both.truncated, both.params, both.context, both.context_digest],
      [true, null, null, both.params_digest],
    );
    const exact = buildWebhookBody(askedMessage("ops"));
    assert.equal(JSON.parse(buildWebhookBody(askedMessage("ops"), exact.length)).data.action.truncated, false);
    assert.equal(
      JSON.parse(buildWebhookBody(askedMessage("ops", {}, { params: { note: "x".repeat(9000) } }), exact.length + 1500))
        .data.action.truncated,
      true,
    );
    assert.throws(
      () => buildWebhookBody(askedMessage("ops"), 200),
      (error) => error instanceof NotifierError && error.permanent,
    );
  });
});

describe("deliveries", () => {
  let receiver: Receiver;
  beforeEach(async () => {
    receiver = await startReceiver();
  });
  afterEach(() => receiver.close());

  test("the reference library verifies messages with the old secret and with the new one", async () => {
    const notifier = createNotifier({
      ops: open(receiver.port, { secret: [SECRET, OLD_SECRET], headers: { Authorization: "Bearer abc" } }),
    });
    const message = askedMessage("ops");
    await notifier.deliver(message, never);
    await notifier.deliver({ ...message, attempt: 2 }, never);
    assert.equal(receiver.received.length, 2);
    for (const { method, path, headers, body } of receiver.received) {
      assert.deepEqual(
        [method, path, headers["content-type"], headers.authorization, headers["webhook-id"], headers.host],
        ["POST", "/hook?x=1", "application/json", "Bearer abc", message.id, `127.0.0.1:${receiver.port}`],
      );
      for (const secret of [SECRET, OLD_SECRET])
        assert.deepEqual(new Webhook(secret).verify(body, headers as Record<string, string>), JSON.parse(body));
      assert.throws(() => new Webhook(SECRET).verify(`${body} `, headers as Record<string, string>));
      assert.throws(() =>
        new Webhook(`whsec_${Buffer.alloc(32, 9).toString("base64")}`).verify(body, headers as Record<string, string>),
      );
    }
  });

  test("410 is permanent; every other status outside 2xx is retried, not before the receiver's Retry-After", async () => {
    const notifier = createNotifier({ ops: open(receiver.port) });
    const cases: [number, Record<string, string>, { permanent: boolean; after: number | null }][] = [
      [410, {}, { permanent: true, after: null }],
      [400, {}, { permanent: false, after: null }],
      [404, {}, { permanent: false, after: null }],
      [429, { "retry-after": "120" }, { permanent: false, after: 120_000 }],
      [503, { "retry-after": "soon" }, { permanent: false, after: null }],
      [500, {}, { permanent: false, after: null }],
    ];
    for (const [status, headers, { permanent, after }] of cases) {
      receiver.answer = (_, response) => void response.writeHead(status, headers).end();
      const error = await failure(notifier.deliver(askedMessage("ops"), never));
      assert.deepEqual(
        [error.message, error.permanent, error.retryAfterMs],
        [`127.0.0.1:${receiver.port} responded with status ${status}`, permanent, after],
      );
    }
    const now = Date.parse("2026-01-31T12:00:00Z");
    assert.deepEqual(
      ["Sat, 31 Jan 2026 12:02:00 GMT", "Sat, 31 Jan 2026 11:00:00 GMT", "7", undefined].map((text) =>
        readRetryAfter(text, now),
      ),
      [120_000, 0, 7_000, null],
    );
  });

  test("a redirect is a failure and is not followed", async () => {
    const other = await startReceiver();
    try {
      receiver.answer = (_, response) =>
        void response.writeHead(307, { location: `http://127.0.0.1:${other.port}/` }).end();
      const error = await failure(createNotifier({ ops: open(receiver.port) }).deliver(askedMessage("ops"), never));
      assert.match(error.message, /responded with status 307, and redirects are not followed/);
      assert.deepEqual([other.connections, error.permanent], [0, false]);
    } finally {
      await other.close();
    }
  });

  test("a receiver that does not respond, or never ends its response, times out", async () => {
    receiver.answer = () => {};
    const notifier = createNotifier({ ops: open(receiver.port, { timeout_seconds: 1 }) });
    assert.match((await failure(notifier.deliver(askedMessage("ops"), never))).message, /did not respond within 1 s/);
    const stop = new AbortController();
    const stopped = failure(notifier.deliver(askedMessage("ops"), stop.signal));
    await receiver.next(() => receiver.received.length === 2);
    stop.abort(new Error("the service is stopping"));
    assert.equal((await stopped).message, "the service is stopping");
    receiver.answer = (_, response) => void response.writeHead(200).write("begun");
    await notifier.deliver(askedMessage("ops"), never);
  });

  test("an endless response is cut off", async () => {
    let sent = 0;
    const ended = new Promise<void>((resolve) => {
      receiver.answer = (_, response: ServerResponse) => {
        response.on("close", resolve);
        const pour = (): void => {
          do sent += 65_536;
          while (!response.destroyed && response.write("x".repeat(65_536)));
        };
        response.on("drain", pour);
        pour();
      };
    });
    await createNotifier({ ops: open(receiver.port) }).deliver(askedMessage("ops"), never);
    await ended;
    assert.ok(sent < 50_000_000, String(sent));
  });

  test("a name that resolves to a private address, among others, is not connected to", async () => {
    const url = `https://localhost:${receiver.port}/`;
    const real = await failure(createNotifier({ ops: { url, secret: SECRET } }).deliver(askedMessage("ops"), never));
    assert.match(real.message, /^localhost resolves to (127\.0\.0\.1|::1), which is not a public address/);
    for (const addresses of [
      ["127.0.0.1"],
      ["1.1.1.1", "127.0.0.1"],
      ["2606:4700::1", "::ffff:127.0.0.1"],
      ["fe80::1"],
      ["nonsense"],
    ]) {
      const notifier = createNotifier(
        { ops: { url: `https://hooks.example.com:${receiver.port}/`, secret: SECRET } },
        () => Promise.resolve(addresses),
      );
      assert.match(
        (await failure(notifier.deliver(askedMessage("ops"), never))).message,
        /which is not a public address/,
      );
    }
    assert.equal(receiver.connections, 0);
  });

  test("the connection goes to the address that was checked, even if the name resolves differently a moment later", async () => {
    const asked: string[] = [];
    const notifier = createNotifier(
      { ops: open(receiver.port, { url: `http://rebind.example.com:${receiver.port}/` }) },
      (name) => {
        asked.push(name);
        return Promise.resolve(asked.length === 1 ? ["127.0.0.1"] : ["192.0.2.1"]);
      },
    );
    await notifier.deliver(askedMessage("ops"), never);
    assert.deepEqual(
      [asked, receiver.received[0]?.headers.host],
      [["rebind.example.com"], `rebind.example.com:${receiver.port}`],
    );
  });

  test("the next address is tried if one cannot be reached", async () => {
    const closed = await startReceiver();
    await closed.close();
    const notifier = createNotifier(
      { ops: open(receiver.port, { url: `http://two.example.com:${receiver.port}/` }) },
      () => Promise.resolve(["127.0.0.2", "127.0.0.1"]),
    );
    await notifier.deliver(askedMessage("ops"), never);
    assert.equal(receiver.received.length, 1);
    const none = createNotifier({ ops: open(closed.port) });
    assert.match((await failure(none.deliver(askedMessage("ops"), never))).message, /ECONNREFUSED/);
  });
});

test(
  "the certificate must match the name, although the connection goes to an address",
  { skip: withoutOpenssl() },
  async () => {
    const own = makeCertificate("hooks.example.com");
    const receiver = await startReceiver(own);
    try {
      const to = (host: string, more: Partial<Options> = {}) =>
        createNotifier(
          {
            ops: open(receiver.port, { url: `https://${host}:${receiver.port}/`, tls_ca_file: own.certFile, ...more }),
          },
          () => Promise.resolve(["127.0.0.1"]),
        ).deliver(askedMessage("ops"), never);
      await to("hooks.example.com");
      assert.equal(receiver.received[0]?.headers.host, `hooks.example.com:${receiver.port}`);
      assert.match((await failure(to("other.example.com"))).message, /certificate|altnames/i);
      const { tls_ca_file: _, ...unknown } = open(receiver.port, {
        url: `https://hooks.example.com:${receiver.port}/`,
      });
      const untrusted = createNotifier({ ops: unknown }, () => Promise.resolve(["127.0.0.1"]));
      assert.match((await failure(untrusted.deliver(askedMessage("ops"), never))).message, /self.signed/i);
      assert.equal(receiver.received.length, 1);
    } finally {
      await receiver.close();
    }
  },
);

test("an invalid destination aborts startup with a reason", () => {
  const wrong: [Partial<Options>, RegExp][] = [
    [{ url: "ftp://example.com" }, /destination "ops": its url must begin with https/],
    [{ url: "nonsense" }, /must begin with https/],
    [{ url: "http://example.com" }, /http:\/\/ is only allowed for private addresses/],
    [{ url: "https://user:secret@example.com" }, /set the header Authorization/],
    [{ url: "https://10.0.0.1/" }, /10\.0\.0\.1 is not a public address/],
    [{ url: "https://0x7f.1/" }, /127\.0\.0\.1 is not a public address/],
    [{ url: "https://[::ffff:127.0.0.1]/" }, /is not a public address/],
    [{ secret: "short" }, /whsec_/],
    [{ secret: [SECRET, "whsec_"] }, /whsec_/],
    [{ headers: { "webhook-id": "x" } }, /set by the protocol/],
    [{ headers: { Host: "x" } }, /set by the protocol/],
    [{ headers: { "x y": "x" } }, /invalid name or value/],
    [{ headers: { x: "a\r\nb: c" } }, /invalid name or value/],
    [{ tls_ca_file: "/nonexistent/ca.pem" }, /ENOENT/],
  ];
  for (const [change, words] of wrong)
    assert.throws(() => createNotifier({ ops: { url: "https://example.com/", secret: SECRET, ...change } }), words);
  const notifier = createNotifier({
    ops: { url: "https://example.com/", secret: SECRET },
    audit: { url: "https://example.com/", secret: SECRET, events: ["decision"], agents: ["a-*"] },
    all: { url: "https://example.com/", secret: SECRET, events: ["*"] },
  });
  assert.deepEqual(
    [notifier.check?.("ops", null), notifier.check?.("opps", null)],
    [null, 'notify-webhook has no destination "opps"; did you mean "ops"?'],
  );
  assert.deepEqual(notifier.feeds, [{ to: "audit", types: ["decision"], agents: ["a-*"] }, { to: "all" }]);
});

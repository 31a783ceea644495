/** notify-email with a real SMTP server on loopback, with and without TLS. */
import assert from "node:assert/strict";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, beforeEach, describe, test } from "node:test";
import notifyEmail, { createNotifier, type EmailOptions } from "../../../plugins/notify-email/index.ts";
import type { DeliveryResult, Message, Notifier } from "../../../src/contract/notifier.ts";
import type { NotifierError, Plugin } from "../../../src/plugin.ts";
import { voteByLink } from "../../support/link-vote.ts";
import { header, startMailServer, type MailServer, type ReceivedMail } from "../../support/mail.ts";
import {
  askedMessage,
  closedMessage,
  eventMessage,
  HOSTILE,
  ASKING,
  HOSTILE_ACTION,
  makeCertificate,
  withoutOpenssl,
} from "../../support/receiver.ts";
import { ASKED, startService, type Service, person } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const never = new AbortController().signal;
const HOUR = 3_600_000;
let mail: MailServer;
let notifier: Notifier;

const options = (more: EmailOptions = {}): EmailOptions => ({
  host: "127.0.0.1",
  port: mail.port,
  from: "Assent <assent@example.com>",
  ...more,
});
const deliver = async (message: Message, by = notifier): Promise<DeliveryResult> =>
  (await by.deliver(message, never)) as DeliveryResult;
const failure = async (message: Message, by = notifier): Promise<NotifierError> => {
  const error = await deliver(message, by).then(
    () => assert.fail("it was delivered"),
    (e: unknown) => e,
  );
  assert.ok(error instanceof Error);
  return error as NotifierError;
};
const newest = (): ReceivedMail => mail.mails.at(-1) as ReceivedMail;
const linkIn = (text: string): string => /https:\/\/assent\.example\/approve#\S+/.exec(text)?.[0] as string;

beforeEach(async () => {
  mail = await startMailServer();
  notifier = await createNotifier(options());
});
afterEach(() => mail.close());

describe("mails", () => {
  test("a request contains the action as text and HTML, and has a stable id", async () => {
    const message = askedMessage("anna@example.com");
    const { reference } = await deliver(message);
    await deliver({ ...message, attempt: 2 });
    const [first, second] = mail.mails as [ReceivedMail, ReceivedMail];
    assert.equal(reference, `<${message.id}@example.com>`);
    for (const { headers } of [first, second])
      assert.deepEqual(
        ["message-id", "subject", "from", "to", "auto-submitted"].map((name) => header(headers, name)),
        [
          reference,
          "[Assent] approval needed: stripe refund (high risk)",
          "Assent <assent@example.com>",
          "anna@example.com",
          "auto-generated",
        ],
      );
    assert.deepEqual([first.from, first.to], ["assent@example.com", ["anna@example.com"]]);
    for (const words of [
      "support-bot",
      "stripe refund",
      "refunds above 100 need an approver",
      "payments / other refunds",
      "2026-01-31 20:00:00 UTC",
      "votes as anna",
    ]) {
      assert.ok(first.text.includes(words), words);
      assert.ok(first.html.includes(words), words);
    }
    assert.equal(linkIn(first.text), message.link);
    assert.ok(first.html.includes(`href="${message.link}"`));
    assert.match(first.text, /Parameters:\n {2}amount: 500\n {2}currency: USD\n/);
    await deliver(askedMessage("team@example.com", { person: null }));
    assert.ok(newest().text.includes("asks for your key") && newest().html.includes("asks for your key"));
  });

  test("the outcome and the reminder are in its thread; expired is not called denied", async () => {
    const { reference = null } = await deliver(askedMessage("anna@example.com"));
    const thread = (): (string | undefined)[] =>
      ["in-reply-to", "references"].map((name) => header(newest().headers, name));
    await deliver(
      askedMessage("anna@example.com", {
        id: "0190a0a0-0000-7000-8000-0000000000ab",
        kind: "approval_reminder",
        reference,
      }),
    );
    assert.deepEqual(
      [thread(), header(newest().headers, "subject")],
      [[reference, reference], "[Assent] reminder, approval needed: stripe refund (high risk)"],
    );
    const ends: [Parameters<typeof closedMessage>[2], string, RegExp][] = [
      [{}, "[Assent] approved: stripe refund", /Approved by anna at 2026-01-31 13:00:00 UTC\./],
      [{ status: "succeeded" }, "[Assent] approved: stripe refund", /Approved by anna/],
      [
        {
          status: "denied",
          votes: [
            {
              approver: "user:ben",
              approve: false,
              on_behalf_of: null,
              break_glass: false,
              reason: null,
              at: "2026-01-31T13:00:00.000Z",
            },
          ],
        },
        "[Assent] denied: stripe refund",
        /Denied by ben/,
      ],
      [
        { status: "expired", votes: [] },
        "[Assent] expired: stripe refund",
        /The request expired at 2026-01-31 20:00:00 UTC\. No one denied it/,
      ],
      [{ status: "cancelled", votes: [] }, "[Assent] cancelled: stripe refund", /The request was cancelled/],
    ];
    for (const [about, subject, words] of ends) {
      await deliver(closedMessage("anna@example.com", reference, about));
      assert.deepEqual([thread(), header(newest().headers, "subject")], [[reference, reference], subject]);
      assert.match(newest().text, words);
      assert.match(newest().html, words);
      assert.ok(!newest().raw.includes("approve#"));
    }
    for (const odd of [null, "x", "<a@b>\r\nBcc: eve@example.com"]) {
      await deliver(closedMessage("anna@example.com", odd));
      assert.deepEqual(thread(), [undefined, undefined]);
    }
  });

  test("text that an agent wrote cannot add a header, markup or a line", async () => {
    await deliver(
      askedMessage(
        "anna@example.com",
        {},
        {
          ...HOSTILE,
          risk_level: "high\r\nBcc: eve@example.com",
          reason: "</bdi></table><script>alert(1)</script>\r\n\r\nBcc: eve@example.com",
        },
      ),
    );
    const { headers, to, text, html } = newest();
    assert.deepEqual(to, ["anna@example.com"]);
    assert.deepEqual(headers.map(([name]) => name).sort(), [
      "auto-submitted",
      "content-type",
      "date",
      "from",
      "message-id",
      "mime-version",
      "subject",
      "to",
    ]);
    const subject = header(headers, "subject") as string;
    assert.ok(
      subject.startsWith(
        "[Assent] approval needed: stripe charge & <img src=x onerror=alert(1)> [U+2067]Bcc: eve@example.com (high[U+000D][U+000A]Bcc:",
      ),
      subject,
    );
    for (const content of [text, html]) assert.doesNotMatch(content, /[\u202e\u200b\u2067\r]/);
    assert.doesNotMatch(html, /<(script|img|b>|key)/i);
    assert.deepEqual([...new Set([...html.matchAll(/<([a-z0-9]+)/g)].map(([, tag]) => tag))].sort(), [
      "a",
      "bdi",
      "body",
      "h1",
      "h2",
      "head",
      "html",
      "meta",
      "p",
      "pre",
      "table",
      "td",
      "th",
      "tr",
    ]);
    assert.ok(text.includes("bot <script>alert(1)</script> <!channel> @channel [U+202E]gnp.exe"));
    assert.ok(
      text.includes(
        [
          "Parameters:",
          "  amount: 500",
          "  note:",
          "    | ```[U+000D]",
          "    | Bcc: eve@example.com[U+000D]",
          "    | [U+000D]",
          "    | <b>approved</b> <!everyone> <@U0EVE0000> [U+202E][U+200B]",
          "  <key>: 2 items",
          "    1. &amp;",
          "    2. *bold*",
        ].join("\n"),
      ),
    );
    assert.doesNotMatch(text, /^Bcc:/m);
  });

  test("a long request is folded, says so, and shows the policy's parameters first", async () => {
    const params = {
      note: "line\n".repeat(60),
      list: Array.from({ length: 30_000 }, () => 1),
      to: ["ada@example.com", "eve@exаmple.net"],
      amount: 5000,
    };
    await deliver(askedMessage("anna@example.com", {}, { params, context: { also: "this" } }));
    assert.ok(newest().raw.length < 100_000);
    assert.match(newest().text, /Parameters:\n {2}amount: 5000\n {2}note:\n/);
    for (const content of [newest().text, newest().html])
      for (const words of [
        "… 55 more lines",
        "30,000 items",
        "1. ada@example.com",
        "2. eve@exаmple.net [Cyrillic а U+0430]",
        "Some lines are collapsed. The approval page shows all of them.",
        "also: this",
      ])
        assert.ok(content.includes(words), words);
  });
});

describe("failures", () => {
  test("a 5xx reply to the mail is permanent; a 4xx reply, a rejected login and a lost connection are retried", async () => {
    const cases: [MailServer["plans"][number], boolean][] = [
      [{ step: "to", code: 550, message: "no such mailbox" }, true],
      [{ step: "from", code: 553, message: "sender refused" }, true],
      [{ step: "data", code: 554, message: "content refused" }, true],
      [{ step: "to", code: 450, message: "mailbox busy" }, false],
      [{ step: "data", code: 451, message: "try later" }, false],
    ];
    for (const [plan, permanent] of cases) {
      mail.plans.push(plan);
      const error = await failure(askedMessage("anna@example.com"));
      assert.match(error.message, new RegExp(plan.message));
      assert.equal(error.permanent, permanent, plan.message);
    }
    const wrong = await failure(
      askedMessage("anna@example.com"),
      await createNotifier(options({ user: "assent", password: "wrong-password" })),
    );
    assert.deepEqual([wrong.permanent, wrong.message.includes("wrong-password")], [false, false]);
    assert.equal((await failure(eventMessage("anna@example.com"))).permanent, true);
    const { port } = mail;
    await mail.close();
    const gone = await failure(askedMessage("anna@example.com"));
    assert.deepEqual([gone.permanent, /ECONNREFUSED/.test(gone.message), port > 0], [false, true, true]);
    assert.equal(mail.mails.length, 0);
    mail = await startMailServer();
  });

  // Below the notifier's own timeouts, which would end it too.
  test("an attempt and its connection end when the signal aborts", { timeout: 15_000 }, async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket.on("error", () => {})));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    try {
      const stop = new AbortController();
      const by = await createNotifier(options({ port: (silent.address() as AddressInfo).port }));
      const connected = new Promise<Socket>((resolve) => silent.once("connection", resolve));
      const stopped = assert.rejects(
        Promise.resolve(by.deliver(askedMessage("anna@example.com"), stop.signal)),
        /the service is stopping/,
      );
      const closed = new Promise((resolve) => void connected.then((socket) => socket.resume().once("close", resolve)));
      await connected;
      stop.abort(new Error("the service is stopping"));
      await stopped;
      await closed;
    } finally {
      for (const socket of sockets) socket.destroy();
      silent.close();
    }
  });

  test("the connection is closed after each mail", async () => {
    await deliver(askedMessage("anna@example.com"));
    await until("its connection is closed", () => mail.server.connections.size === 0);
  });
});

describe("TLS", { skip: withoutOpenssl() }, () => {
  const own =
    withoutOpenssl() === false ? makeCertificate("localhost") : { key: "", cert: "", keyFile: "", certFile: "" };
  const other = withoutOpenssl() === false ? makeCertificate("mail.example.com") : own;

  async function against(
    server: Parameters<typeof startMailServer>[0],
    more: EmailOptions,
    work: (by: Notifier) => Promise<void>,
  ): Promise<void> {
    await mail.close();
    mail = await startMailServer(server);
    await work(await createNotifier(options({ host: "localhost", ...more })));
  }

  test("STARTTLS works, with a login after it", () =>
    against(
      { hideSTARTTLS: false, key: own.key, cert: own.cert, authOptional: false },
      { tls_ca_file: own.certFile, user: "assent", password: "right" },
      async (by) => {
        await deliver(askedMessage("anna@example.com"), by);
        assert.deepEqual([newest().secure, newest().user], [true, "assent"]);
      },
    ));

  test("TLS from the start works", () =>
    against({ secure: true, key: own.key, cert: own.cert }, { tls_ca_file: own.certFile, secure: true }, async (by) => {
      await deliver(askedMessage("anna@example.com"), by);
      assert.equal(newest().secure, true);
    }));

  test("a certificate with a different name, or of an unknown issuer, is rejected before anything is sent", async () => {
    for (const [certificate, ca] of [
      [other, other.certFile],
      [own, undefined],
    ] as const) {
      for (const secure of [false, true]) {
        await against(
          { secure, hideSTARTTLS: false, key: certificate.key, cert: certificate.cert },
          { secure, ...(ca === undefined ? {} : { tls_ca_file: ca }) },
          async (by) => {
            const error = await failure(askedMessage("anna@example.com"), by);
            assert.deepEqual([error.permanent, mail.mails.length], [false, 0]);
            assert.match(error.message, /certificate|altnames/i);
          },
        );
      }
    }
  });

  test("a server without STARTTLS on another machine is refused, unless plaintext is allowed", async () => {
    // Another loopback address represents another machine.
    const by = (more: EmailOptions): Promise<Notifier> => createNotifier(options({ host: "127.0.0.2", ...more }));
    await mail.close();
    mail = await startMailServer({ disabledCommands: ["STARTTLS"] });
    await new Promise((resolve) => mail.server.server.close(resolve));
    await new Promise<void>((resolve) => void mail.server.server.listen(mail.port, "0.0.0.0", resolve));
    assert.match((await failure(askedMessage("anna@example.com"), await by({}))).message, /STARTTLS/i);
    assert.equal(mail.mails.length, 0);
    await deliver(askedMessage("anna@example.com"), await by({ allow_plaintext: true }));
    assert.equal(newest().secure, false);
  });
});

test("options and addresses are validated at startup", async () => {
  for (const to of ["anna@example.com", "o'neil+tag@sub.example.co", "jörg@bücher.example"])
    assert.equal(notifier.check?.(to, "anna"), null, to);
  for (const to of [
    "anna",
    "a@b@c",
    "Anna <a@example.com>",
    "a@example.com, b@example.com",
    "a@example.com\r\nBcc: b@example.com",
    "a b@example.com",
    "\u202ea@example.com",
    "@example.com",
    "a@",
  ])
    assert.match(notifier.check?.(to, null) ?? "", /is not a mail address/, to);
  const wrong: [EmailOptions, RegExp][] = [
    [{ host: "mail.example.com" }, /"from" is missing/],
    [{ from: "a@example.com" }, /"host" is missing/],
    [options({ user: "a" }), /"password" is missing/],
    [options({ from: "nobody" }), /"from" must be an address/],
    [options({ from: "A <a@example.com>, B <b@example.com>" }), /"from" must be an address/],
    [options({ reply_to: "a@example.com\nBcc: b@example.com" }), /"reply_to" must be an address/],
    [options({ tls_ca_file: "/nonexistent/ca.pem" }), /ENOENT/],
  ];
  for (const [given, words] of wrong) await assert.rejects(createNotifier(given), words);
});

describe("in a whole service", () => {
  let service: Service;
  const plugin = (given: unknown): { plugin: Plugin; options: unknown; origin: string } => ({
    plugin: notifyEmail as Plugin,
    options: given,
    origin: "notify-email",
  });
  const start = async (): Promise<void> => {
    service = await startService({
      policy: ASKING,
      plugins: [plugin(options({ reply_to: "ops@example.com" }))],
      change(config) {
        config.server.public_url = "https://assent.example";
        config.channels = {
          finance: { notifier: "notify-email", people: [{ owner: person("anna"), to: "anna@example.com" }] },
        };
      },
    });
  };
  const about = (words: string): Promise<ReceivedMail> =>
    mail.next(({ headers }) => header(headers, "subject")?.startsWith(`[Assent] ${words}`) ?? false);

  test("a hostile request is mailed and decided by its link, and the outcome is in the thread", async () => {
    await start();
    try {
      const submitted = await service.call("POST", "/v1/actions", { body: HOSTILE_ACTION });
      assert.equal(submitted.status, 202, JSON.stringify(submitted.body));
      const asked = await about("approval needed");
      assert.equal(header(asked.headers, "reply-to"), "ops@example.com");
      const token = linkIn(asked.text).split("#")[1] as string;
      const voted = await voteByLink(service, token, false, "<b>no</b>\r\nBcc: eve@example.com");
      assert.equal(voted.status, 200, JSON.stringify(voted.body));
      const closed = await about("denied");
      assert.equal(header(closed.headers, "in-reply-to"), header(asked.headers, "message-id"));
      assert.match(closed.text, /Denied by anna at .* \(“<b>no<\/b>\[U\+000D\]\[U\+000A\]Bcc: eve@example\.com”\)\./);
      assert.ok(closed.html.includes("&lt;b&gt;no&lt;/b&gt;"));
    } finally {
      await service.close();
    }
  });

  test("a timed-out request is reported as expired", async () => {
    await start();
    try {
      await service.call("POST", "/v1/actions", { body: ASKED });
      const token = linkIn((await about("approval needed")).text).split("#")[1] as string;
      service.clock.now += 9 * HOUR;
      const late = await voteByLink(service, token, true);
      assert.equal(late.status, 410);
      const expired = await about("expired");
      assert.match(expired.text, /The request expired at .* No one denied it/);
    } finally {
      await service.close();
    }
  });

  test("without options there is no notifier; invalid options abort startup", async () => {
    const idle = await startService({ plugins: [plugin({})] });
    await idle.close();
    await assert.rejects(
      startService({ plugins: [plugin({ host: "mail.example.com" })] }),
      /plugin "notify-email": setup failed: the option "from" is missing/,
    );
    await assert.rejects(startService({ plugins: [plugin({ hots: "mail.example.com" })] }), /did you mean "host"/);
    await assert.rejects(
      startService({
        plugins: [plugin(options())],
        change: (config) =>
          void (config.channels = {
            finance: { notifier: "notify-email", people: [{ owner: person("anna"), to: "anna" }] },
          }),
      }),
      /channels\/finance: "anna" is not a mail address/,
    );
  });
});

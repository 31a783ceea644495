/** notify-telegram with a server that rejects what Telegram rejects. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import notifyTelegram, { createNotifier } from "../../../plugins/notify-telegram/index.ts";
import type { DeliveryResult, Message } from "../../../src/contract/notifier.ts";
import type { NotifierError, Plugin } from "../../../src/plugin.ts";
import {
  ASKING,
  askedMessage,
  closedMessage,
  eventMessage,
  HOSTILE,
  HOSTILE_ACTION,
  type Receiver,
  startReceiver,
} from "../../support/receiver.ts";
import { type Answer, ASKED, person, type Service, startService } from "../../support/service.ts";
import { eventually } from "../../support/wait.ts";

const never = new AbortController().signal;
const TOKEN = `123456:${"A".repeat(35)}`;
const SECRET = "a-secret-token-of-this-webhook";
const ANNA = "700000001";

interface Sent {
  method: string;
  body: any;
}

let server: Receiver;
let sent: Sent[];
let fail: { status: number; body: string; headers?: Record<string, string> } | null;
before(async () => {
  server = await startReceiver();
});
after(() => server.close());
beforeEach(() => {
  sent = [];
  fail = null;
  server.answer = ({ path, body: text }, response) => {
    const reply = (status: number, value: object): void => void response.writeHead(status).end(JSON.stringify(value));
    const body = JSON.parse(text);
    const method = path.replace(`/bot${TOKEN}/`, "");
    if (method === "getMe" && fail === null) return reply(200, { ok: true, result: { id: 123456, is_bot: true } });
    if (method.startsWith("/bot")) return reply(401, { ok: false, error_code: 401, description: "Unauthorized" });
    if (fail !== null) return void response.writeHead(fail.status, fail.headers).end(fail.body);
    const data = (body.reply_markup?.inline_keyboard ?? []).flat().map((one: any) => one.callback_data ?? "x");
    const isValid =
      (body.text ?? "").length <= 4096 && data.every((one: string) => Buffer.byteLength(one) <= 64 && one.length > 0);
    if (!isValid) return reply(400, { ok: false, error_code: 400, description: "Bad Request" });
    sent.push({ method, body });
    reply(200, { ok: true, result: { message_id: sent.length, chat: { id: Number(body.chat_id) } } });
  };
});

const options = (more: object = {}) => ({ token: TOKEN, api_url: `http://127.0.0.1:${server.port}`, ...more });
const deliver = async (message: Message, more: object = {}): Promise<DeliveryResult> =>
  (await createNotifier(options(more)).deliver(message, never)) as DeliveryResult;
const newest = (): Sent => sent.at(-1) as Sent;
const buttonsOf = ({ body }: Sent): { text: string; url?: string; callback_data?: string }[] =>
  body.reply_markup.inline_keyboard.flat();
/** The text of a message as Telegram displays it, without the code. */
const outsideCode = (html: string): string =>
  html.replaceAll(/<(code|pre)>[^<]*<\/\1>/g, "").replaceAll(/<\/?(b|blockquote)>/g, "");

describe("messages", () => {
  test("a request has its facts and a button to the page; the outcome replaces it, and a reminder is a reply", async () => {
    const { reference } = await deliver(askedMessage(ANNA));
    assert.equal(reference, `${ANNA}:1`);
    const { text, parse_mode, link_preview_options } = newest().body;
    assert.deepEqual([parse_mode, link_preview_options], ["HTML", { is_disabled: true }]);
    for (const part of [
      "<code>Approval needed: stripe refund (high risk)</code>",
      "<b>Agent</b> <code>support-bot</code>",
    ])
      assert.ok(text.includes(part), text);
    assert.deepEqual(buttonsOf(newest()), [
      { text: "Open the approval page", url: "https://assent.example/approve#apl1_secret.mac" },
    ]);
    const about = { kind: "approval_reminder", reference: `${ANNA}:1` } as const;
    await deliver(askedMessage(ANNA, about));
    assert.deepEqual([newest().method, newest().body.reply_parameters.message_id], ["sendMessage", 1]);
    await deliver(closedMessage(ANNA, `${ANNA}:1`));
    assert.deepEqual([newest().method, newest().body.message_id], ["editMessageText", 1]);
    assert.match(newest().body.text, /Approved by anna/);
    assert.deepEqual(buttonsOf(newest()), []);
  });

  test("text that an agent wrote is escaped, and only in code, in which Telegram recognises nothing", async () => {
    await deliver(
      askedMessage(ANNA, {}, { ...HOSTILE, params: { ...HOSTILE.params, at: "@everyone /start evil.example" } }),
    );
    const { text } = newest().body;
    assert.ok(!/[\u200b\u202e\u2067]/.test(text), text);
    assert.ok(!/[@/<>]|evil|script/.test(outsideCode(text)), outsideCode(text));
  });

  test("a request that is too long is a message that says so and keeps the button", async () => {
    const params = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`<${i}`, "&".repeat(2000)]));
    await deliver(askedMessage(ANNA, {}, { params }));
    assert.match(newest().body.text, /too long for this message/);
    assert.equal(buttonsOf(newest()).length, 1);
  });

  test("errors are retried unless the chat or the bot must change, and contain no token", async () => {
    const limit = JSON.stringify({ ok: false, description: "Too Many Requests", parameters: { retry_after: 9 } });
    for (const [status, body, permanent, retryAfterMs] of [
      [429, limit, false, 9000],
      [429, "<html>", false, 4000],
      [502, "<html>", false, 4000],
      [302, "", false, 4000],
      [200, "<html>", false, null],
      [403, '{"ok":false,"description":"Forbidden: bot was blocked by the user"}', true, 4000],
    ] as const) {
      fail = { status, body, headers: { "retry-after": "4", location: "http://127.0.0.1/elsewhere" } };
      await assert.rejects(deliver(askedMessage(ANNA)), (error: NotifierError) => {
        assert.deepEqual([error.permanent, error.retryAfterMs], [permanent, retryAfterMs], String(status));
        return !error.message.includes(TOKEN);
      });
    }
    await assert.rejects(deliver(eventMessage(ANNA)), /no feeds/);
  });

  test("the token is verified without a message, and an error has no token", async () => {
    await createNotifier(options()).verify?.(never);
    assert.deepEqual(sent, []);
    const other = createNotifier(options({ token: `654321:${"B".repeat(35)}` }));
    await assert.rejects(other.verify?.(never) ?? Promise.resolve(), {
      message: "Telegram responded to getMe with 401: Unauthorized",
    });
  });

  test("a deleted message is sent again, and a group cannot get a personal link", async () => {
    fail = { status: 400, body: '{"ok":false,"description":"Bad Request: message is not modified"}' };
    assert.deepEqual(await deliver(closedMessage(ANNA, `${ANNA}:1`)), {});
    const { check } = createNotifier(options());
    assert.equal(check?.(ANNA, "anna"), null);
    assert.equal(check?.("-100123", null), null);
    assert.match(check?.("-100123", "anna") ?? "", /several people read -100123/);
    assert.match(check?.("anna", null) ?? "", /not the id of a Telegram chat/);
    assert.throws(() => createNotifier({ token: "x" }), /token of a bot/);
  });
});

describe("votes", () => {
  let service: Service;
  const start = async (policy = ASKING): Promise<{ owner: string; to: string }> => {
    const anna = { owner: person("anna"), to: ANNA };
    service = await startService({
      policy,
      plugins: [
        {
          plugin: notifyTelegram as unknown as Plugin,
          options: options({ secret_token: SECRET }),
          origin: "notify-telegram",
        },
      ],
      change(config) {
        config.server.public_url = "https://assent.example";
        config.channels = { finance: { notifier: "notify-telegram", people: [anna], places: [{ to: "-1001" }] } };
      },
    });
    return anna;
  };
  const message = (chat: string, words: string): Promise<Sent> =>
    eventually(
      () => sent.find(({ body }) => String(body.chat_id) === chat && body.text?.includes(words)),
      () => JSON.stringify(sent),
    );
  const update = (value: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    service.call("POST", "/telegram/updates", {
      key: null,
      raw: JSON.stringify(value),
      headers: { "content-type": "application/json", "x-telegram-bot-api-secret-token": SECRET, ...headers },
    });
  /** Sends what Telegram sends when a person presses a button. */
  const press = (posted: Sent, index: number, from = ANNA, headers: Record<string, string> = {}): Promise<Answer> =>
    update(
      {
        update_id: 1,
        callback_query: {
          id: "q1",
          from: { id: Number(from) },
          data: buttonsOf(posted)[index]?.callback_data,
          message: {
            message_id: 1,
            chat: { id: Number(posted.body.chat_id), type: "private" },
            reply_markup: posted.body.reply_markup,
          },
        },
      },
      headers,
    );
  const statusOf = async (id: string): Promise<string> =>
    (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body.status;
  const notice = (): string => sent.filter(({ method }) => method === "answerCallbackQuery").at(-1)?.body.text ?? "";

  test("a person approves with two buttons, and the second votes on what the first displayed", async () => {
    await start();
    try {
      const { id } = (await service.call("POST", "/v1/actions", { body: HOSTILE_ACTION })).body;
      const asked = await message(ANNA, "Approval needed");
      assert.equal(buttonsOf(await message("-1001", "Approval needed")).length, 1, "a place has no vote buttons");
      assert.equal((await press(asked, 0)).status, 200);
      const form = await message(ANNA, "Confirm that you approve");
      assert.match(form.body.text, /amount: 500/);
      assert.equal(await statusOf(id), "pending_approval");
      await service.restart();
      assert.equal((await press(form, 0)).status, 200);
      assert.equal(await statusOf(id), "approved");
      assert.match(notice(), /Your vote is recorded\. The request is approved\./);
      const { approvals } = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
      assert.equal(approvals[0].approver, person("anna"));
      await press(form, 0);
      assert.match(notice(), /no longer pending/, "a replayed update votes no second time");
      fail = { status: 400, body: '{"ok":false,"description":"Bad Request: query is too old"}' };
      assert.equal((await press(form, 0)).status, 200, "Telegram would repeat an update that fails");
    } finally {
      await service.close();
    }
  });

  test("only Telegram, and only the person to whom the message was sent, can vote", async () => {
    const anna = await start();
    try {
      const { id } = (await service.call("POST", "/v1/actions", { body: ASKED })).body;
      const asked = await message(ANNA, "Approval needed");
      await press(asked, 0);
      const form = await message(ANNA, "Confirm that you approve");
      for (const secret of ["", "x", SECRET.slice(1), `${SECRET}x`])
        assert.equal((await press(form, 0, ANNA, { "x-telegram-bot-api-secret-token": secret })).status, 401);
      await press(form, 0, "700000002");
      assert.match(notice(), /sent to another person/);
      const forged = structuredClone(form);
      const [approve] = buttonsOf(asked);
      // The button of another step, of the other answer, and with another digest.
      for (const data of [
        "",
        "x",
        approve?.callback_data?.replace(/^oa/, "va"),
        approve?.callback_data?.replace(/^oa/, "od"),
      ]) {
        forged.body.reply_markup.inline_keyboard[0][0].callback_data = data;
        await press(forged, 0);
      }
      for (const value of [{}, { message: { text: "/start" } }]) assert.equal((await update(value)).status, 200);
      for (const value of [null, 7]) assert.equal((await update(value)).status, 400);
      assert.equal(await statusOf(id), "pending_approval");
      anna.to = "700000009";
      await service.restart();
      await press(form, 0);
      assert.match(notice(), /sent to an earlier address/);
      assert.equal(await statusOf(id), "pending_approval");
    } finally {
      await service.close();
    }
  });

  test("a signed vote and a request that is too long lead to the approval page", async () => {
    await start(ASKING.replace("expires_in: 8h", "expires_in: 8h, signature: passkey"));
    try {
      await service.call("POST", "/v1/actions", { body: ASKED });
      await press(await message(ANNA, "Approval needed"), 0);
      assert.match(notice(), /signed with a passkey/);
    } finally {
      await service.close();
    }
    sent = [];
    await start();
    try {
      const params = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`key${i}`, "x".repeat(200)]));
      const { id } = (await service.call("POST", "/v1/actions", { body: { ...ASKED, params } })).body;
      await press(await message(ANNA, "too long for this message"), 0);
      assert.match(notice(), /too long for Telegram/);
      assert.equal(await statusOf(id), "pending_approval");
    } finally {
      await service.close();
    }
  });
});

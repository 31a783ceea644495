/** notify-discord with a server that rejects what Discord rejects. */
import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { after, before, beforeEach, describe, test } from "node:test";
import notifyDiscord, { createNotifier } from "../../../plugins/notify-discord/index.ts";
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
const TOKEN = `${"M".repeat(24)}.${"G".repeat(6)}.${"x".repeat(38)}`;
const [ANNA, PLACE, DM] = ["700000000000000001", "800000000000000001", "900000000000000001"];
const keys = generateKeyPairSync("ed25519");
const PUBLIC_KEY = keys.publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");

interface Sent {
  method: string;
  path: string;
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
  server.answer = ({ method, path, body: text, headers }, response) => {
    if (path === "/users/@me" && headers.authorization === `Bot ${TOKEN}`)
      return void response.writeHead(200).end(JSON.stringify({ id: "900000000000000001", bot: true }));
    if (headers.authorization !== `Bot ${TOKEN}`)
      return void response.writeHead(401).end('{"message":"401: Unauthorized"}');
    const body = JSON.parse(text);
    if (fail !== null) return void response.writeHead(fail.status, fail.headers).end(fail.body);
    const [row, ...more] = body.components ?? [];
    const isValid =
      headers.authorization === `Bot ${TOKEN}` &&
      (body.content ?? "").length <= 2000 &&
      (body.embeds?.[0]?.description ?? "").length <= 4096 &&
      [row, ...more].every((one) => one === undefined || one.components.length <= 5) &&
      (body.nonce ?? "").length <= 25;
    if (!isValid) return void response.writeHead(400).end('{"message":"Invalid Form Body"}');
    sent.push({ method, path, body });
    response
      .writeHead(200)
      .end(JSON.stringify({ id: path === "/users/@me/channels" ? DM : `90000000000000001${sent.length}` }));
  };
});

const options = (more: object = {}) => ({ token: TOKEN, api_url: `http://127.0.0.1:${server.port}`, ...more });
const deliver = async (message: Message, more: object = {}): Promise<DeliveryResult> =>
  (await createNotifier(options(more)).deliver(message, never)) as DeliveryResult;
const newest = (): Sent => sent.at(-1) as Sent;
const buttonsOf = ({ body }: Pick<Sent, "body">): { label: string; url?: string; custom_id?: string }[] =>
  body.components.flatMap(({ components }: { components: object[] }) => components);

describe("messages", () => {
  test("a person gets a direct message with a button to the page; the outcome replaces it, and a reminder is a reply", async () => {
    const { reference } = await deliver(askedMessage(ANNA));
    assert.deepEqual(
      sent.map(({ method, path }) => `${method} ${path}`),
      ["POST /users/@me/channels", `POST /channels/${DM}/messages`],
    );
    const { content, embeds, allowed_mentions, enforce_nonce } = newest().body;
    assert.deepEqual(
      [content, allowed_mentions, enforce_nonce],
      ["`Approval needed: stripe refund (high risk)`", { parse: [] }, true],
    );
    assert.match(embeds[0].description, /^```\n[^]*\nAgent: support-bot\n[^]*\n {2}amount: 500\n[^]*\n```$/);
    assert.deepEqual(
      buttonsOf(newest()).map(({ label, url }) => [label, url]),
      [["Open the approval page", "https://assent.example/approve#apl1_secret.mac"]],
    );
    await deliver(askedMessage(ANNA, { kind: "approval_reminder", reference: reference ?? null }));
    assert.equal(`${DM}:${newest().body.message_reference.message_id}`, reference);
    await deliver(closedMessage(ANNA, reference ?? null));
    assert.equal(`${newest().method} ${newest().path}`, `PATCH /channels/${DM}/messages/${reference?.split(":")[1]}`);
    assert.match(newest().body.embeds[0].description, /Approved by anna/);
    assert.deepEqual(buttonsOf(newest()), []);
    await deliver(askedMessage(PLACE, { person: null, link: "https://assent.example/approve#0190" }));
    assert.equal(newest().path, `/channels/${PLACE}/messages`);
  });

  test("text that an agent wrote stays in code and mentions no one", async () => {
    const params = { ...HOSTILE.params, all: "@everyone [x](https://evil.example) ```\n# big" };
    await deliver(askedMessage(ANNA, {}, { ...HOSTILE, params }));
    const { content, embeds } = newest().body;
    assert.match(content, /^`[^`\n]*`$/);
    assert.match(embeds[0].description, /^```\n[^`]*\n```$/);
    assert.ok(!/[\u200b\u202e\u2067]/.test(content + embeds[0].description));
  });

  test("a request that is too long says so; a link that is too long for a button is part of the text, without votes", async () => {
    const params = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`key${i}`, "`".repeat(2000)]));
    await deliver(askedMessage(ANNA, {}, { params }));
    assert.match(newest().body.embeds[0].description, /too long for this message/);
    const link = `https://assent.example/${"x".repeat(500)}#apl1_secret.mac`;
    await deliver(askedMessage(ANNA, { link }), { public_key: PUBLIC_KEY });
    assert.deepEqual(newest().body.components, []);
    assert.ok(newest().body.content.endsWith(`\nOpen the approval page: <${link}>`));
  });

  test("the token is verified without a message", async () => {
    await createNotifier(options()).verify?.(never);
    const other = createNotifier(options({ token: TOKEN.replace("x", "y") }));
    await assert.rejects(other.verify?.(never) ?? Promise.resolve(), /GET \/users\/@me with 401: 401: Unauthorized$/);
    assert.deepEqual(sent, []);
  });

  test("errors are retried unless the recipient or the bot must change, and contain no token", async () => {
    for (const [status, body, permanent, retryAfterMs] of [
      [429, '{"message":"You are being rate limited.","retry_after":1.5}', false, 1500],
      [502, "<html>", false, 4000],
      [307, "", false, 4000],
      [200, "[]", false, null],
      [403, '{"message":"Cannot send messages to this user"}', true, 4000],
    ] as const) {
      fail = { status, body, headers: { "retry-after": "4", location: "http://127.0.0.1/elsewhere" } };
      await assert.rejects(deliver(askedMessage(ANNA)), (error: NotifierError) => {
        assert.deepEqual([error.permanent, error.retryAfterMs], [permanent, retryAfterMs], String(status));
        return !error.message.includes(TOKEN);
      });
    }
    await assert.rejects(deliver(eventMessage(ANNA)), /no feeds/);
    assert.match(createNotifier(options()).check?.("anna", null) ?? "", /not the id of a Discord user or channel/);
    assert.throws(() => createNotifier({ token: "x" }), /three parts/);
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
          plugin: notifyDiscord as unknown as Plugin,
          options: options({ public_key: PUBLIC_KEY }),
          origin: "notify-discord",
        },
      ],
      change(config) {
        config.server.public_url = "https://assent.example";
        config.channels = { finance: { notifier: "notify-discord", people: [anna], places: [{ to: PLACE }] } };
      },
    });
    return anna;
  };
  const message = (channel: string, words: string): Promise<Sent> =>
    eventually(
      () => sent.find(({ path, body }) => path.includes(channel) && body.content?.includes(words)),
      () => JSON.stringify(sent),
    );
  const signed = (
    raw: string,
    time = Math.floor(Date.now() / 1000),
    key = keys.privateKey,
  ): Record<string, string> => ({
    "content-type": "application/json",
    "x-signature-timestamp": String(time),
    "x-signature-ed25519": sign(null, Buffer.from(`${time}${raw}`), key).toString("hex"),
  });
  const interact = (value: unknown, headers = signed): Promise<Answer> => {
    const raw = JSON.stringify(value);
    return service.call("POST", "/discord/interactions", { key: null, raw, headers: headers(raw) });
  };
  /** Sends what Discord sends when a person presses a button. */
  const press = (posted: Pick<Sent, "body">, index: number, from = ANNA, headers = signed): Promise<Answer> =>
    interact(
      {
        type: 3,
        data: { component_type: 2, custom_id: buttonsOf(posted)[index]?.custom_id },
        user: { id: from },
        message: { components: posted.body.components },
      },
      headers,
    );
  const statusOf = async (id: string): Promise<string> =>
    (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body.status;

  test("a person approves with two buttons, and the second votes on what the first displayed", async () => {
    await start();
    try {
      const { id } = (await service.call("POST", "/v1/actions", { body: HOSTILE_ACTION })).body;
      const asked = await message(DM, "Approval needed");
      assert.equal(buttonsOf(await message(PLACE, "Approval needed")).length, 1, "a place has no vote buttons");
      assert.deepEqual((await interact({ type: 1 })).body, { type: 1 });
      const form = await press(asked, 0);
      assert.deepEqual([form.body.type, form.body.data.flags], [4, 64]);
      assert.match(form.body.data.embeds[0].description, /amount: 500/);
      assert.equal(await statusOf(id), "pending_approval");
      await service.restart();
      const voted = await press({ body: form.body.data }, 0);
      assert.equal(voted.body.type, 7);
      assert.match(voted.body.data.content, /Your vote is recorded\. The request is approved\./);
      const { approvals } = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
      assert.equal(approvals[0].approver, person("anna"));
      assert.match((await press({ body: form.body.data }, 0)).body.data.content, /no longer pending/);
    } finally {
      await service.close();
    }
  });

  test("only Discord's signature counts, for five minutes, and only the person to whom the message was sent can vote", async () => {
    const anna = await start();
    try {
      const { id } = (await service.call("POST", "/v1/actions", { body: ASKED })).body;
      const asked = await message(DM, "Approval needed");
      const form = { body: (await press(asked, 0)).body.data };
      const hourAgo = Math.floor(Date.now() / 1000) - 3600;
      const other = generateKeyPairSync("ed25519").privateKey;
      for (const headers of [
        (raw: string) => signed(raw, hourAgo),
        (raw: string) => signed(raw, undefined, other),
        (raw: string) => signed(`${raw} `),
        (raw: string) => ({ ...signed(raw), "x-signature-timestamp": String(hourAgo) }),
        (raw: string) => ({ ...signed(raw), "x-signature-ed25519": "00" }),
        () => ({ "content-type": "application/json" }),
      ])
        assert.equal((await press(form, 0, ANNA, headers as typeof signed)).status, 401);
      assert.match((await press(form, 0, "700000000000000002")).body.data.content, /sent to another person/);
      const forged = structuredClone(form);
      for (const value of ["", "x", buttonsOf(asked)[0]?.custom_id?.replace(/^oa/, "va")]) {
        forged.body.components[0].components[0].custom_id = value;
        assert.match((await press(forged, 0)).body.data.content, /sent to another person/);
      }
      for (const value of [null, { type: 2 }]) assert.equal((await interact(value)).status, 400);
      anna.to = "700000000000000009";
      await service.restart();
      assert.match((await press(form, 0)).body.data.content, /sent to an earlier address/);
      assert.equal(await statusOf(id), "pending_approval");
    } finally {
      await service.close();
    }
  });
});

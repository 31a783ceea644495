/** Notifications: the outbox, the courier, link tokens, and the API's view of them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { ApprovalMessage, ClosedMessage, EventMessage } from "../../../src/contract/notifier.ts";
import { NotifierError } from "../../../src/contract/notifier.ts";
import { computeRetryDelay } from "../../../plugins/deliveries/courier/courier.ts";
import { makeToken } from "../../../src/domain/tokens.ts";
import { serve } from "../../../src/serve/index.ts";
import { assentInProcessWithEnv, type Run } from "../../support/cli.ts";
import { needs } from "../../support/features.ts";
import { voteByLink } from "../../support/link-vote.ts";
import { testNotifier, type TestNotifier } from "../../support/notifier.ts";
import {
  startService,
  setSection,
  type Answer,
  type Service,
  type ServiceOptions,
  person,
} from "../../support/service.ts";
import { eventually, until } from "../../support/wait.ts";

/** Requires approval through the channel `finance` under the default policies: quorum 1 up to 1,000, 2 above. */
const refund = (amount: number): object => ({
  agent_id: "support-bot",
  tool: "stripe",
  operation: "refund",
  params: { amount, currency: "USD" },
});
const tokenOf = (message: ApprovalMessage): string => message.link.slice(message.link.indexOf("#") + 1);
const HOUR = 3_600_000;

let pigeon: TestNotifier;
let service: Service;

const FINANCE = {
  notifier: "pigeon",
  people: [
    { owner: person("Anna"), to: "anna@example.com" },
    { owner: person("ben"), to: "ben@example.com" },
  ],
};

async function start(
  change: (config: Parameters<NonNullable<ServiceOptions["change"]>>[0]) => void = () => {},
  notifier = testNotifier(),
): Promise<void> {
  pigeon = notifier;
  service = await startService({
    plugins: [pigeon.plugin],
    change(config) {
      config.server.public_url = "https://assent.example/";
      config.channels = { finance: FINANCE };
      change(config);
    },
  });
}

afterEach(() => service.close());

async function submit(amount: number, key = service.agent): Promise<string> {
  const answer = await service.call("POST", "/v1/actions", { key, body: refund(amount) });
  assert.equal(answer.status, 202, JSON.stringify(answer.body));
  return answer.body.id as string;
}

const asked = async (id: string, name: string): Promise<ApprovalMessage> =>
  (await pigeon.next(
    (message) => message.kind === "approval_requested" && message.action.id === id && message.person === person(name),
  )) as ApprovalMessage;
const closed = async (id: string, to: string): Promise<ClosedMessage> =>
  (await pigeon.next(
    (message) => message.kind === "approval_closed" && message.action.id === id && message.to === to,
  )) as ClosedMessage;
const vote = (token: string, approve: boolean): Promise<Answer> => voteByLink(service, token, approve);
const deliveries = async (query = ""): Promise<Record<string, unknown>[]> =>
  (await service.call("GET", `/v1/deliveries${query}`, { key: service.admin })).body.deliveries;

/** Waits for a state of a delivery in the store, which the courier writes after the notifier has responded. */
const settled = (query: string, state: string): Promise<Record<string, unknown>> =>
  eventually(
    async () => (await deliveries(query)).find((row) => row["state"] === state),
    () => `nothing is ${state}: ${query}`,
  );

test("a channel with digests sends one message about all pending requests, and each can be decided by its own link", async () => {
  await start((config) => (config.channels = { finance: { ...FINANCE, digest: "1h" } }));
  service.clock.now = HOUR - (Date.now() % HOUR);
  const ids = [await submit(500), await submit(600), await submit(700), await submit(800)];
  const [dropped] = ids;
  await service.call("POST", `/v1/actions/${dropped}/cancel`, { key: service.admin, body: {} });
  assert.deepEqual(pigeon.messages, [], "nothing is sent before the hour is over");
  service.clock.now += HOUR;
  const [anna, ben] = (await Promise.all(
    ["anna@example.com", "ben@example.com"].map((to) => pigeon.next((message) => message.to === to)),
  )) as [ApprovalMessage, ApprovalMessage];
  const requestsOf = (digest: ApprovalMessage) => [digest, ...digest.others];
  for (const digest of [anna, ben])
    assert.deepEqual(
      requestsOf(digest)
        .map(({ action }) => action.id)
        .sort(),
      ids.slice(1).sort(),
    );
  for (const { action, link } of requestsOf(anna)) {
    const { body } = await vote(new URL(link).hash.slice(1), true);
    assert.deepEqual([body.action.id, body.action.status], [action.id, "approved"]);
  }
  await until("the outcomes are settled", async () => (await deliveries("?state=waiting")).length === 0);
  assert.equal(pigeon.messages.length, 2, "outcomes are not sent one by one");
  const rows = (await Promise.all(ids.slice(1).map((id) => service.storage.deliveriesOfAction(id)))).flat();
  const sent = rows.filter(({ state }) => state === "delivered");
  assert.deepEqual([sent.length, sent.every(({ reference }) => reference === null)], [6, true]);
});

describe("people and links", () => {
  beforeEach(() => start());

  test("each person gets a personal link, which shows the exact request and votes without a key", async () => {
    const id = await submit(500);
    const [anna, ben] = [await asked(id, "Anna"), await asked(id, "ben")];
    assert.deepEqual([anna.to, ben.to, anna.channel], ["anna@example.com", "ben@example.com", "finance"]);
    assert.ok(anna.link.startsWith("https://assent.example/approve#apl1_"));
    assert.notEqual(tokenOf(anna), tokenOf(ben));
    assert.deepEqual(anna.action.params, { amount: 500, currency: "USD" });

    const look = await service.call("POST", "/v1/approval-link", { key: null, body: { token: tokenOf(anna) } });
    assert.equal(look.status, 200);
    assert.deepEqual(
      [look.body.approver, look.body.refusal, look.body.action.id, look.body.action.status, look.body.action.params],
      [person("anna"), null, id, "pending_approval", { amount: 500, currency: "USD" }],
    );
    assert.equal(look.body.action.request_hash, anna.action.request_hash);

    const voted = await vote(tokenOf(anna), true);
    assert.equal(voted.status, 200, JSON.stringify(voted.body));
    const action = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
    assert.deepEqual(
      [action.status, action.approvals[0].approver, action.approvals[0].key_id],
      ["approved", person("anna"), "link"],
    );
    const { body } = await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin });
    assert.deepEqual(body.events[1].entry.by, {
      key_id: "link",
      principal: person("anna"),
      agent_id: null,
      owner: person("anna"),
    });
    // Everyone who got the request also gets the outcome, with a reference to the message to change.
    for (const to of ["anna@example.com", "ben@example.com"]) {
      const end = await closed(id, to);
      assert.deepEqual(
        [end.action.status, end.reference, end.action.votes[0]?.approver],
        ["approved", `ref-${to}`, person("anna")],
      );
    }
    const late = await vote(tokenOf(ben), false);
    assert.deepEqual([late.status, late.body.code], [409, "ACTION_NOT_PENDING"]);
  });

  test("opening a link changes nothing, however often", async () => {
    const id = await submit(500);
    const token = tokenOf(await asked(id, "Anna"));
    const before = (await service.storage.head()).size;
    for (let i = 0; i < 3; i++)
      assert.equal(
        (await service.call("POST", "/v1/approval-link", { key: null, body: { token } })).body.action.status,
        "pending_approval",
      );
    assert.equal((await service.storage.head()).size, before);
  });

  test("two links and a key of one person count as one vote of a quorum", async () => {
    const made = (
      await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "anna's", preset: "approver", owner: person("Anna") },
      })
    ).body;
    const id = await submit(5000);
    const token = tokenOf(await asked(id, "Anna"));
    assert.equal((await vote(token, true)).body.action.status, "pending_approval");
    assert.deepEqual((await vote(token, true)).body.code, "ALREADY_VOTED");
    const own = await service.call("GET", `/v1/actions/${id}`, { key: made.key });
    assert.equal(own.body.approval_token, undefined);
    const ben = await vote(tokenOf(await asked(id, "ben")), true);
    assert.equal(ben.body.action.status, "approved");
  });

  test("no token is in the API, the events, the log or the store", needs("events"), async () => {
    const id = await submit(500);
    const token = tokenOf(await asked(id, "Anna"));
    await settled(`?action_id=${id}`, "delivered");
    const mac = token.split(".")[1] as string;
    const seen = [
      JSON.stringify(await deliveries()),
      JSON.stringify((await service.call("GET", "/v1/actions", { key: service.admin })).body),
      JSON.stringify((await service.call("GET", `/v1/actions/${id}`, { key: service.agent })).body),
      JSON.stringify((await service.call("GET", `/v1/events/page?after=0`, { key: service.admin })).body),
      service.logged.join("\n"),
      ...["assent.db", "assent.db-wal"].map((file) => readFileSync(join(service.folder, file), "latin1")),
    ];
    for (const text of seen) assert.ok(!text.includes(mac));
  });

  test("each kind of invalid token is rejected with its own error, and changes nothing", async () => {
    const [first, second] = [await submit(500), await submit(600)];
    const token = tokenOf(await asked(first, "Anna"));
    const altered = `${token.slice(0, -3)}${token.endsWith("AAA") ? "BBB" : "AAA"}`;
    const made = (
      await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "carl's", preset: "approver" },
      })
    ).body;
    const own = (await service.call("GET", `/v1/actions/${first}`, { key: made.key })).body.approval_token as string;
    const byKey = (key: string | null, body: object): Promise<Answer> =>
      service.call("POST", `/v1/actions/${first}/approval`, { key, body: { approve: true, ...body } });
    const cases: [string, Answer, number, string][] = [
      ["altered", await vote(altered, true), 403, "TOKEN_INVALID"],
      ["malformed", await vote("apl1_x", true), 403, "TOKEN_MALFORMED"],
      ["a key's token instead of a link's", await vote(own, true), 403, "TOKEN_MALFORMED"],
      ["a key's token without the key", await byKey(null, { token: own }), 401, "MISSING_CREDENTIAL"],
      ["a link's token without a key", await byKey(null, { token }), 401, "MISSING_CREDENTIAL"],
      ["a link's token with a key", await byKey(made.key, { token }), 403, "TOKEN_MALFORMED"],
      [
        "altered, looked at",
        await service.call("POST", "/v1/approval-link", { key: null, body: { token: altered } }),
        403,
        "TOKEN_INVALID",
      ],
      [
        "a key's token, looked at",
        await service.call("POST", "/v1/approval-link", { key: null, body: { token: own } }),
        403,
        "TOKEN_MALFORMED",
      ],
    ];
    for (const [name, answer, status, code] of cases)
      assert.deepEqual([answer.status, answer.body.code], [status, code], name);
    for (const id of [first, second]) {
      const { body } = await service.call("GET", `/v1/actions/${id}`, { key: service.admin });
      assert.deepEqual([body.status, body.approvals], ["pending_approval", []]);
    }
  });

  test("no one is notified to approve their own action, and a link of the submitter's owner cannot vote", async () => {
    const own = (
      await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "anna's bot", preset: "agent", owner: person("Anna") },
      })
    ).body.key as string;
    const id = await submit(500, own);
    await asked(id, "ben");
    assert.deepEqual(
      (await deliveries(`?action_id=${id}`)).map((row) => row["person"]),
      [person("ben")],
    );
    const row = await service.storage.action(id);
    assert.ok(row !== null);
    const token = makeToken(
      "link",
      { action_id: id, request_hash: row.request_hash, approver: person("anna"), expires_at: row.expires_at ?? 0 },
      (message) => service.runtime.host.vault.mac("approval-link", message),
    );
    assert.deepEqual((await vote(token, true)).body.code, "SELF_APPROVAL");
    assert.match(
      (await service.call("POST", "/v1/approval-link", { key: null, body: { token } })).body.refusal,
      /same owner/,
    );
  });

  test("a timed-out request is reported as expired, not as denied, and its link says so", async () => {
    const id = await submit(500);
    const token = tokenOf(await asked(id, "Anna"));
    await settled(`?action_id=${id}&destination=pigeon%20anna%40example.com`, "delivered");
    service.clock.now += 9 * HOUR;
    const late = await vote(token, true);
    assert.deepEqual([late.status, late.body.code], [410, "APPROVAL_EXPIRED"]);
    assert.equal((await closed(id, "anna@example.com")).action.status, "expired");
    assert.equal(
      (await service.call("POST", "/v1/approval-link", { key: null, body: { token } })).body.action.status,
      "expired",
    );
  });

  test("a person who was removed from the channel cannot vote with their earlier link", async () => {
    const id = await submit(500);
    const token = tokenOf(await asked(id, "Anna"));
    FINANCE.people.reverse();
    const anna = FINANCE.people.pop();
    try {
      await service.restart();
      const answer = await vote(token, true);
      assert.deepEqual([answer.status, answer.body.code], [403, "TOKEN_INVALID"]);
      assert.match(answer.body.detail, /is no longer in a channel of this decision/);
    } finally {
      FINANCE.people.unshift(anna as (typeof FINANCE.people)[number]);
    }
  });
});

describe("delivering", () => {
  test("a failed delivery is retried with the same id, and delays only its own destination", async () => {
    await start();
    pigeon.plans.push(() => Promise.reject(new Error("mailbox full")));
    const [first, second] = [await submit(500), await submit(600)];
    const failed = await settled("?destination=pigeon%20anna%40example.com", "waiting");
    assert.ok(failed["attempts"] === 0 || failed["attempts"] === 1);
    await settled("?destination=pigeon%20ben%40example.com", "delivered");
    await asked(second, "ben");
    await until(
      "Anna's is tried",
      async () =>
        (await deliveries(`?action_id=${first}`)).find((row) => row["person"] === person("Anna"))?.["attempts"] === 1,
    );
    assert.deepEqual(
      pigeon.messages.filter(({ to }) => to === "anna@example.com").map(({ attempt }) => attempt),
      [1],
    );
    const waiting = (await deliveries(`?action_id=${first}`)).find((row) => row["person"] === person("Anna"));
    assert.deepEqual([waiting?.["state"], waiting?.["last_error"]], ["waiting", "mailbox full"]);
    service.clock.now += 10_000;
    await asked(second, "Anna");
    const toAnna = () => pigeon.messages.filter(({ to }) => to === "anna@example.com") as ApprovalMessage[];
    await until("the first is tried again", () => toAnna().length === 3);
    const own = toAnna();
    assert.deepEqual(
      own.map(({ attempt, action }) => [action.id, attempt]),
      [
        [first, 1],
        [second, 1],
        [first, 2],
      ],
    );
    assert.equal(own[0]?.id, own[2]?.id);
  });

  test("a notifier that throws, rejects with nothing or hangs delays no decision and no other destination", async () => {
    await start((config) => setSection(config, "deliveries", { timeout_seconds: 1 }));
    let ended = 0;
    pigeon.plans.push(
      () => {
        throw new Error("thrown at once");
      },
      (_, signal) => new Promise(() => signal.addEventListener("abort", () => ended++)),
      () => Promise.reject(undefined),
    );
    const [first, second] = [await submit(500), await submit(600)];
    await pigeon.next((message) => message.kind === "approval_requested" && message.action.id === first);
    const decided = await service.call("POST", "/v1/actions", { body: refund(50) });
    assert.equal(decided.body.status, "allowed");
    await until("the hanging attempt is aborted", () => ended > 0);
    assert.equal(ended, 1);
    service.clock.now += 20_000;
    await asked(second, "Anna");
    await asked(second, "ben");
    const errors = (await Promise.all([first, second].map((id) => deliveries(`?action_id=${id}`))))
      .flat()
      .map(({ state }) => state);
    assert.ok(
      errors.every((state) => state === "delivered" || state === "waiting"),
      errors.join(),
    );
    assert.ok(service.logged.some((line) => line.includes("the notifier did not respond within 1 s")));
  });

  test("a message that fails for three days is dead, listed, and can be retried", async () => {
    await start(
      (config) =>
        (config.channels = {
          finance: { notifier: "pigeon", people: [{ owner: person("anna"), to: "a@example.com" }] },
        }),
    );
    pigeon.plans.push(() => Promise.reject(new Error("no route")));
    const id = await submit(500);
    await pigeon.next(() => true);
    await until("it is tried", async () => (await deliveries())[0]?.["attempts"] === 1);
    pigeon.plans.push(() => Promise.reject(new NotifierError("no such mailbox", { permanent: true })));
    const waits = (await deliveries())[0] as Record<string, unknown>;
    const hastened = await service.call("POST", `/v1/deliveries/${waits["id"] as string}/retry`, {
      key: service.admin,
    });
    assert.deepEqual([hastened.status, hastened.body.give_up_at], [200, waits["give_up_at"]], "it is tried at once");
    const dead = await settled("?state=dead", "dead");
    assert.deepEqual(
      [dead["action_id"], dead["attempts"], dead["last_error"], dead["next_attempt_at"]],
      [id, 2, "no such mailbox", null],
    );
    const again = await service.call("POST", `/v1/deliveries/${dead["id"] as string}/retry`, { key: service.admin });
    assert.deepEqual([again.status, again.body.state], [200, "waiting"]);
    assert.equal((await settled(`?action_id=${id}`, "delivered"))["attempts"], 3);
    assert.equal(
      (await service.call("POST", `/v1/deliveries/${dead["id"] as string}/retry`, { key: service.admin })).body.code,
      "DELIVERY_NOT_DEAD",
    );
    assert.equal(
      (await service.call("GET", `/v1/deliveries/${dead["id"] as string}`, { key: service.admin })).body.state,
      "delivered",
    );
    const agent = await service.call("GET", "/v1/deliveries", { key: service.agent });
    assert.deepEqual([agent.status, agent.body.code], [403, "INSUFFICIENT_SCOPE"]);
    assert.equal(
      (await service.call("GET", "/v1/deliveries/nope", { key: service.admin })).body.code,
      "DELIVERY_NOT_FOUND",
    );
  });

  test("retry delays double from seconds to an hour, with jitter", async () => {
    await start();
    assert.deepEqual(
      [1, 2, 3, 11, 12, 99].map((n) => computeRetryDelay(n, 0.5)),
      [5_000, 10_000, 20_000, 3_600_000, 3_600_000, 3_600_000],
    );
    assert.deepEqual([computeRetryDelay(1, 0), computeRetryDelay(1, 1)], [3_750, 6_250]);
  });

  test("messages that were queued when the service stopped are delivered after the next start", async () => {
    await start();
    pigeon.plans.push(
      (_, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("stopped")))),
    );
    const id = await submit(500);
    const first = await asked(id, "Anna");
    await service.restart();
    const again = await pigeon.next((message) => message.id === first.id && message !== first);
    assert.equal(again.attempt, 1);
    await settled("?destination=pigeon%20anna%40example.com", "delivered");
  });

  test("a request that was decided before its delivery is not sent, and neither is its outcome", async () => {
    await start(
      (config) =>
        (config.channels = {
          finance: { notifier: "pigeon", people: [{ owner: person("anna"), to: "a@example.com" }] },
        }),
    );
    pigeon.plans.push(() => Promise.reject(new Error("down")));
    const id = await submit(500);
    await pigeon.next(() => true);
    await service.call("POST", `/v1/actions/${id}/cancel`, { key: service.admin });
    service.clock.now += 10_000;
    await until("nothing waits", async () => !(await deliveries()).some(({ state }) => state === "waiting"));
    assert.deepEqual(
      (await deliveries()).map(({ kind, state }) => [kind, state]),
      [
        ["approval_closed", "obsolete"],
        ["approval_requested", "obsolete"],
      ],
    );
    assert.equal(pigeon.messages.length, 1);
  });
});

describe("reminders, escalation and places", () => {
  const timed = (config: Parameters<NonNullable<ServiceOptions["change"]>>[0]): void => {
    config.channels = {
      finance: {
        notifier: "pigeon",
        people: FINANCE.people,
        places: [{ to: "#finance" }],
        remind_before: "1h",
        escalate: { to: "board", after: "2h" },
      },
      board: {
        notifier: "pigeon",
        people: [
          { owner: person("zoe"), to: "zoe@example.com" },
          { owner: person("anna"), to: "anna@example.com" },
        ],
      },
    };
  };

  test("people who have not voted are reminded, the second channel is notified, and all get the outcome", async () => {
    await start(timed);
    const id = await submit(5000);
    const place = (await pigeon.next((message) => message.to === "#finance")) as ApprovalMessage;
    assert.deepEqual([place.person, place.link], [null, `https://assent.example/approve#${id}`]);
    assert.equal((await vote(tokenOf(await asked(id, "Anna")), true)).body.action.status, "pending_approval");
    assert.ok(!pigeon.messages.some(({ to }) => to === "zoe@example.com"));
    await settled("?destination=pigeon%20ben%40example.com", "delivered");
    service.clock.now += 2 * HOUR + 1000;
    const zoe = (await pigeon.next((message) => message.to === "zoe@example.com")) as ApprovalMessage;
    assert.deepEqual([zoe.kind, zoe.channel], ["approval_escalated", "board"]);
    await settled("?destination=pigeon%20zoe%40example.com", "delivered");
    service.clock.now += HOUR;
    const reminder = (await pigeon.next(
      (message) => message.kind === "approval_reminder" && message.person === person("ben"),
    )) as ApprovalMessage;
    assert.equal(reminder.reference, "ref-ben@example.com");
    assert.equal((await vote(tokenOf(zoe), true)).body.action.status, "approved");
    for (const to of ["ben@example.com", "zoe@example.com", "#finance"])
      assert.equal((await closed(id, to)).action.status, "approved");
    assert.ok(
      !pigeon.messages.some((message) => message.kind === "approval_reminder" && message.person === person("Anna")),
      "Anna has decided",
    );
  });

  test("scheduled messages become obsolete once the action is decided", async () => {
    await start(timed);
    const id = await submit(500);
    const token = tokenOf(await asked(id, "ben"));
    assert.equal((await vote(token, false)).body.action.status, "denied");
    const states = (await deliveries(`?action_id=${id}&limit=100`))
      .filter(({ kind }) => kind === "approval_reminder" || kind === "approval_escalated")
      .map(({ state }) => state);
    assert.deepEqual([...new Set(states)], ["obsolete"]);
  });
});

describe("feeds", () => {
  test("a feed gets the entries that it selects, in order, without a token", async () => {
    const notifier = testNotifier("pigeon", [
      { to: "ops", types: ["decision", "approval"] },
      { to: "others", agents: ["nobody-*"], types: ["decision"] },
    ]);
    await start(undefined, notifier);
    const id = await submit(500);
    const token = tokenOf(await asked(id, "Anna"));
    await vote(token, true);
    await pigeon.next((message) => message.kind === "event" && message.event.type === "approval");
    const events = pigeon.messages.filter((message): message is EventMessage => message.kind === "event");
    assert.deepEqual(
      events.map(({ to, event }) => [to, event.type]),
      [
        ["ops", "decision"],
        ["ops", "approval"],
      ],
    );
    assert.ok((events[0]?.event.seq ?? 0) < (events[1]?.event.seq ?? 0));
    assert.ok(!JSON.stringify(events).includes("apl1_"));
  });
});

test("assent doctor reports a notifier whose service does not accept its credentials, before the first message", async () => {
  const notifier = testNotifier();
  let attempts = 0;
  notifier.verify = () => {
    attempts++;
    return attempts === 1 ? Promise.reject(new Error("401 for the token xyz")) : Promise.resolve();
  };
  await start(undefined, notifier);
  const listening = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
  const doctor = (): Promise<Run> => assentInProcessWithEnv({ ASSENT_URL: listening.url }, "doctor");
  await until("the credentials were verified", () => attempts === 1);
  const found = await doctor();
  assert.match(found.out, /^problem +notifiers +the services of "pigeon" do not accept the configured credentials/m);
  assert.doesNotMatch(found.out, /xyz/, "the route has no authentication");
  service.clock.now += 11 * 60_000;
  await until("the credentials are accepted", async () => !/notifiers/.test((await doctor()).out));
  assert.equal(attempts, 2, "verified once in ten minutes");
  await listening.stop(0);
});

test("assent doctor reports a notifier whose newest message failed, and only to keys that may see deliveries", async () => {
  const notifier = testNotifier();
  const refused = new NotifierError("the token was revoked", { permanent: true });
  notifier.plans.push(() => Promise.reject(refused));
  await start(
    (config) => (config.channels = { finance: { ...FINANCE, people: FINANCE.people.slice(0, 1) } }),
    notifier,
  );
  const listening = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
  const doctor = async (key = service.admin): Promise<Run> =>
    assentInProcessWithEnv({ ASSENT_URL: listening.url, ASSENT_API_KEY: key }, "doctor");
  assert.doesNotMatch((await doctor()).out, /deliveries/);
  await submit(500);
  await until("the message is dead", async () => (await deliveries("?state=dead")).length === 1);
  const failed = await doctor();
  assert.equal(failed.code, 1);
  assert.match(
    failed.out,
    /^problem +deliveries +pigeon could not deliver .*anna@example\.com: the token was revoked$/m,
  );
  assert.doesNotMatch((await doctor(service.agent)).out, /deliveries/);
  await submit(501);
  await until("the next message is delivered", async () => (await deliveries("?state=delivered")).length === 1);
  assert.match((await doctor()).out, /^ok +deliveries +pigeon delivered its newest message$/m);
  await listening.stop(0);
});

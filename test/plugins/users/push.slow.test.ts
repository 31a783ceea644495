/**
 * Push notifications: encryption, what a notification contains, who can add a device, and when it ends.
 * @needs deliveries
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { importJWK, jwtVerify } from "jose";
import { encryptPushMessage, MAX_PUSH_BYTES } from "../../../plugins/users/push/encrypt-message.ts";
import { buildNotice, encodeNotice } from "../../../plugins/users/push/push-notice.ts";
import { describeOutcome } from "../../../plugins/users/push/test-notification.ts";
import { needs } from "../../support/features.ts";
import { createPushDevice, type PushDevice } from "../../support/push-device.ts";
import { invite, type Person, type SessionHeaders, startPeople } from "../../support/people.ts";
import { askedMessage, type Received, type Receiver, startReceiver } from "../../support/receiver.ts";
import { approve, type Service, person } from "../../support/service.ts";
import { eventually } from "../../support/wait.ts";

const POLICY = `
policy: refunds
rules:
  - name: refunds
    tool: stripe
    effect: require_approval
    risk: high
    approval: { notify: [phones], preview: "Refund {params.customer}" }
`;
const CUSTOMER = "Eve Example";
let push: Receiver;
let service: Service;
let ada: Person;
before(async () => {
  push = await startReceiver();
  service = await startPeople({
    policy: POLICY,
    users: { push: { allow_private: true, contact: "mailto:ops@example.com" } },
    change: (config) =>
      void (config.channels = {
        phones: { notifier: "notify-push", people: [{ owner: person("Ada") }, { owner: person("Ben") }] },
      }),
  });
  ada = await invite(service, { name: "Ada", roles: ["approver"] });
});
after(async () => {
  await service.close();
  await push.close();
});

let devices = 0;
interface AddedDevice extends PushDevice {
  id: string;
  path: string;
}
const addressOf = (path: string): string => `http://127.0.0.1:${push.port}${path}`;

async function addDevice(person: Person): Promise<AddedDevice> {
  const device = createPushDevice();
  const path = `/device/${++devices}`;
  const { status, body } = await post(person, device.subscription(addressOf(path)));
  assert.equal(status, 201, JSON.stringify(body));
  return { ...device, id: body.id, path };
}
const post = (person: Person, body: unknown) => person.call("POST", `/v1/users/${person.id}/devices`, body);
const listOf = async (person: Person) => (await person.call("GET", `/v1/users/${person.id}/devices`)).body;
const idsOf = async (person: Person): Promise<string[]> =>
  (await listOf(person)).devices.map(({ id }: { id: string }) => id);
const sentTo = (device: AddedDevice): Received[] => push.received.filter(({ path }) => path === device.path);
const noticesOf = (device: AddedDevice) => sentTo(device).map(({ bytes }) => JSON.parse(device.open(bytes)));

async function submit(): Promise<string> {
  const body = { agent_id: "support-bot", tool: "stripe", operation: "refund", params: { customer: CUSTOMER } };
  return (await service.call("POST", "/v1/actions", { body })).body.id as string;
}
const deliveriesOf = async (id: string) =>
  (await service.call("GET", `/v1/deliveries?action_id=${id}`, { key: service.admin })).body.deliveries;
/** Resolves to the request's delivery to a person once it was attempted. */
const attempted = (id: string, to = person("Ada")): Promise<{ state: string; last_error: string | null }> =>
  eventually(
    async () =>
      (await deliveriesOf(id)).find(
        ({ recipient, attempts, kind }: { recipient: string; attempts: number; kind: string }) =>
          recipient === to && kind === "approval_requested" && attempts > 0,
      ),
    () => "nothing was sent",
  );

test("the example of RFC 8291 is encrypted to the bytes that it gives, and the device decrypts them", async () => {
  const text = "When I grow up, I want to be a watermelon";
  const device = createPushDevice({
    secret: "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94",
    auth: "BTBZMqHH6r4Tts7J_aSIgg",
  });
  const { keys } = device.subscription("");
  assert.equal(keys.p256dh, "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4");
  const point = {
    kty: "EC",
    crv: "P-256",
    x: "_jP0qw3qcZFNtVgj9ztUlI9BMG2SBzLbuaWaUyhkgiA",
    y: "Dll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
  };
  const curve = { name: "ECDH", namedCurve: "P-256" };
  const d = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
  const { subtle } = globalThis.crypto;
  const sender = {
    publicKey: await subtle.importKey("jwk", point, curve, true, []),
    privateKey: await subtle.importKey("jwk", { ...point, d }, curve, false, ["deriveBits"]),
  };
  const decode = (value: string): Uint8Array => new Uint8Array(Buffer.from(value, "base64url"));
  const message = await encryptPushMessage(
    new TextEncoder().encode(text),
    { p256dh: decode(keys.p256dh), auth: decode(keys.auth) },
    { sender, salt: decode("DGv6ra1nlYgDCS1FRnbzlw") },
  );
  assert.equal(
    Buffer.from(message).toString("base64url"),
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN",
  );
  assert.equal(device.open(Buffer.from(message)), text);
});

test("a message of the longest length fits into one record, and a longer one is refused", async () => {
  const device = createPushDevice();
  const { p256dh, auth } = device.subscription("").keys;
  const keys = { p256dh: Buffer.from(p256dh, "base64url"), auth: Buffer.from(auth, "base64url") };
  const message = await encryptPushMessage(new Uint8Array(MAX_PUSH_BYTES).fill(97), keys);
  assert.equal(message.length, 4096);
  assert.equal(device.open(Buffer.from(message)), "a".repeat(MAX_PUSH_BYTES));
  await assert.rejects(encryptPushMessage(new Uint8Array(MAX_PUSH_BYTES + 1), keys), RangeError);
});

test("a request notifies the user's device without parameters and tokens, and the outcome replaces the notification", async () => {
  const device = await addDevice(ada);
  const id = await submit();
  await push.next(({ path }) => path === device.path);
  const [request] = noticesOf(device);
  assert.equal(request.title, "Approval needed: stripe refund (high risk)");
  assert.match(request.body, /^Agent: support-bot\nExpires: /);
  assert.deepEqual([request.path, request.tag, request.silent], [`/#/approvals/${id}`, `action:${id}`, false]);
  await approve(service, id);
  await push.next((other) => other.path === device.path && other !== sentTo(device)[0]);
  const [first, second] = sentTo(device) as [Received, Received];
  const [, outcome] = noticesOf(device);
  assert.equal(outcome.title, "Approved: stripe refund");
  assert.deepEqual([outcome.path, outcome.tag, outcome.silent], [`/#/actions/${id}`, `action:${id}`, true]);
  for (const text of [request, outcome].map((notice) => JSON.stringify(notice)))
    assert.ok(!text.includes(CUSTOMER) && !text.includes("apl1_") && !text.includes("apt1_"), text);

  assert.equal(first.method, "POST");
  assert.equal(first.headers["content-encoding"], "aes128gcm");
  assert.deepEqual([first.headers["urgency"], second.headers["urgency"]], ["high", "normal"]);
  assert.equal(first.headers["topic"], second.headers["topic"]);
  const left = Number(first.headers["ttl"]);
  assert.ok(left > 0 && left <= 86_400, String(left));
  const [, token = "", key = ""] = /^vapid t=([^,]+), k=(.+)$/.exec(first.headers.authorization ?? "") ?? [];
  assert.equal(key, (await listOf(ada)).public_key);
  const point = Buffer.from(key, "base64url");
  const jwk = {
    kty: "EC",
    crv: "P-256",
    x: point.subarray(1, 33).toString("base64url"),
    y: point.subarray(33).toString("base64url"),
  };
  const { payload } = await jwtVerify(token, await importJWK(jwk, "ES256"), {
    audience: `http://127.0.0.1:${push.port}`,
  });
  assert.equal(payload.sub, "mailto:ops@example.com");
  assert.ok((payload.exp ?? 0) - Date.now() / 1000 < 86_400, "at most 24 hours");
  await ada.call("DELETE", `/v1/users/${ada.id}/devices/${device.id}`);
});

test("a digest names all requests within one message, and notices of stops open the console", () => {
  const message = askedMessage("Ada");
  const others = [1, 2].map((i) => ({ ...message, action: { ...message.action, operation: `refund${i}` } }));
  const digest = buildNotice({ ...message, others });
  assert.equal(digest.title, "Approval needed: stripe refund (high risk) and 2 more");
  assert.equal(digest.body, [1, 2].map((i) => `Approval needed: stripe refund${i} (high risk)`).join("\n"));
  assert.deepEqual([digest.path, digest.tag], ["/#/approvals", `digest:${message.id}`]);
  const long = { ...message.action, tool: "界".repeat(200), operation: "界".repeat(200) };
  const many = buildNotice({ ...message, others: Array.from({ length: 9 }, () => ({ action: long, link: "" })) });
  assert.match(many.body, /\nand \d more$/);
  assert.ok(encodeNotice(many).length <= MAX_PUSH_BYTES);
  const plan = buildNotice({ ...message, action: { ...message.action, plan: { id: "p1", position: 1 } } });
  assert.equal(plan.path, "/#/plans/p1");
  const base = { id: "1", attempt: 1, to: "Ada", at: "", channel: "phones", person: person("Ada") };
  const notice = {
    name: "stop",
    title: "Stopped: tool stripe",
    opening: CUSTOMER,
    facts: [],
    topic: "stop:s1",
    data: {},
  };
  const placed = buildNotice({ ...base, kind: "notice", link: "https://assent.example/", notice });
  assert.deepEqual(placed, { title: "Stopped: tool stripe", body: "", path: "/#/", tag: "stop:s1", silent: false });
});

test("a device is no longer notified after a sign-out, the end of all sessions, the user's deactivation or a 410", async () => {
  const ben = await invite(service, { name: "Ben", roles: ["approver"] });
  const [signedOut, kept] = [await addDevice(ben), createPushDevice()];
  await ben.call("DELETE", "/v1/session");
  await ben.signIn();
  assert.deepEqual(await idsOf(ben), []);

  const other = await addDevice(ben);
  const earlier = ben.session;
  await ben.signIn();
  const here = await addDevice(ben);
  // The device confirms its subscription in the new session, so the end of the earlier session does not end it.
  const body = kept.subscription(addressOf("/kept"));
  assert.equal((await post({ ...ben, call: withSession(ben, earlier) }, body)).status, 201);
  assert.equal((await post(ben, body)).status, 201);
  await withSession(ben, earlier)("DELETE", "/v1/session");
  const [keptId = ""] = (await idsOf(ben)).filter((id) => id !== here.id);
  assert.equal((await idsOf(ben)).length, 2);
  assert.ok(keptId !== other.id, "the one that was only in the earlier session is gone");

  await ben.call("DELETE", `/v1/users/${ben.id}/sessions`);
  await ben.signIn();
  assert.deepEqual(await idsOf(ben), []);

  const gone = await addDevice(ben);
  push.answer = (request, response) => void response.writeHead(request.path === gone.path ? 410 : 201).end();
  const { state, last_error } = await attempted(await submit(), person("Ben"));
  assert.deepEqual([state, await idsOf(ben)], ["dead", []]);
  assert.match(last_error ?? "", /Ben has no device with notifications/);
  push.answer = (_, response) => void response.end();

  const last = await addDevice(ben);
  await service.call("POST", `/v1/users/${ben.id}/end`, { key: service.admin, body: {} });
  await service.call("POST", `/v1/users/${ben.id}/resume`, { key: service.admin });
  await ben.signIn();
  assert.deepEqual(await idsOf(ben), []);
  await attempted(await submit(), person("Ben"));
  for (const device of [signedOut, other, here, last]) assert.deepEqual(sentTo(device), []);
});

/** Sends requests in an earlier session of the person. */
function withSession(person: Person, session: SessionHeaders): Person["call"] {
  return async (method, path, body) => {
    const current = person.session;
    const answer = await person.call(method, path, body, session);
    person.session = current;
    return answer;
  };
}

test("a message is retried until a device is reached, and a device that fails does not repeat it on the others", async () => {
  const [good, bad] = [await addDevice(ada), await addDevice(ada)];
  push.answer = (request, response) => void response.writeHead(request.path === bad.path ? 503 : 201).end();
  assert.equal((await attempted(await submit())).state, "delivered");
  assert.deepEqual([sentTo(good).length, sentTo(bad).length], [1, 1]);
  await ada.call("DELETE", `/v1/users/${ada.id}/devices/${good.id}`);
  const { state, last_error } = await attempted(await submit());
  assert.equal(state, "waiting");
  assert.match(last_error ?? "", /^127\.0\.0\.1:\d+ responded with status 503$/);
  push.answer = (_, response) => void response.end();
  await ada.call("DELETE", `/v1/users/${ada.id}/devices/${bad.id}`);
});

test("a test notification reports what the push service answered, and is limited to five in a minute", async () => {
  const tom = await invite(service, { name: "Tom", roles: ["viewer"] });
  const device = await addDevice(tom);
  const sendTest = (person = tom) => person.call("POST", `/v1/users/${tom.id}/devices/${device.id}/test`);
  assert.deepEqual((await sendTest()).body, { outcome: "accepted", status: 200, reason: null });
  const [notice] = noticesOf(device);
  assert.deepEqual(
    [notice.title, notice.path, notice.silent],
    ["Test notification", `/#/people/user%3A${tom.id}`, false],
  );
  assert.equal((await sendTest(ada)).body.code, "USERS_SESSION_REQUIRED");

  push.answer = (_, response) => void response.writeHead(403).end("no");
  const refused = { outcome: "refused", status: 403, reason: `127.0.0.1:${push.port} answered 403` };
  for (let i = 2; i <= 4; i++) assert.deepEqual((await sendTest()).body, refused);
  push.answer = (_, response) => void response.writeHead(410).end();
  assert.equal((await sendTest()).body.outcome, "ended");
  push.answer = (_, response) => void response.end();
  assert.equal((await sendTest()).body.code, "USERS_DEVICE_NOT_FOUND", "it was removed");
  const { id } = await addDevice(tom);
  const limited = await tom.call("POST", `/v1/users/${tom.id}/devices/${id}/test`);
  assert.deepEqual([limited.status, limited.body.code], [429, "RATE_LIMITED"]);
  assert.equal(sentTo(device).length, 5);
  service.clock.now += 61_000;
  assert.equal((await tom.call("POST", `/v1/users/${tom.id}/devices/${id}/test`)).status, 200);

  const answer = { status: 403, retryAfter: undefined, body: "the\nkey is wrong" };
  const outcome = { device: { url: new URL("https://push.example.com/x") }, answer } as Parameters<
    typeof describeOutcome
  >[0];
  assert.equal(describeOutcome(outcome, true).reason, "push.example.com answered 403: the key is wrong");
});

test("only the user adds, lists and removes devices, in a session, at most ten", async () => {
  const eve = await invite(service, { name: "Eve", roles: ["admin"] });
  const body = createPushDevice().subscription(addressOf("/x"));
  const path = `/v1/users/${ada.id}/devices`;
  for (const answer of [
    await eve.call("GET", path),
    await eve.call("POST", path, body),
    await eve.call("DELETE", `${path}/${"a".repeat(32)}`),
    await service.call("GET", path, { key: service.admin }),
    await service.call("POST", path, { key: service.admin, body }),
  ])
    assert.deepEqual([answer.status, answer.body.code], [403, "USERS_SESSION_REQUIRED"]);
  for (let i = 0; i < 10; i++) await addDevice(eve);
  assert.equal((await post(eve, body)).body.code, "USERS_TOO_MANY_DEVICES");
  const [first = ""] = await idsOf(eve);
  assert.equal((await eve.call("DELETE", `/v1/users/${eve.id}/devices/${first}`)).status, 204);
  assert.equal((await eve.call("DELETE", `/v1/users/${eve.id}/devices/${first}`)).body.code, "USERS_DEVICE_NOT_FOUND");
  assert.equal((await post(eve, body)).status, 201);
  assert.deepEqual((await listOf(eve)).channels, [], "no channel names Eve");
  assert.deepEqual((await listOf(ada)).channels, ["phones"]);
  // A device lapses if its user does not open the console on it.
  service.clock.now += 31 * 86_400_000;
  await eve.signIn();
  assert.deepEqual(await idsOf(eve), []);
  assert.equal((await post(eve, body)).status, 201);
});

test("a subscription that cannot be sent to is refused, and the stored one does not reveal its address", async () => {
  const kim = await invite(service, { name: "Kim", roles: ["viewer"] });
  const good = createPushDevice().subscription(addressOf("/kim"));
  const { keys } = good;
  const point = Buffer.from(keys.p256dh, "base64url");
  const offCurve = Buffer.from(point);
  offCurve[64] = (offCurve[64] as number) ^ 1;
  const wrong: [object, RegExp][] = [
    [{ ...good, endpoint: "ftp://push.example.com/" }, /must begin with https/],
    [{ ...good, endpoint: "https://user:secret@push.example.com/" }, /not contain a user and password/],
    [{ ...good, keys: { ...keys, auth: "AAAA" } }, /base64url of 16 bytes/],
    [{ ...good, keys: { ...keys, p256dh: offCurve.toString("base64url") } }, /point on P-256/],
    [{ ...good, keys: { ...keys, p256dh: point.subarray(1).toString("base64url") } }, /point on P-256/],
  ];
  for (const [body, words] of wrong) {
    const answer = await post(kim, body);
    assert.deepEqual([answer.status, answer.body.code], [422, "USERS_DEVICE_INVALID"], JSON.stringify(answer.body));
    assert.match(answer.body.detail, words);
  }
  assert.equal((await post(kim, { ...good, endpoint: "x".repeat(2001) })).body.code, "VALIDATION_FAILED");
  assert.equal((await post(kim, good)).status, 201);
  const [document] = await service.storage.documents({ plugin: "users", prefix: `push/${kim.id}/`, limit: 10 });
  const stored = JSON.stringify(document);
  assert.ok(stored.includes("sealed") && !stored.includes("127.0.0.1") && !stored.includes(keys.auth), stored);
});

test("no message is sent to a private address, even if a name resolves to one", needs("deliveries"), async () => {
  const strict = await startPeople({
    policy: POLICY,
    change: (config) =>
      void (config.channels = { phones: { notifier: "notify-push", people: [{ owner: person("Ann") }] } }),
  });
  try {
    const ann = await invite(strict, { name: "Ann", roles: ["approver"] });
    const add = (endpoint: string) =>
      ann.call("POST", `/v1/users/${ann.id}/devices`, createPushDevice().subscription(endpoint));
    for (const endpoint of [addressOf("/x"), "https://10.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest"])
      assert.equal((await add(endpoint)).body.code, "USERS_DEVICE_INVALID", endpoint);
    const before = push.connections;
    assert.equal((await add(`https://localhost:${push.port}/x`)).status, 201);
    const body = { agent_id: "support-bot", tool: "stripe", operation: "refund", params: { customer: CUSTOMER } };
    const { id } = (await strict.call("POST", "/v1/actions", { body })).body;
    const failed = await eventually(
      async () => {
        const { body: found } = await strict.call("GET", `/v1/deliveries?action_id=${id}`, { key: strict.admin });
        return (found.deliveries[0].last_error as string | null) ?? undefined;
      },
      () => "no attempt failed",
    );
    assert.match(failed, /localhost resolves to .* not a public address/);
    assert.equal(push.connections, before);
  } finally {
    await strict.close();
  }
});

test("a place cannot be notified, and aborts startup with the reason", async () => {
  await assert.rejects(
    startPeople({
      change: (config) => void (config.channels = { x: { notifier: "notify-push", places: [{ to: "C01234" }] } }),
    }),
    /channels\/x: notify-push notifies people on their own devices; list them under people/,
  );
});

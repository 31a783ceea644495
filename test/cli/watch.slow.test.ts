/**
 * `assent watch`: the sign-in of a terminal, what its session can do, and votes on requests as they arrive.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { needs } from "../support/features.ts";
import type { ActionRecord } from "../../clients/typescript/index.ts";
import type { Output } from "../../src/cli/command.ts";
import { requestSummary } from "../../plugins/actions/cli/request-summary.ts";
import { WatchCommands } from "../../plugins/actions/cli/watch/commands.ts";
import { followPending } from "../../plugins/actions/cli/watch/follow-pending.ts";
import { printChanges, watch } from "../../plugins/actions/cli/watch/index.ts";
import { terminalChallenge, terminalCode } from "../../plugins/actions/cli/watch/terminal-code.ts";
import { signInTerminal, type TerminalSession } from "../../plugins/actions/cli/watch/terminal-session.ts";
import { clientOf, createFaultyFetch, inProcessFetch } from "../support/assent-client.ts";
import { confirmTerminal, invite, PAGE, startPeople, type Person } from "../support/people.ts";
import type { Service } from "../support/service.ts";
import { until } from "../support/wait.ts";

const POLICY = `
policy: ask
rules:
  - name: refunds
    when: tool == "stripe"
    effect: require_approval
    reason: Refunds need a person
    approval: { expires_in: 1h, grants: { for: 1h, count: 5 } }
`;
const refund = (customer: string) => ({
  agent_id: "support-bot",
  tool: "stripe",
  operation: "refund",
  params: { amount: 500, customer },
});

interface Screen extends Output {
  text: string;
}

function createScreen(): Screen {
  const screen: Screen = {
    text: "",
    fancy: false,
    watched: false,
    out: (line) => void (screen.text += `${line}\n`),
    err: (line) => void (screen.text += `${line}\n`),
  };
  return screen;
}

let service: Service;
let ada: Person;
before(async () => {
  service = await startPeople({ policy: POLICY });
  ada = await invite(service, { name: "Ada", roles: ["admin", "break_glass"] });
});
after(() => service.close());

const submit = async (customer: string): Promise<string> => (await clientOf(service).submit(refund(customer))).id;

/** Starts the sign-in, and returns what the terminal shows. */
async function startSignIn(screen = createScreen()): Promise<{
  challenge: string;
  code: string;
  signedIn: Promise<TerminalSession>;
}> {
  const signedIn = signInTerminal({ url: "http://127.0.0.1:8000", fetch: inProcessFetch(service), pollMs: 5 }, screen);
  await until("the link is printed", () => screen.text.includes("#terminal="));
  const [, code = "", challenge = ""] =
    /type the code (\S+):\n\n {2}http:\/\/assent\.localhost:8000\/sign-in#terminal=(\S+)\n/.exec(screen.text) ?? [];
  return { challenge, code, signedIn };
}

async function signIn(): Promise<TerminalSession> {
  const { challenge, code, signedIn } = await startSignIn();
  const { status, body } = await confirmTerminal(ada, challenge, code.toLowerCase());
  assert.equal(status, 201, JSON.stringify(body));
  return signedIn;
}

describe("the sign-in of a terminal", () => {
  test("a terminal session needs the code that the terminal shows, and a signed-in person", async () => {
    const { challenge, code, signedIn } = await startSignIn();
    const wrong = await confirmTerminal(ada, challenge, "AAAA-AAAA");
    assert.equal(wrong.body.code, "USERS_CHALLENGE_INVALID");
    const anonymous = { key: null, body: { challenge, code }, headers: PAGE };
    assert.equal((await service.call("POST", "/v1/session/terminal/confirm", anonymous)).status, 401);
    const withKey = { key: service.admin, body: { challenge, code }, headers: PAGE };
    assert.equal((await service.call("POST", "/v1/session/terminal/confirm", withKey)).status, 401);
    assert.equal((await confirmTerminal(ada, challenge, code)).status, 201);
    const session = await signedIn;
    assert.equal(session.user, "Ada");
    assert.equal((await confirmTerminal(ada, challenge, code)).status, 201, "the first confirmation was used");
    const sessions = (await ada.call("GET", `/v1/users/${ada.id}/sessions`)).body.sessions;
    assert.match(sessions[0].browser, /^assent watch on /);
    assert.equal(sessions[0].method, "terminal");
    await session.end();
    await assert.rejects(session.service.call("GET", "/v1/me"), { status: 401 });
  });

  test("a terminal session needs a passkey signature for this terminal if the person has a passkey", async () => {
    const path = "/v1/session/terminal/confirm";
    const [one, other] = ["x", "y"].map((letter) => terminalChallenge(letter.repeat(43))) as [string, string];
    const about = (challenge: string) => ({ challenge, code: terminalCode(challenge) });
    assert.equal((await ada.call("POST", `${path}/options`, { challenge: one, code: "AAAA-AAAA" })).status, 403);
    const { body } = await ada.call("POST", `${path}/options`, about(one));
    const response = ada.passkey.get(body.options);
    const refused = async (given: object) => (await ada.call("POST", path, given)).body.code;
    assert.equal(await refused(about(one)), "USERS_PASSKEY_INVALID");
    assert.equal(await refused({ ...about(other), response }), "USERS_CHALLENGE_INVALID");
    const eve = await invite(service, { name: "Eve", roles: ["approver"] });
    assert.equal((await eve.call("POST", path, { ...about(one), response })).body.code, "USERS_PASSKEY_INVALID");
    const forged = eve.passkey.get(body.options);
    assert.equal(await refused({ ...about(one), response: forged }), "USERS_PASSKEY_INVALID");
    assert.equal((await ada.call("POST", path, { ...about(one), response })).status, 201);
    assert.equal(await refused({ ...about(one), response }), "USERS_CHALLENGE_INVALID", "once");
  });

  test("is refused for another verifier, from another site, a second time, and after two minutes", async () => {
    const verifier = "v".repeat(43);
    const challenge = terminalChallenge(verifier);
    const confirmed = () => confirmTerminal(ada, challenge, terminalCode(challenge));
    const exchange = async (given = verifier, headers: Record<string, string> = PAGE) =>
      (await service.call("POST", "/v1/session/terminal", { key: null, body: { verifier: given }, headers })).body;
    assert.equal((await exchange()).code, "USERS_TERMINAL_UNCONFIRMED");
    assert.equal((await confirmed()).status, 201);
    assert.equal((await confirmed()).body.code, "USERS_CHALLENGE_INVALID", "already confirmed");
    assert.equal((await exchange("w".repeat(43))).code, "USERS_TERMINAL_UNCONFIRMED");
    assert.equal((await exchange(verifier, { ...PAGE, origin: "https://evil.example" })).code, "USERS_CROSS_SITE");
    assert.equal((await exchange()).user.name, "Ada");
    assert.equal((await exchange()).code, "USERS_TERMINAL_UNCONFIRMED", "once");
    assert.equal((await confirmed()).status, 201);
    service.clock.now += 3 * 60_000;
    assert.equal((await exchange()).code, "USERS_TERMINAL_UNCONFIRMED", "late");
  });
});

test("a terminal signs in only at the address where people sign in, so that a relay does not get a session", async () => {
  const screen = createScreen();
  const relay: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    return inProcessFetch(service)(request.url.replace("127.0.0.1:9999", "127.0.0.1:8000"), init);
  };
  const signedIn = signInTerminal({ url: "http://127.0.0.1:9999", fetch: relay }, screen);
  await assert.rejects(signedIn, { message: "people sign in at http://assent.localhost:8000; set ASSENT_URL to it" });
  assert.equal(screen.text, "", "there is no link");
});

describe("a terminal session", () => {
  test("a terminal session can vote, but cannot add passkeys, users, keys or delegations, or confirm another terminal", async () => {
    const session = await signIn();
    for (const [method, path, body] of [
      ["POST", `/v1/users/${ada.id}/passkeys/options`, undefined],
      ["POST", "/v1/users", { name: "Eve" }],
      ["POST", "/v1/api-keys", { name: "eve", preset: "admin" }],
      ["POST", `/v1/users/${ada.id}/delegations`, { to: ada.id, until: "2099-01-01T00:00:00Z" }],
      ["POST", "/v1/session/terminal/confirm", { challenge: "c".repeat(43), code: "AAAA-AAAA" }],
    ] as const)
      await assert.rejects(session.service.call(method, path, body), { code: "INSUFFICIENT_SCOPE" }, path);
    await session.end();
  });

  test(
    "a terminal session cannot approve with break-glass or grant future actions",
    needs("break-glass", "grants"),
    async () => {
      const session = await signIn();
      const id = await submit("4711");
      const path = `/v1/actions/${id}/approval`;
      const { approval_token: token, approval_terms: terms } = await session.service.action(id);
      assert.equal(terms?.may_break_glass, false);
      const vote = { token, approve: true, reason: "urgent" };
      const emergency = session.service.call("POST", path, { ...vote, break_glass: true });
      await assert.rejects(emergency, { code: "BREAK_GLASS_NOT_ALLOWED" });
      const granting = session.service.call("POST", path, { ...vote, grant: { for: "1m", count: 1 } });
      await assert.rejects(granting, { code: "GRANT_NOT_ALLOWED" });
      const inBrowser = (await ada.call("GET", `/v1/actions/${id}`)).body;
      assert.equal(inBrowser.status, "pending_approval");
      assert.equal(inBrowser.approval_terms.may_break_glass, true, "the browser's session may");
      await session.end();
    },
  );

  test("a terminal session ends with the browser session that confirmed it", async () => {
    const session = await signIn();
    assert.equal((await session.service.call<{ principal: string }>("GET", "/v1/me")).principal, `user:${ada.id}`);
    assert.equal((await ada.call("DELETE", "/v1/session")).status, 204);
    await assert.rejects(session.service.call("GET", "/v1/me"), { status: 401 });
    await ada.signIn();
  });
});

describe("votes", () => {
  test("before a vote, the terminal shows the requester and the reason, asks for confirmation, and escapes control characters", async (t) => {
    const session = await signIn();
    const screen = createScreen();
    const commands = new WatchCommands(session.service, screen);
    const long = Array.from({ length: 1500 }, (_, i) => `line ${i}`).join("\n");
    const id = await submit(`4711\u001b[2J\u202e\n${long}`);
    const stop = new AbortController();
    t.after(() => stop.abort());
    const follow = followPending(session.service, { view: "mine" }, { signal: stop.signal, onStatus: screen.err });
    const first = await follow.next();
    assert.ok(first.done !== true);
    commands.update(first.value);
    const number =
      /^ *(\d+) {2}support-bot {2}stripe refund .*4711\\u001b\[2J\[U\+202E\]/m.exec(screen.text)?.[1] ?? "";
    assert.notEqual(number, "", screen.text);
    // oxlint-disable-next-line no-control-regex -- a raw one would reach the terminal
    assert.doesNotMatch(screen.text, /[\u001b\u202e]/);

    assert.ok(await commands.run(`a ${number} checked with the customer`));
    assert.match(screen.text, /pending_approval {2}stripe refund by support-bot\n[^]*reason {4}Refunds need a person/);
    assert.match(screen.text, /line 1499/, "nothing is folded");
    assert.equal(commands.prompt, `approve request ${number}? [y/N] `);
    await commands.run("no");
    assert.equal((await session.service.action(id)).status, "pending_approval", "not without a yes");
    await commands.run(`a ${number} checked with the customer`);
    await commands.run("y");
    const { status, approvals } = await session.service.action(id);
    assert.equal(status, "approved");
    assert.equal(approvals[0]?.approver, `user:${ada.id}`);
    assert.equal(approvals[0]?.reason, "checked with the customer");

    await commands.run(`d ${number}`);
    assert.match(screen.text, new RegExp(`there is no request ${number}`));
    assert.equal(await commands.run("q"), false);
    await session.end();
  });
});

test("the list follows the events, and continues after the service was not reachable", async (t) => {
  let isDown = false;
  const down = () => (isDown ? new Response("{}", { status: 503 }) : undefined);
  const { fetch } = createFaultyFetch(service, [{ on: /./, before: down }]);
  const screen = createScreen();
  const stop = new AbortController();
  t.after(() => stop.abort());
  const reader = clientOf(service, { apiKey: service.admin, fetch, retries: 0 });
  const listing = printChanges(reader, {}, screen, { json: false, signal: stop.signal });
  const one = await submit("follow-1");
  await until("the request is listed", () => screen.text.includes(`pending\t${one}\tsupport-bot\tstripe\trefund\t`));
  isDown = true;
  const two = await submit("follow-2");
  await until("the fault is reported", () => screen.text.includes("; trying again"));
  isDown = false;
  await until("the second is listed", () => screen.text.includes(`pending\t${two}\t`));
  assert.match(screen.text, /connected again/);
  await clientOf(service, { apiKey: service.admin }).vote(one, false);
  await until("the end is listed", () => screen.text.includes(`denied\t${one}\t`));
  stop.abort();
  await listing;
});

test("the list drops a request that the reader can no longer see, and continues", async (t) => {
  let isHidden = false;
  const json = (body: object, status = 200) =>
    new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
  const { fetch } = createFaultyFetch(service, [
    { on: /\/v1\/approvals/, before: () => (isHidden ? json({ actions: [], total: 0 }) : undefined) },
    {
      on: /GET \/v1\/actions\//,
      before: () => (isHidden ? json({ code: "ACTION_NOT_FOUND", detail: "there is none" }, 404) : undefined),
    },
  ]);
  const stop = new AbortController();
  t.after(() => stop.abort());
  const id = await submit("hidden-later");
  const reader = clientOf(service, { apiKey: service.admin, fetch, retries: 0 });
  const follow = followPending(reader, {}, { signal: stop.signal, onStatus: () => undefined });
  await follow.next();
  isHidden = true;
  await submit("wakes the reader");
  const next = await follow.next();
  assert.ok(next.done !== true);
  const dropped = next.value.removed.find((action) => action.id === id);
  assert.equal(dropped?.status, "pending_approval");
});

test("the summary of a request accepts all JSON that an agent sends", () => {
  const about = { preview: null, erased_at: null };
  const summaryOf = (params: object) => requestSummary({ ...about, params } as ActionRecord);
  assert.equal(summaryOf({ paths: ["a.txt", { toString: null }, null, 1] }), 'a.txt {"toString":null} null 1');
});

test("the command ends when its terminal is closed", async (t) => {
  const { env } = process;
  const { ASSENT_URL: url, ASSENT_API_KEY: key } = env;
  t.after(() => void Object.assign(env, { ASSENT_URL: url ?? "", ASSENT_API_KEY: key ?? "" }));
  Object.assign(env, { ASSENT_URL: "http://127.0.0.1:1", ASSENT_API_KEY: service.admin });
  const before = process.listenerCount("SIGHUP");
  const ended = watch.run(["--list"], createScreen());
  await until("the command listens", () => process.listenerCount("SIGHUP") > before);
  process.emit("SIGHUP", "SIGHUP");
  assert.equal(await ended, 0);
});

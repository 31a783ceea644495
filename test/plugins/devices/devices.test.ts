/**
 * Devices: a person enrols a machine with a sign-in, the machine reports its hooks, and what goes missing is recorded.
 * @needs hook, users
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { addHook } from "../../../clients/hook/install/host-settings.ts";
import { describeMachine, reportHosts } from "../../../clients/hook/install/report-hooks.ts";
import { loadWritten, planConfig, writeConfig } from "../../../clients/hook/install/write-config.ts";
import { devices, findDeviceProblems } from "../../../plugins/devices/cli/devices.ts";
import { terminalChallenge, terminalCode } from "../../../plugins/actions/api.ts";
import { recordSilence } from "../../../plugins/devices/changes.ts";
import { deviceNotice } from "../../../plugins/devices/notice.ts";
import { applyDeviceEntry, deviceState, findLostHooks } from "../../../plugins/devices/state.ts";
import { CommandError } from "../../../src/command.ts";
import { serve } from "../../../src/serve/index.ts";
import { invite, startPeople, type Person } from "../../support/people.ts";
import { ALLOWED, type Answer, makeKey, type Service } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/wait.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const MACHINE = { id: "a".repeat(64), name: "lovelace", platform: "linux" };
const OPTIONS = { groups: ["engineers"], agent: "coder", silent_hours: 72, notify: null };

let service: Service;
let ada: Person;
let bob: Person;
let admin: Person;
before(async () => {
  service = await startPeople({
    pluginOptions: { devices: OPTIONS },
    change: (config) => (config.groups = { narrow: { members: [], agents: ["other-*"] } }),
  });
  ada = await invite(service, { name: "Ada", roles: ["viewer"], groups: ["engineers"] });
  bob = await invite(service, { name: "Bob", roles: ["viewer"] });
  admin = await invite(service, { name: "Root", roles: ["admin"] });
});
// Audits the store, too.
after(() => service.close());

const agentOf = ({ id }: Person): string => `coder-${id.slice(-12)}`;
let verifiers = 0;
const newVerifier = (): string => String(++verifiers).padStart(43, "v");
const confirm = (person: Person, verifier: string, machine: object = MACHINE): Promise<Answer> => {
  const challenge = terminalChallenge(verifier);
  return person.call("POST", "/v1/devices/confirm", { challenge, code: terminalCode(challenge), machine });
};
const collect = (verifier: string): Promise<Answer> =>
  service.call("POST", "/v1/devices", { key: null, body: { verifier } });
/** Confirms the machine as the person, and gets its key as the machine. Returns the refusal of the first that fails. */
async function enrol(person: Person, machine: object = MACHINE): Promise<Answer> {
  const verifier = newVerifier();
  const confirmed = await confirm(person, verifier, machine);
  return confirmed.status === 201 ? collect(verifier) : confirmed;
}
const report = (key: string, hooks: object[], machine_id = MACHINE.id): Promise<Answer> =>
  service.call("POST", "/v1/devices/report", { key, body: { machine_id, version: "1.2.3", hooks } });
const present = (host: string): object => ({ host, state: "present" });
const code = ({ status, body }: Answer): unknown[] => [status, body.code];
const findOf = async (id: string): Promise<Record<string, unknown>> => {
  // The tests move the clock beyond the end of sessions.
  await admin.signIn();
  return (await admin.call("GET", "/v1/devices")).body.devices.find((each: { id: string }) => each.id === id);
};

describe("enrolment", () => {
  test("gives a person of the groups a key of an agent, which is theirs and cannot vote", async () => {
    const { status, body } = await enrol(ada);
    assert.equal(status, 201, JSON.stringify(body));
    assert.deepEqual(
      [body.device.owner, body.device.agent_id, body.device.status],
      [ada.principal, agentOf(ada), "attention"],
    );
    const me = await service.call("GET", "/v1/me", { key: body.key });
    assert.deepEqual([me.body.key.agent_id, me.body.key.owner], [agentOf(ada), ada.principal]);
    assert.ok(!me.body.scopes.some((scope: string) => /decide|manage|write|admin/.test(scope)), me.body.scopes.join());
    const own = { ...ALLOWED, agent_id: agentOf(ada) };
    assert.equal((await service.call("POST", "/v1/actions", { key: body.key, body: own })).status, 200);
  });

  test("gives people no rights over what the machines of others ask for", async () => {
    const [hers, theirs] = [(await enrol(ada)).body, (await enrol(admin)).body];
    const request = { ...ALLOWED, agent_id: agentOf(admin) };
    const { id } = (await service.call("POST", "/v1/actions", { key: theirs.key, body: request })).body;
    for (const path of [`/v1/actions/${id}/cancel`, `/v1/actions/${id}/start`])
      assert.deepEqual(code(await service.call("POST", path, { key: hers.key, body: {} })), [404, "ACTION_NOT_FOUND"]);
    assert.equal((await service.call("GET", `/v1/actions/${id}`, { key: hers.key })).status, 404);
    await admin.call("DELETE", `/v1/devices/${theirs.device.id}`);
  });

  test("is refused for others, for keys, and for people whose groups do not cover the agent", async () => {
    assert.deepEqual(code(await enrol(bob)), [403, "DEVICE_NOT_ALLOWED"]);
    const challenge = terminalChallenge(newVerifier());
    const withKey = { key: service.admin, body: { challenge, code: terminalCode(challenge), machine: MACHINE } };
    assert.deepEqual(code(await service.call("POST", "/v1/devices/confirm", withKey)), [403, "DEVICE_NOT_ALLOWED"]);
    const eve = await invite(service, { name: "Eve", roles: ["key_manager"], groups: ["narrow"] });
    assert.deepEqual(code(await enrol(eve)), [403, "DEVICE_NOT_ALLOWED"]);
    for (const machine of [{ ...MACHINE, id: "x" }, { ...MACHINE, name: "a\nb" }, { ...MACHINE, more: 1 }, {}])
      assert.equal((await enrol(ada, machine)).status, 422, JSON.stringify(machine));
  });

  test("needs the code of the machine and a confirmation, which gives one key, for two minutes", async () => {
    const [verifier, other, late] = [newVerifier(), newVerifier(), newVerifier()];
    const body = { challenge: terminalChallenge(verifier), machine: MACHINE };
    const wrong = await ada.call("POST", "/v1/devices/confirm", { ...body, code: "2222-2222" });
    assert.deepEqual(code(wrong), [403, "DEVICE_CODE_INVALID"]);
    assert.deepEqual(code(await collect(verifier)), [409, "DEVICE_UNCONFIRMED"]);
    assert.equal((await confirm(ada, verifier)).status, 201);
    assert.deepEqual(code(await confirm(ada, verifier)), [403, "DEVICE_CODE_INVALID"]);
    assert.deepEqual(code(await collect(other)), [409, "DEVICE_UNCONFIRMED"]);
    const answers = await Promise.all([collect(verifier), collect(verifier)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409]);
    await confirm(ada, late);
    service.clock.now += 2 * MINUTE;
    assert.deepEqual(code(await collect(late)), [409, "DEVICE_UNCONFIRMED"]);
  });

  test("is refused to a person who was deactivated or left the groups after the confirmation", async () => {
    const dan = await invite(service, { name: "Dan", roles: ["viewer"], groups: ["engineers"] });
    const [first, second] = [newVerifier(), newVerifier()];
    await confirm(dan, first);
    await confirm(dan, second);
    await service.call("PATCH", `/v1/users/${dan.id}`, { key: service.admin, body: { groups: [] } });
    assert.deepEqual(code(await collect(first)), [403, "DEVICE_NOT_ALLOWED"]);
    assert.equal((await service.call("POST", `/v1/users/${dan.id}/end`, { key: service.admin, body: {} })).status, 200);
    assert.deepEqual(code(await collect(second)), [409, "DEVICE_UNCONFIRMED"]);
  });

  test("of the same machine again replaces the key, and that of other machines ends at a limit", async () => {
    const first = (await enrol(admin)).body;
    const second = (await enrol(admin)).body;
    assert.equal((await service.call("GET", "/v1/me", { key: first.key })).status, 401);
    assert.equal((await service.call("GET", "/v1/me", { key: second.key })).status, 200);
    assert.equal((await report(second.key, [])).body.id, second.device.id);
    for (let n = 1; n < 20; n += 1)
      assert.equal((await enrol(admin, { ...MACHINE, id: String(n).padStart(64, "0") })).status, 201);
    assert.deepEqual(code(await enrol(admin, { ...MACHINE, id: "f".repeat(64) })), [429, "TOO_MANY_DEVICES"]);
    const revoked = (await admin.call("GET", "/v1/devices?limit=1")).body.devices[0].key_id;
    await service.call("DELETE", `/v1/api-keys/${revoked}`, { key: service.admin });
    assert.equal((await enrol(admin, { ...MACHINE, id: "f".repeat(64) })).status, 201, "a revoked key counts no more");
    for (const { id, owner } of (await admin.call("GET", "/v1/devices?limit=1000")).body.devices)
      if (owner === admin.principal) assert.equal((await admin.call("DELETE", `/v1/devices/${id}`)).status, 200);
  });
});

describe("reports", () => {
  let device: { id: string; key_id: string };
  let key: string;
  before(async () => {
    ({ device, key } = (await enrol(ada)).body);
  });
  const sizeOf = async (): Promise<number> => (await service.storage.head()).size;

  test("make a device active, and are recorded only when they say something new or some hours have passed", async () => {
    assert.equal((await report(key, [present("claude-code"), present("codex")])).body.status, "active");
    const size = await sizeOf();
    assert.equal((await report(key, [present("codex"), present("claude-code")])).status, 200);
    assert.equal(await sizeOf(), size);
    service.clock.now += 12 * HOUR;
    assert.equal((await report(key, [present("claude-code"), present("codex")])).status, 200);
    assert.equal(await sizeOf(), size + 1);
  });

  test("name the hooks that went missing, once, and cannot fill the ledger", async () => {
    const missing = [{ host: "claude-code", state: "missing" }];
    assert.deepEqual(code(await report(key, missing)), [429, "DEVICE_REPORT_TOO_SOON"]);
    service.clock.now += 2 * MINUTE;
    assert.equal((await report(key, missing)).body.status, "attention");
    const [entry] = await newest();
    assert.deepEqual(entry?.data["lost"], ["claude-code", "codex"]);
    assert.equal(deviceNotice.isDue?.(entry as never), true);
    const { title } = deviceNotice.render(entry as never, () => "Ada");
    assert.equal(title, "The hook of claude-code, codex is missing on lovelace");
    service.clock.now += 13 * HOUR;
    await report(key, missing);
    assert.deepEqual((await newest())[0]?.data["lost"], []);
  });

  test("are refused for other keys, for hosts that are listed twice, and from another machine, which is recorded once", async () => {
    const other = (await makeKey(service, { name: "plain", agent_id: "coder", preset: "agent", owner: null })).key;
    assert.deepEqual(code(await report(other, [])), [404, "DEVICE_NOT_FOUND"]);
    assert.deepEqual(code(await report(key, [present("codex"), present("codex")])), [422, "VALIDATION_FAILED"]);
    const size = await sizeOf();
    assert.deepEqual(code(await report(key, [], "b".repeat(64))), [403, "DEVICE_KEY_COPIED"]);
    assert.deepEqual(code(await report(key, [], "b".repeat(64))), [403, "DEVICE_KEY_COPIED"]);
    assert.equal(await sizeOf(), size + 1);
    assert.equal((await findOf(device.id))["status"], "attention");
  });

  test("that stop make the device silent once; the next report ends that", async () => {
    service.clock.now += 71 * HOUR;
    await recordSilence(service.runtime.host, OPTIONS);
    assert.notEqual((await findOf(device.id))["status"], "silent");
    service.clock.now += 2 * HOUR;
    const size = await sizeOf();
    await recordSilence(service.runtime.host, OPTIONS);
    await recordSilence(service.runtime.host, OPTIONS);
    assert.equal(await sizeOf(), size + (await openDevices()));
    assert.equal((await findOf(device.id))["status"], "silent");
    assert.ok((await newest()).some(({ data }) => data["device_id"] === device.id && data["change"] === "silent"));
    await report(key, [present("codex")]);
    assert.equal((await service.runtime.host.state(deviceState)).get(device.id)?.is_silent, false);
  });

  test("are refused after the device ended, and a revoked key ends the device", async () => {
    await Promise.all([ada, bob].map((each) => each.signIn()));
    assert.deepEqual(code(await bob.call("DELETE", `/v1/devices/${device.id}`)), [404, "DEVICE_NOT_FOUND"]);
    assert.equal((await ada.call("DELETE", `/v1/devices/${device.id}`)).body.status, "ended");
    assert.equal((await report(key, [])).status, 401);
    assert.deepEqual(code(await ada.call("DELETE", `/v1/devices/${device.id}`)), [404, "DEVICE_NOT_FOUND"]);
    const next = (await enrol(ada)).body.device;
    await service.call("DELETE", `/v1/api-keys/${next.key_id}`, { key: service.admin });
    assert.equal((await ada.call("GET", "/v1/devices?ended=true")).body.devices[0].id, next.id);
    service.clock.now += 73 * HOUR;
    await recordSilence(service.runtime.host, OPTIONS);
    assert.equal((await newest())[0]?.data["change"], "ended");
  });

  test("are seen by their user and by those who manage keys, and not by other people", async () => {
    await Promise.all([ada, bob, admin].map((each) => each.signIn()));
    const { id } = (await enrol(ada)).body.device;
    const idsOf = async (person: Person): Promise<string[]> =>
      (await person.call("GET", "/v1/devices")).body.devices.map((each: { id: string }) => each.id);
    assert.deepEqual(await idsOf(bob), []);
    assert.ok((await idsOf(ada)).includes(id) && (await idsOf(admin)).includes(id));
  });

  async function newest(): Promise<{ data: Record<string, unknown> }[]> {
    const size = await sizeOf();
    const rows = await service.runtime.host.entries(Math.max(0, size - 12), size);
    return rows
      .filter(({ type }) => type === "devices:change")
      .map(({ bytes }) => JSON.parse(Buffer.from(bytes).toString()) as { data: Record<string, unknown> })
      .reverse();
  }
  const openDevices = async (): Promise<number> =>
    [...(await service.runtime.host.state(deviceState)).values()].filter(({ ended_at }) => ended_at === null).length;
});

test("a host that a report leaves out counts as lost, and one that was missing before does not", () => {
  const is = (host: string, state: "present" | "missing") => ({ host, state });
  assert.deepEqual(findLostHooks([is("a", "present"), is("b", "missing")], [is("b", "missing")]), ["a"]);
  assert.deepEqual(findLostHooks([], [is("a", "missing"), is("b", "present")]), ["a"]);
});

test("entries that contradict earlier ones are rejected", () => {
  const data = { device_id: "d", key_id: "k", owner: "user:u", machine: MACHINE, version: null, hooks: null, lost: [] };
  const entry = (change: string) => ({ at: "2026-11-29T00:00:00.000Z", seq: 1, data: { ...data, change } }) as never;
  const enrolled = applyDeviceEntry(deviceState.initial, entry("enrolled"));
  assert.throws(() => applyDeviceEntry(enrolled, entry("enrolled")), RangeError);
  assert.throws(() => applyDeviceEntry(deviceState.initial, entry("reported")), RangeError);
  assert.throws(() => applyDeviceEntry(applyDeviceEntry(enrolled, entry("ended")), entry("silent")), RangeError);
});

describe("a machine", () => {
  const home = temporaryFolder("assent-device-");
  const env = { HOME: home, PATH: "" };
  const file = join(home, ".claude/settings.json");
  const write = (text: string): void => {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
  const stateOf = (): unknown => reportHosts(env, home).find(({ host }) => host === "claude-code")?.state;

  test("reports a host with the hook, without it, with hooks turned off, and with settings that nobody can read", () => {
    assert.equal(stateOf(), undefined);
    write("{}");
    assert.equal(stateOf(), "missing");
    write(addHook(null, { host: "claude-code", command: "assent-hook" }));
    assert.equal(stateOf(), "present");
    write(readFileSync(file, "utf8").replace("{", '{"disableAllHooks": true,'));
    assert.equal(stateOf(), "disabled");
    write("{ not JSON");
    assert.equal(stateOf(), "missing");
  });

  test("is enrolled by the command after one confirmation, and reports at once", async () => {
    const people = await startPeople({ pluginOptions: { devices: OPTIONS } });
    const open = (port: number) =>
      serve((request, info) => people.runtime.fetch(request, info), { host: "127.0.0.1", port });
    let server = await open(0);
    people.runtime.listensAt(server.port);
    const folder = temporaryFolder("assent-enrol-");
    const before = { ...process.env };
    Object.assign(process.env, { HOME: folder, XDG_CONFIG_HOME: "", ASSENT_API_KEY: "", PATH: "" });
    try {
      const origin = people.runtime.host.origin() as string;
      const eva = await invite(people, { name: "Eva", roles: ["viewer"], groups: ["engineers"] }, origin);
      let shown = "";
      const show = (text: string): void => void (shown += `${text}\n`);
      const io = { out: show, err: show, fancy: false, watched: false };
      const done = devices.run(["enrol", "--url", server.url], io);
      await until("the link is printed", () => shown.includes("challenge="));
      const [, typed = "", link = ""] = /the code (\S+):\s+(\S+)/.exec(shown) ?? [];
      assert.ok(link.startsWith(`${origin}/#/enrol-device?`), link);
      // The command goes on waiting while the service restarts.
      await server.stop(0);
      await people.restart();
      server = await open(server.port);
      people.runtime.listensAt(server.port);
      const { challenge, ...machine } = Object.fromEntries(new URLSearchParams(link.split("?")[1]));
      const body = { challenge, code: typed.toLowerCase(), machine };
      assert.equal((await eva.call("POST", "/v1/devices/confirm", body)).status, 201);
      assert.equal(await done, 0);
      assert.match(shown, /enrolled [^]*no host that runs agents was found/);
      const { api_key: key } = JSON.parse(readFileSync(join(folder, ".config/assent/hook.json"), "utf8"));
      const [device] = (await eva.call("GET", "/v1/devices")).body.devices;
      assert.deepEqual([device.owner, device.status], [eva.principal, "active"]);
      assert.equal((await people.call("GET", "/v1/me", { key })).body.key.id, device.key_id);
      assert.equal(await devices.run(["report"], io), 0);
      const [found] = await findDeviceProblems();
      assert.deepEqual([found?.state, found?.text.slice(0, 24)], ["ok", "this machine is enrolled"]);
      people.clock.now += 73 * HOUR;
      assert.match((await findDeviceProblems())[0]?.text ?? "", /needs attention \(silent\)/);
      await assert.rejects(devices.run(["enrol", "--url", "http://127.0.0.1:1"], io), { exit: 5 });
    } finally {
      process.env = before;
      await server.stop();
      await people.close();
    }
  });

  test("keeps its key while the service is down or answers garbage, and reports once it is back", async () => {
    let body = "<html>";
    let origin = "";
    const server = await serve(
      async ({ url }) => {
        const text = url.endsWith("/v1/sign-in-methods") && origin !== "" ? JSON.stringify({ origin }) : body;
        return new Response(text, { headers: { "content-type": "application/json" } });
      },
      { host: "127.0.0.1", port: 0 },
    );
    const folder = temporaryFolder("assent-outage-");
    const before = { ...process.env };
    Object.assign(process.env, { HOME: folder, XDG_CONFIG_HOME: "", ASSENT_API_KEY: "", ASSENT_URL: "", PATH: "" });
    const path = join(folder, ".config/assent/hook.json");
    const written = JSON.stringify({ url: server.url, api_key: "earlier" });
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, written, { mode: 0o600 });
    let shown = "";
    const show = (text: string): void => void (shown += `${text}\n`);
    const io = { out: show, err: show, fancy: false, watched: false };
    try {
      const device = { id: "d", machine: { name: "m" }, hooks: [{ host: "claude-code", state: "ok" }] };
      for (body of ["<html>", "{}", "[]", "null", JSON.stringify(device)]) {
        await assert.rejects(devices.run(["report"], io), CommandError, body);
        origin = "";
        await assert.rejects(devices.run(["enrol"], io), CommandError, body);
      }
      origin = server.url;
      for (body of ["{}", "null", JSON.stringify({ device }), JSON.stringify({ device, key: "assent_1" })])
        await assert.rejects(devices.run(["enrol"], io), CommandError, body);
      body = JSON.stringify({ ...device, hooks: [{ host: "claude-code", state: "missing" }] });
      assert.equal(await devices.run(["report"], io), 0);
      assert.match(shown, /missing claude-code/);
      assert.equal((await findDeviceProblems())[0]?.state, "note");
      await server.stop(0);
      await assert.rejects(devices.run(["report"], io), { exit: 5 });
      assert.equal(readFileSync(path, "utf8"), written);
      assert.doesNotMatch(shown, /enrolled/);
    } finally {
      process.env = before;
      await server.stop(0);
    }
  });

  test("keeps its id, and stores its key where only its user reads it, beside what was there", () => {
    assert.deepEqual(describeMachine(env), describeMachine(env));
    assert.match(describeMachine(env).id, /^[0-9a-f]{64}$/);
    const path = join(home, ".config/assent/hook.json");
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, '{"wait": 5, "api_key": "old"}', { mode: 0o644 });
    const change = planConfig(env, { url: "https://assent.example", api_key: "new" }, ["wait"]);
    writeConfig(change);
    assert.equal(change.path, path);
    assert.equal(loadWritten(env, change, "https://assent.example", "new").apiKey, "new");
    assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), {
      url: "https://assent.example",
      api_key: "new",
      wait: 5,
    });
    assert.equal(statSync(path).mode & 0o777, 0o600);
    writeFileSync(path, "[]");
    assert.throws(() => planConfig(env, {}, []), /must be a JSON object/);
  });
});

/**
 * `assent delegations`, `assent break-glass` and `assent access-review` against a service.
 * @needs break-glass, users
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { EXIT_CODES } from "../../src/cli/command.ts";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { assentInProcess, type Run } from "../support/cli.ts";
import { invite, startPeople, type Person } from "../support/people.ts";
import { makeKey, type Service, person } from "../support/service.ts";

const POLICY = `
policy: ask
rules:
  - { name: two, tool: db, effect: require_approval, approval: { quorum: 2 } }
`;

let service: Service;
let server: RunningServer;
let ann: Person;
let bo: Person;
const keys = { admin: "", rex: "", bo: "", agent: "" };
const environment = { url: process.env["ASSENT_URL"], key: process.env["ASSENT_API_KEY"] };
before(async () => {
  service = await startPeople({ policy: POLICY });
  server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
  ann = await invite(service, { name: "Ann", roles: ["approver"], groups: ["finance"] });
  bo = await invite(service, { name: "Bo", roles: ["break_glass"] });
  keys.admin = service.admin;
  keys.agent = service.agent;
  keys.rex = (await makeKey(service, { name: "rex", owner: "Rex", preset: "approver" })).key;
  keys.bo = (await makeKey(service, { name: "bo", owner: bo.principal, preset: "approver" })).key;
});
after(async () => {
  for (const [name, value] of [
    ["ASSENT_URL", environment.url],
    ["ASSENT_API_KEY", environment.key],
  ] as const)
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  await server.stop(1000);
  await service.close();
});

async function run(key: string, ...args: string[]): Promise<Run> {
  process.env["ASSENT_URL"] = server.url;
  process.env["ASSENT_API_KEY"] = key;
  return assentInProcess(...args);
}
const delegate = async (more: object = {}): Promise<string> => {
  const until = new Date(service.runtime.host.clock() + 3_600_000).toISOString();
  const { body } = await ann.call("POST", `/v1/users/${ann.id}/delegations`, { to: bo.id, until, ...more });
  return body.id as string;
};
async function breakGlass(reason: string): Promise<string> {
  const request = { agent_id: "bot", tool: "db", operation: "drop", params: { reason } };
  const { id } = (await service.call("POST", "/v1/actions", { body: request })).body;
  const { approval_token: token } = (await bo.call("GET", `/v1/actions/${id}`)).body;
  const body = { token, approve: true, break_glass: true, reason };
  assert.equal((await bo.call("POST", `/v1/actions/${id}/approval`, body)).body.status, "approved");
  return id as string;
}

test("delegations are listed, filtered and revoked", async () => {
  assert.deepEqual(await run(keys.admin, "delegations"), {
    code: EXIT_CODES.ok,
    out: "no delegation is active or scheduled\n",
    err: "",
  });
  const id = await delegate({ groups: ["finance"], tools: ["db"], comment: "on holiday" });
  const listed = await run(keys.admin, "delegations");
  assert.equal(listed.code, EXIT_CODES.ok, listed.err);
  assert.match(
    listed.out,
    /^active {2}Bo approves on behalf of Ann\n {2}id {8}\S+\n {2}covers {4}groups finance; tools db\n/,
  );
  assert.match(listed.out, /comment {3}on holiday/);
  const other = await run(keys.admin, "delegations", "--user", "01900000-0000-7000-8000-000000000000");
  assert.equal(other.out, "no delegation is active or scheduled\n");
  const revoked = await run(keys.admin, "delegations", "--revoke", id, "--comment", "back early");
  assert.deepEqual([revoked.code, /ended {5}revoked at /.test(revoked.out)], [EXIT_CODES.ok, true], revoked.out);
  const { delegations } = JSON.parse((await run(keys.admin, "delegations", "--all", "--json")).out);
  assert.deepEqual([delegations.length, delegations[0].ended.comment], [1, "back early"]);
  const again = await run(keys.admin, "delegations", "--revoke", id);
  assert.deepEqual([again.code, /USERS_DELEGATION_ENDED/.test(again.err)], [EXIT_CODES.failure, true], again.err);
});

test("an active delegation is listed however many newer ones have ended", async () => {
  const old = await delegate();
  for (let i = 0; i < 51; i++) {
    const ended = await delegate();
    assert.equal((await ann.call("POST", `/v1/delegations/${ended}/revoke`, {})).status, 200);
  }
  const { out } = await run(keys.admin, "delegations", "--json");
  assert.deepEqual(
    JSON.parse(out).delegations.map(({ id }: { id: string }) => id),
    [old],
  );
});

test("emergency approvals are listed, and another person closes the review", async () => {
  assert.equal((await run(keys.rex, "break-glass")).out, "no review is open\n");
  assert.equal((await run(keys.rex, "break-glass", "--all")).out, "there are no emergency approvals\n");
  const action = await breakGlass("the shop is down");
  const listed = await run(keys.rex, "break-glass");
  assert.match(listed.out, /^open {2}db drop by bot\n/);
  assert.match(listed.out, new RegExp(`action {4}${action}\\n`));
  assert.match(listed.out, /by Bo\n {2}reason {4}the shop is down/);
  const id = /^ {2}id {8}(\S+)$/m.exec(listed.out)?.[1] ?? assert.fail(listed.out);
  const own = await run(keys.bo, "break-glass", "--review", id, "--comment", "fine");
  assert.deepEqual([own.code, /^assent: REVIEWER_NOT_ELIGIBLE: /m.test(own.err)], [EXIT_CODES.failure, true], own.err);
  const empty = await run(keys.rex, "break-glass", "--review", id, "--comment", " ");
  assert.deepEqual([empty.code, /VALIDATION_FAILED/.test(empty.err)], [EXIT_CODES.failure, true], empty.err);
  const closed = await run(keys.rex, "break-glass", "--review", id, "--comment", "the outage was real");
  assert.equal(closed.code, EXIT_CODES.ok, closed.err);
  assert.match(closed.out, /^reviewed {2}db drop by bot\n[\s\S]*comment {3}the outage was real\n$/);
  assert.equal((await run(keys.rex, "break-glass")).out, "no review is open\n");
  const { break_glass } = JSON.parse((await run(keys.rex, "break-glass", "--all", "--json")).out);
  assert.deepEqual([break_glass.length, break_glass[0].review.reviewer], [1, person("rex")]);
  const unknown = await run(keys.rex, "break-glass", "--review", "x/../y", "--comment", "c");
  assert.deepEqual([unknown.code, /BREAK_GLASS_NOT_FOUND/.test(unknown.err)], [EXIT_CODES.failure, true], unknown.err);
});

test("the access review names open reviews, votes and delegators", async () => {
  await breakGlass("again");
  const { code, out } = await run(keys.admin, "access-review");
  assert.equal(code, EXIT_CODES.ok);
  assert.match(out, /OPEN REVIEWS of emergency approvals: 1; see assent break-glass/);
  assert.match(
    out,
    new RegExp(`^user Bo: can approve everything, also for Ann; 2 approved \\(2 in an emergency\\), 0 rejected`, "m"),
  );
  assert.match(out, /^key agent: cannot approve; no votes;/m);
});

test("mistakes are reported before anything is sent, and missing rights by the service", async () => {
  for (const [args, words] of [
    [["delegations", "x"], /takes no arguments/],
    [["delegations", "--comment", "x"], /--comment is only for --revoke/],
    [["break-glass", "--review", "x"], /--review and --comment go together/],
    [["break-glass", "x"], /takes no arguments/],
    [["access-review", "--days", "0"], /--days must be a whole number from 1 to 366; got `0`/],
  ] as [string[], RegExp][]) {
    const { code, err } = await run(keys.admin, ...args);
    assert.deepEqual([code, words.test(err)], [EXIT_CODES.usage, true], err);
  }
  const agent = await run(keys.agent, "access-review");
  assert.deepEqual(
    [agent.code, /^assent: INSUFFICIENT_SCOPE: /m.test(agent.err)],
    [EXIT_CODES.failure, true],
    agent.err,
  );
});

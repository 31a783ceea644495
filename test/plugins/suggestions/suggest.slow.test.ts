/** Suggestions over the API and the command line, from submissions and votes to a candidate that a person activates. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { serve, type RunningServer } from "../../../src/serve/index.ts";
import { makeKey, startService, type Answer, type Service } from "../../support/service.ts";
import { assentInProcessWithEnv, type Run } from "../../support/cli.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const POLICY = `policy: work
rules:
  - { name: refunds, tool: stripe, operation: refund, effect: require_approval }
`;
const BAR = { min_approvals: 8, min_people: 2, min_days: 3 };
const FLAGS = ["--min-approvals", "8"];
const HOUR = 3_600_000;

let service: Service;
let server: RunningServer;
const approvers: string[] = [];

async function submit(agent_id: string, params: object): Promise<Answer["body"]> {
  return (
    await service.call("POST", "/v1/actions", { body: { agent_id, tool: "stripe", operation: "refund", params } })
  ).body;
}
async function vote(id: string, approve: boolean, key: string): Promise<void> {
  const { approval_token: token } = (await service.call("GET", `/v1/actions/${id}`, { key })).body;
  const answer = await service.call("POST", `/v1/actions/${id}/approval`, { key, body: { token, approve } });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
}
const suggest = (body: object = BAR, key = service.admin): Promise<Answer> =>
  service.call("POST", "/v1/policies/suggest", { key, body });

const assent = (...args: string[]): Promise<Run> =>
  assentInProcessWithEnv({ ASSENT_URL: server.url, ASSENT_API_KEY: service.admin }, "policy", "suggest", ...args);

before(async () => {
  service = await startService({ policy: POLICY, change: (config) => (config.approvals.trust_key_makers = true) });
  for (const owner of ["ann", "bo"])
    approvers.push((await makeKey(service, { name: owner, preset: "approver", owner })).key);
  const agents = [];
  for (const agent_id of ["bot-1", "bot-2"])
    agents.push({ agent_id, key: (await makeKey(service, { name: agent_id, preset: "agent", agent_id })).key });
  for (let i = 0; i < 12; i++) {
    const { agent_id, key } = agents[i % 2] as (typeof agents)[number];
    const body = { agent_id, tool: "stripe", operation: "refund", params: { amount: i + 1, currency: "EUR" } };
    const { id } = (await service.call("POST", "/v1/actions", { key, body })).body;
    service.clock.now += 10_000;
    await vote(id, true, approvers[i < 6 ? 0 : 1] as string);
    service.clock.now += 7 * HOUR;
  }
  await vote((await submit("bot-1", { amount: 500, currency: "EUR" })).id, false, approvers[0] as string);
  await submit("bot-1", { amount: 3, currency: "EUR", later: true });
  // An approval that its approver withdraws is no evidence.
  const { id } = await submit("bot-1", { amount: 4.5, currency: "EUR" });
  await vote(id, true, approvers[0] as string);
  const withdraw = { key: approvers[0] as string, body: {} };
  assert.equal((await service.call("POST", `/v1/actions/${id}/withdraw`, withdraw)).status, 200);
  server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
});
after(async () => {
  await server.stop(500);
  await service.close();
});

test("a suggestion names its evidence, becomes a candidate, runs in shadow and is enforced by a person", async () => {
  const { status, body } = await suggest();
  assert.equal(status, 200, JSON.stringify(body));
  const [suggestion] = body.suggestions;
  const { evidence } = suggestion;
  assert.deepEqual(
    [body.suggestions.length, suggestion.in_place_of, suggestion.agents, suggestion.stored],
    [1, { policy: "work", rule: "refunds" }, ["bot-1", "bot-2"], false],
  );
  assert.deepEqual(
    [
      evidence.approvals,
      evidence.counted,
      evidence.people,
      evidence.agents,
      evidence.days >= 3,
      evidence.median_vote_ms >= 10_000,
      evidence.outcomes.not_run,
      evidence.rejections,
      evidence.nearest_rejections.length,
    ],
    [10, 8, 2, 2, true, true, 10, 1, 1],
  );
  const imported = await service.call("POST", "/v1/policies/import-yaml", {
    key: service.admin,
    body: { yaml: suggestion.yaml },
  });
  assert.deepEqual([imported.status, imported.body.policies[0].active], [200, false]);
  assert.equal((await suggest()).body.suggestions[0].stored, true);
  const path = `/v1/policies/${suggestion.policy}`;
  assert.equal((await service.call("POST", `${path}/activate`, { key: service.admin, body: {} })).status, 200);
  assert.equal((await submit("bot-1", { amount: 5, currency: "EUR" })).decision, "require_approval");
  assert.equal((await service.call("GET", `${path}/shadow`, { key: service.admin })).body.flipped, 1);
  const { definition } = (await service.call("GET", path, { key: service.admin })).body;
  const enforced = await service.call("PUT", `${path}?activate=true`, {
    key: service.admin,
    body: { ...definition, mode: "enforce" },
  });
  assert.equal(enforced.status, 200, JSON.stringify(enforced.body));
  assert.equal((await submit("bot-1", { amount: 6, currency: "EUR" })).decision, "allow");
  assert.equal((await submit("bot-1", { amount: 60, currency: "EUR" })).decision, "require_approval");
  await service.call("POST", `${path}/deactivate`, { key: service.admin });
});

test("it needs policies:write, and a key that may read all actions", async () => {
  const make = async (name: string, more: object): Promise<string> => (await makeKey(service, { name, ...more })).key;
  for (const [name, more] of [
    ["reader", { scopes: ["policies:read", "actions:read"] }],
    ["writer", { scopes: ["policies:write"] }],
    ["approver", { preset: "approver", owner: "cy" }],
  ] as const)
    assert.equal((await suggest(BAR, await make(name, more))).body.code, "INSUFFICIENT_SCOPE", name);
  assert.equal((await suggest(BAR, await make("both", { scopes: ["policies:write", "actions:read"] }))).status, 200);
  assert.equal((await suggest({ since: "2999-01-01T00:00:00Z" })).body.code, "INVALID_RANGE");
  assert.equal((await suggest({ min_approvals: 2 })).body.code, "VALIDATION_FAILED");
});

test("at most `limit` decisions are read", async () => {
  const { read, truncated, suggestions } = (await suggest({ ...BAR, limit: 1 })).body;
  assert.deepEqual([read, truncated, suggestions], [1, true, []]);
});

test("the command prints suggestions, writes them with tests that pass, commits a branch, and stores a candidate", async () => {
  const json = await assent("--json", ...FLAGS);
  assert.equal(json.code, 0, json.err);
  const [{ policy }] = JSON.parse(json.out).suggestions;
  const text = await assent(...FLAGS);
  assert.match(text.out, /1 suggestions from .* decisions/);
  assert.match(text.out, /covers 10 approvals \(0 weak\) by 2 people for 2 agents/);
  assert.match(text.out, /rejection rate of at most 25\.9 %/);

  const folder = temporaryFolder("assent-suggest-");
  writeFileSync(join(folder, "work.yaml"), POLICY);
  const written = await assent("--write", folder, ...FLAGS);
  assert.equal(written.code, 0, written.err);
  assert.match(readFileSync(join(folder, `${policy}_test.yaml`), "utf8"), /approved action/);
  const again = await assent("--write", folder, ...FLAGS);
  assert.deepEqual([again.code, /exists; nothing was written/.test(again.err)], [1, true]);

  const repository = join(temporaryFolder("assent-suggest-git-"), "policies");
  mkdirSync(repository);
  const git = (...args: string[]): string => execFileSync("git", ["-C", repository, ...args], { encoding: "utf8" });
  git("init", "--quiet", "--initial-branch", "main");
  git("config", "user.email", "test@example.com");
  git("config", "user.name", "test");
  writeFileSync(join(repository, "work.yaml"), POLICY);
  git("add", ".");
  git("commit", "--quiet", "-m", "first");
  const branched = await assent("--branch", repository, ...FLAGS);
  assert.equal(branched.code, 0, branched.err);
  assert.equal(git("branch", "--show-current").trim(), `assent/${policy}`);
  assert.deepEqual(git("show", "--name-only", "--format=", "HEAD").trim().split("\n").sort(), [
    `${policy}.yaml`,
    `${policy}_test.yaml`,
  ]);
  assert.equal(git("status", "--porcelain"), "");

  const created = await assent("--create", policy, ...FLAGS);
  assert.deepEqual([created.code, /activate it, first in shadow mode/.test(created.err)], [0, true]);
  for (const [args, message] of [
    [["--create"], /--create takes the names/],
    [["--create", "unknown", ...FLAGS], /does not suggest "unknown"/],
    [["name"], /names need --create/],
    [["--min-days", "x"], /--min-days must be a number/],
    [["--write", "a", "--branch", "b"], /exclude each other/],
  ] as const) {
    const { code, err } = await assent(...args);
    assert.notEqual(code, 0);
    assert.match(err, message);
  }
});

/** `assent policy backtest`, against a running service and against the store behind it. */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { assentInProcessWithEnv, type Run } from "../support/cli.ts";
import { startProcess, stateBeside, stopProcess, type ServiceProcess } from "../support/process.ts";
import { ALLOWED, ASKED, POLICIES } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ADMIN = `assent-test-admin-${"0".repeat(32)}`;

describe("assent policy backtest", () => {
  const folder = temporaryFolder("assent-backtest-");
  const candidate = join(folder, "candidate");
  const env: Record<string, string> = {
    ASSENT_DATA: join(folder, "data"),
    ASSENT_POLICIES: POLICIES,
    ASSENT_ADMIN_KEY: ADMIN,
    ASSENT_API_KEY: ADMIN,
  };
  let service: ServiceProcess;

  const assent = (...args: string[]): Promise<Run> =>
    assentInProcessWithEnv({ ...env, ...stateBeside(env), ASSENT_URL: service.url }, "policy", "backtest", ...args);

  before(async () => {
    service = await startProcess(env);
    const post = (path: string, body: object): Promise<Response> =>
      fetch(`${service.url}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const submit = (body: object): Promise<Response> => post("/v1/actions", body);
    const fromApi = { policy: "pages", rules: [{ name: "pages", tool: "pages", effect: "allow" }] };
    assert.equal((await post("/v1/policies?activate=true", fromApi)).status, 201);
    await submit({ ...ALLOWED, tool: "pages" });
    for (let i = 0; i < 25; i++) await submit(ALLOWED);
    for (let i = 0; i < 5; i++) await submit(ASKED);
    await submit({ ...ALLOWED, agent_id: "`evil` | **agent**" });
    mkdirSync(candidate);
    writeFileSync(
      join(candidate, "payments.yaml"),
      "policy: payments\nrules:\n  - { name: nobody pays, tool: stripe, effect: deny }\n",
    );
  });
  after(async () => {
    await stopProcess(service);
    rmSync(folder, { recursive: true, force: true });
  });

  it("reports the same from a service and from its store, which can be in use", async () => {
    const over = await assent(candidate, "--format", "json");
    const inside = await assent(candidate, "--format", "json", "--against", "store");
    assert.deepEqual([over.code, inside.code], [0, 0], over.err + inside.err);
    const [a, b] = [JSON.parse(over.out), JSON.parse(inside.out)];
    // The policy that came through the API still allows its action.
    assert.deepEqual([a.evaluated, a.flipped], [32, 31]);
    for (const result of [a, b]) {
      delete result.since;
      delete result.until;
      delete result.policy_set;
    }
    assert.deepEqual(a, b);
    const unchanged = await assent(POLICIES, "--against", "store", "--fail-on-flips");
    assert.deepEqual(
      [unchanged.code, /^32 decisions from .*: 0 would flip, 0 would have the same effect/.test(unchanged.out)],
      [0, true],
      unchanged.out,
    );
  });

  it("evaluates a candidate in shadow mode as if it were enforced only with --enforce", async () => {
    const shadow = join(folder, "shadow");
    mkdirSync(shadow);
    writeFileSync(
      join(shadow, "payments.yaml"),
      "policy: payments\nmode: shadow\nrules:\n  - { name: nobody pays, tool: stripe, effect: deny }\n",
    );
    for (const against of [[], ["--against", "store"]]) {
      const reasons = async (...flags: string[]): Promise<string[]> => {
        const run = await assent(shadow, "--format", "json", ...against, ...flags);
        assert.equal(run.code, 0, run.err);
        return JSON.parse(run.out).flips.map(({ to }: { to: { policy: string | null } }) => to.policy);
      };
      assert.ok(!(await reasons()).includes("payments"));
      assert.deepEqual([...new Set(await reasons("--enforce"))], ["payments"]);
    }
  });

  it("prints for people and for pull requests, and text of an action cannot become markup", async () => {
    const text = await assent(candidate, "--examples", "1");
    assert.match(
      text.out,
      /^32 decisions from \S+ to \S+: 31 would flip, 0 would have the same effect by another rule or with other terms\n {5}26 {2}allow \(.*\) -> deny \(payments: nobody pays\)\n {9}e\.g\. [0-9a-f-]{36} {2}/,
    );
    const markdown = await assent(candidate, "--format", "markdown", "--examples", "20");
    assert.match(
      markdown.out,
      /^### 31 of 32 past decisions would flip\n[\s\S]*\| decisions \| from \| to \| examples \|\n\|---:\|---\|---\|---\|\n\| 26 \| \*\*allow\*\* /,
    );
    assert.ok(
      markdown.out.includes("`'evil' \\| **agent**`"),
      "inside a code span, its own marks and bars made harmless",
    );
    assert.ok(!markdown.out.includes("\u202e"));
  });

  it("fails with --fail-on-flips, on faulty policies, and without a service", async () => {
    assert.equal((await assent(candidate, "--fail-on-flips")).code, 1);
    assert.equal((await assent(candidate, "--limit", "3", "--format", "json")).out.includes('"evaluated":3'), true);
    writeFileSync(join(candidate, "broken.yaml"), "policy: broken\nrules:\n  - { name: r, effect: sometimes }\n");
    const broken = await assent(candidate);
    assert.equal(broken.code, 1);
    assert.match(broken.err, /^broken\.yaml:3:\d+: [\s\S]*nothing was evaluated/);
    rmSync(join(candidate, "broken.yaml"));
    assert.equal((await assent(candidate, "--against", "http://127.0.0.1:1")).code, 5);
  });
});

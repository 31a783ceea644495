/** What a comment on a commit contains: no policies of others, no flips of other commits, and whole lines. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { GithubClient } from "../../../plugins/policy-git/github-client.ts";
import { hideOtherPolicies } from "../../../plugins/policy-git/other-policies.ts";
import { backtest, readAllDecisions } from "../../../plugins/policies/backtest/backtest.ts";
import type { BacktestReport } from "../../../plugins/policies/backtest/report.ts";
import { buildPolicySet, compilePolicySet } from "../../../src/domain/policy/compile/compile.ts";
import { policy, rule } from "../../support/policy.ts";
import { startService } from "../../support/service.ts";

const set = (effect: "allow" | "deny") =>
  compilePolicySet(buildPolicySet([{ policy: "p", version: 1, definition: policy("p", [rule("all", effect)]) }]));

test("a backtest with previous policies counts only decisions that differ from theirs", async () => {
  const service = await startService({ policy: "policy: p\nrules: [{ name: all, effect: deny }]\n" });
  try {
    await service.call("POST", "/v1/actions", { body: { agent_id: "a", tool: "t", operation: "o" } });
    const span = { since: 0, until: Number.MAX_SAFE_INTEGER, limit: 10, budgetMs: Infinity, examples: 0 };
    const range = { ...span, visibility: { all: true } } as const;
    const flipped = async (previous: "allow" | "deny" | null): Promise<number[]> => {
      const before = previous === null ? null : set(previous);
      const report = await backtest(readAllDecisions(service.storage), set("allow"), range, undefined, before);
      return [report.evaluated, report.flipped];
    };
    assert.deepEqual(await flipped(null), [1, 1]);
    assert.deepEqual(await flipped("deny"), [1, 1]);
    assert.deepEqual(await flipped("allow"), [1, 0]);
  } finally {
    await service.close();
  }
});

test("policies of others have no name, and their flips are added up", () => {
  const outcome = (effect: "allow" | "deny", name: string) => ({ effect, policy: name, rule: `rule of ${name}` });
  const report: BacktestReport = {
    evaluated: 9,
    flipped: 6,
    otherwise: 0,
    erased: 0,
    unrecorded: 0,
    altered: 0,
    unlisted: 0,
    next: null,
    flips: [
      { from: outcome("allow", "own"), to: outcome("deny", "secret"), count: 3, examples: [] },
      { from: outcome("allow", "own"), to: outcome("deny", "hidden"), count: 2, examples: [] },
      { from: outcome("deny", "own"), to: { effect: "deny", policy: null, rule: null }, count: 1, examples: [] },
    ],
    counted: [
      { policy: "own", limit: "l", decisions: 1 },
      { policy: "secret", limit: "l", decisions: 1 },
    ],
  };
  const { flips, counted } = hideOtherPolicies(report, new Set(["own"]));
  assert.deepEqual(
    flips.map(({ from, to, count }) => [from.policy, to.policy, to.rule, count]),
    [
      ["own", "another policy", null, 5],
      ["own", null, null, 1],
    ],
  );
  assert.deepEqual(counted, [{ policy: "own", limit: "l", decisions: 1 }]);
});

test("a comment beyond the limit of GitHub ends after a whole line", async () => {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
    request.on("end", () => {
      bodies.push((JSON.parse(text) as { body: string }).body);
      response.writeHead(201).end("{}");
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  try {
    const api_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = new GithubClient({ repository: "a/b", token: "t", api_url, context: "c", comment: true });
    const line = `- \`${"x".repeat(96)}\``;
    await client.postComment("c", Array.from({ length: 1000 }, () => line).join("\n"), new AbortController().signal);
    const [body = ""] = bodies;
    assert.ok(body.length > 64_000 && body.length <= 65_000, String(body.length));
    const [last, ...list] = body
      .split("\n")
      .filter((each) => each !== "")
      .reverse();
    assert.match(last ?? "", /^The rest was omitted/);
    assert.deepEqual([...new Set(list)], [line]);
  } finally {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
});

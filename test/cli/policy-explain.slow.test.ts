/** `assent policy explain` on files and standard input. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { assent, assentInProcess, folderWith } from "../support/cli.ts";
import { POLICIES } from "../support/service.ts";

const ACTION = { agent_id: "bot", tool: "stripe", operation: "refund", params: { amount: 5_000, currency: "USD" } };
const NOW = ["--now", "2026-01-15T10:00:00Z"];

describe("explain", () => {
  test("shows the decision, each policy, each rule and each part of a condition", async () => {
    const run = await assent(["policy", "explain", POLICIES, "--action", "-", ...NOW], {
      input: JSON.stringify(ACTION),
    });
    assert.equal(run.code, 0, run.err);
    assert.ok(run.out.startsWith("require_approval  stripe refund by bot, at 2026-01-15T10:00:00.000Z\n"), run.out);
    for (const line of [
      '  decided by  payments, rule "large refunds"',
      "  approval    2 people, within 4h, then valid for 1h, a rejection blocks the same request for 1d, notifies finance",
      'mcp: does not apply: the tool "stripe" matches none of mcp.filesystem, assent-mcp',
      'payments: require_approval by rule "large refunds"  <- decides',
      "   - excessive refunds (deny): its condition is false",
      "       params.amount > 20000 = false",
      "         params.amount = 5000",
      "  => large refunds (require_approval): matches",
      "     other refunds (require_approval): not reached: an earlier rule decided",
      'email: does not apply: the tool "stripe" matches none of email',
      '   - secret stores (deny): the tool "stripe" matches none of *vault*, *secret*, *credential*, *password*, *passwd*, *keychain*, *keystore*, 1password*, bitwarden*, lastpass*, keepass*',
    ])
      assert.ok(run.out.split("\n").includes(line), `${line}\nin\n${run.out}`);
  });

  test("also reads YAML, with the submitting key, and prints JSON", async (t) => {
    const folder = folderWith(t, {
      "policies/a.yaml":
        'policy: a\nrules:\n  - name: mine\n    when: principal.owner == "ada" && params.nope == 1\n    effect: allow\n',
      "action.yaml": "agent_id: a\ntool: t\noperation: o\nprincipal: { owner: ada }\n",
    });
    const run = await assentInProcess(
      "policy",
      "explain",
      join(folder, "policies"),
      "--action",
      join(folder, "action.yaml"),
      ...NOW,
      "--format",
      "json",
    );
    const found = JSON.parse(run.out) as {
      now: string;
      decision: { reason_code: string };
      policies: {
        answer: unknown;
        rules: { outcome: string; condition: { parts: { expression: string; value: string | null }[] } }[];
      }[];
    };
    assert.deepEqual(
      [found.now, found.decision.reason_code, found.policies[0]?.answer],
      ["2026-01-15T10:00:00.000Z", "CONDITION_ERROR", { rule: "mine", effect: "deny", reason_code: "CONDITION_ERROR" }],
    );
    assert.deepEqual(
      found.policies[0]?.rules[0]?.condition.parts.find(({ expression }) => expression === "principal.owner")?.value,
      '"ada"',
    );
    const text = await assentInProcess(
      "policy",
      "explain",
      join(folder, "policies"),
      "--action",
      join(folder, "action.yaml"),
      ...NOW,
    );
    assert.ok(
      text.out.includes(
        '  !! mine (allow): its condition fails (CONDITION_ERROR): there is no field "nope"; test for it with has()',
      ),
      text.out,
    );
  });

  test("reads the usage of limits from the action, and names the limit that answers", async (t) => {
    const folder = folderWith(t, {
      "policies/a.yaml":
        "policy: a\nrules:\n  - { name: all, effect: allow }\nlimits:\n  - { name: daily, window: 24h, sum: params.amount, at_most: 6000, per: agent }\n",
      "fresh.json": JSON.stringify(ACTION),
      "used.json": JSON.stringify({ ...ACTION, used: { daily: 1000.5 } }),
      "typo.json": JSON.stringify({ ...ACTION, used: { dayly: 1 } }),
    });
    const run = (file: string) =>
      assentInProcess("policy", "explain", join(folder, "policies"), "--action", join(folder, file), ...NOW);
    const [fresh, used, typo] = [await run("fresh.json"), await run("used.json"), await run("typo.json")];
    assert.ok(
      fresh.out.includes(
        'a: allow by rule "all"  <- decides\n  => all (allow): matches\n   - limit daily (deny): the action stays within it, 0 of 6000 used before for bot\n',
      ),
      fresh.out,
    );
    assert.ok(used.out.includes('a: allow by rule "all"; deny by limit "daily"  <- decides\n'), used.out);
    assert.ok(
      used.out.includes("  => limit daily (deny): the action goes beyond it, 1000.5 of 6000 used before for bot\n"),
      used.out,
    );
    assert.deepEqual([typo.code, /there is no limit "dayly"/.test(typo.err)], [2, true]);
  });

  test("lists the obligations of the decision", async (t) => {
    const folder = folderWith(t, {
      "p/a.yaml":
        "policy: a\nrules:\n  - { name: capped, effect: allow, obligations: { set: { params.currency: EUR }, clamp: { params.amount: { max: 500 } } } }\n",
      "action.json": JSON.stringify(ACTION),
    });
    const files = [join(folder, "p"), "--action", join(folder, "action.json")];
    const run = await assentInProcess("policy", "explain", ...files, ...NOW);
    for (const line of ["  obligation  params.amount from any to 500", '  obligation  params.currency is "EUR"'])
      assert.ok(run.out.split("\n").includes(line), run.out);
  });

  test("removes terminal control characters from the action", async () => {
    const run = await assent(["policy", "explain", POLICIES, "--action", "-", ...NOW], {
      input: JSON.stringify({ ...ACTION, agent_id: "\u001b[2Jx\n::set-env", params: { amount: "\u001b]0;x\u0007" } }),
    });
    assert.equal(run.code, 0, run.err);
    // oxlint-disable-next-line no-control-regex -- these are the ones that must not be there
    assert.ok(!/[\u0000-\u0009\u000b-\u001f]|^::/m.test(run.out), JSON.stringify(run.out));
  });

  test("exits with 2 for an unreadable action and with 1 for faulty policies", async (t) => {
    const folder = folderWith(t, {
      "typo.json": '{ "agentid": "a",\n"tool": "t", "operation": "o" }',
      "two.yaml": "a: 1\n---\nb: 1\n",
      "empty.json": "",
      "half.json": "{",
      "bad/a.yaml": "policy: a\n",
      "ok.json": JSON.stringify(ACTION),
    });
    for (const [args, words] of [
      [[], /--action FILE is needed/],
      [["--action", join(folder, "none.json")], /none\.json cannot be read/],
      [["--action", join(folder, "typo.json")], /typo\.json:1:3: agentid: .*did you mean "agent_id"\?/],
      [["--action", join(folder, "empty.json")], /expected one action; got 0/],
      [["--action", join(folder, "half.json")], /half\.json:/],
      [["--action", join(folder, "ok.json"), "--now", "noon"], /--now must be a time such as/],
    ] as [string[], RegExp][]) {
      const run = await assentInProcess("policy", "explain", POLICIES, ...args);
      assert.deepEqual([run.code, words.test(run.err), run.out], [2, true, ""], run.err);
    }
    const faulty = await assentInProcess("policy", "explain", join(folder, "bad"), "--action", join(folder, "ok.json"));
    assert.deepEqual(
      [
        faulty.code,
        /^a\.yaml:1:1: .*\nassent: the policies of .* are not valid; nothing was decided\n$/.test(faulty.err),
      ],
      [1, true],
      faulty.err,
    );
  });
});

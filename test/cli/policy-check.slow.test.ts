/** `assent policy check` and `assent policy test` in every format, as CI systems read them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, test } from "node:test";
import { Ajv } from "ajv";
import { ROOT } from "../support/process.ts";
import { NODE, scriptOf } from "../support/runtimes.ts";
import {
  assent,
  assentInProcess,
  assentInProcessInFolder,
  folderWith,
  runProgram,
  type Run,
  writeFiles,
} from "../support/cli.ts";

const BAD = "policy: a\nrules:\n  - name: r\n    efect: allow\n  - name: s\n    effect: allow\n    when: 1 +\n";
const GOOD = "policy: a\nrules:\n  - name: r\n    tool: t\n    effect: allow\n  - name: s\n    effect: deny\n";
const cases = (...lines: string[]): string => `now: 2026-01-01T00:00:00Z\ncases:\n${lines.join("")}`;
const one = (name: string, effect: string, tool = "t"): string =>
  `  - name: ${JSON.stringify(name)}\n    action: { agent_id: a, tool: ${tool}, operation: o }\n    expect: { effect: ${effect} }\n`;

/** The requirements of SARIF 2.1.0 (OASIS, appendix C, sarif-schema-2.1.0.json) for the members that are used here. */
const TEXT = { type: "object", required: ["text"], properties: { text: { type: "string", minLength: 1 } } };
const SARIF = {
  type: "object",
  required: ["version", "runs"],
  additionalProperties: false,
  properties: {
    $schema: { type: "string", format: "uri" },
    version: { const: "2.1.0" },
    runs: {
      type: "array",
      items: {
        type: "object",
        required: ["tool", "results"],
        additionalProperties: false,
        properties: {
          columnKind: { enum: ["utf16CodeUnits", "unicodeCodePoints"] },
          tool: {
            type: "object",
            required: ["driver"],
            properties: {
              driver: {
                type: "object",
                required: ["name", "rules"],
                properties: {
                  name: { type: "string" },
                  rules: {
                    type: "array",
                    uniqueItems: true,
                    items: {
                      type: "object",
                      // GitHub's code scanning requires the texts, too.
                      required: ["id", "shortDescription", "fullDescription", "help"],
                      properties: {
                        id: { type: "string" },
                        shortDescription: TEXT,
                        fullDescription: TEXT,
                        help: TEXT,
                      },
                    },
                  },
                },
              },
            },
          },
          results: {
            type: "array",
            items: {
              type: "object",
              required: ["message", "ruleId", "ruleIndex", "level", "locations"],
              additionalProperties: false,
              properties: {
                message: TEXT,
                ruleId: { type: "string" },
                ruleIndex: { type: "integer", minimum: 0 },
                level: { enum: ["none", "note", "warning", "error"] },
                locations: {
                  type: "array",
                  minItems: 1,
                  items: {
                    type: "object",
                    required: ["physicalLocation"],
                    properties: {
                      physicalLocation: {
                        type: "object",
                        required: ["artifactLocation"],
                        additionalProperties: false,
                        properties: {
                          artifactLocation: {
                            type: "object",
                            required: ["uri"],
                            properties: { uri: { type: "string", pattern: "^[^\\\\ ]+$" } },
                          },
                          region: {
                            type: "object",
                            required: ["startLine", "endLine"],
                            additionalProperties: false,
                            properties: {
                              startLine: { type: "integer", minimum: 1 },
                              endLine: { type: "integer", minimum: 1 },
                              startColumn: { type: "integer", minimum: 1 },
                            },
                          },
                        },
                      },
                    },
                  },
                },
              },
            },
          },
        },
      },
    },
  },
};
const isSarif = new Ajv({ strict: false, validateFormats: false }).compile(SARIF);

interface SarifResult {
  ruleId: string;
  ruleIndex: number;
  message: { text: string };
  locations: {
    physicalLocation: { artifactLocation: { uri: string }; region?: { startLine: number; startColumn: number } };
  }[];
}

function resultsOf(text: string): SarifResult[] {
  const log = JSON.parse(text) as { runs: [{ tool: { driver: { rules: { id: string }[] } }; results: SarifResult[] }] };
  assert.ok(isSarif(log), JSON.stringify(isSarif.errors));
  const [run] = log.runs;
  for (const { ruleId, ruleIndex } of run.results) assert.equal(run.tool.driver.rules[ruleIndex]?.id, ruleId);
  return run.results;
}

describe("check", () => {
  test("reports all faults at once, as text and as JSON under both names", async (t) => {
    const folder = folderWith(t, { "a.yaml": BAD, "b_test.yaml": "cases: []\n" });
    const text = await assent(["policy", "check", folder]);
    assert.deepEqual([text.code, text.out], [1, ""]);
    assert.deepEqual(
      text.err.split("\n").map((line) => line.split(" ")[0]),
      ["a.yaml:4:5:", "a.yaml:7:13:", "b_test.yaml:1:1:", "b_test.yaml:1:8:", ""],
    );
    const [flag, format] = await Promise.all([
      assentInProcess("policy", "check", folder, "--json"),
      assentInProcess("policy", "check", folder, "--format", "json"),
    ]);
    assert.deepEqual(flag, format);
    assert.equal((JSON.parse(flag.out) as { faults: unknown[] }).faults.length, 4);
  });

  test("writes SARIF with positions, and paths that a viewer finds from the working folder", async (t) => {
    const root = folderWith(t, {
      "my policies/a b.yaml": BAD.replace("efect", "effect"),
      "my policies/x_test.yaml": "cases: []\n",
      "good/a.yaml": GOOD,
    });
    const run = await assentInProcessInFolder(root, "policy", "check", "my policies", "--format", "sarif");
    assert.equal(run.code, 1);
    const results = resultsOf(run.out);
    assert.deepEqual(results[0]?.locations[0]?.physicalLocation, {
      artifactLocation: { uri: "my%20policies/a%20b.yaml" },
      region: { startLine: 7, startColumn: 13, endLine: 7 },
    });
    assert.deepEqual(
      results.map(({ ruleId }) => ruleId),
      ["condition", "missing-key", "wrong-value"],
    );
    assert.deepEqual(
      resultsOf((await assentInProcessInFolder(root, "policy", "check", "good", "--format", "sarif")).out),
      [],
    );
    const outside = resultsOf(
      (await assentInProcessInFolder(join(root, "good"), "policy", "check", "../my policies", "--format", "sarif")).out,
    );
    assert.ok(
      outside[0]?.locations[0]?.physicalLocation.artifactLocation.uri.startsWith(pathToFileURL(root).href),
      "absolute where it lies outside",
    );
    const missing = resultsOf(
      (await assentInProcessInFolder(root, "policy", "check", "nowhere", "--format", "sarif")).out,
    );
    assert.deepEqual(
      missing.map(({ ruleId, locations }) => [ruleId, locations[0]?.physicalLocation]),
      [["policy-folder", { artifactLocation: { uri: "nowhere" } }]],
    );
  });

  test("reports limits that the policies exceed together, as the service does", async (t) => {
    const shadow = (n: number): string =>
      `policy: p${String(n).padStart(3, "0")}\nmode: shadow\nrules:\n  - name: r\n    effect: allow\n`;
    const folder = folderWith(
      t,
      Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`p${String(n).padStart(3, "0")}.yaml`, shadow(n)])),
    );
    for (const verb of ["check", "test"]) {
      const run = await assentInProcess("policy", verb, folder);
      assert.equal(run.code, 1);
      assert.match(run.err, /^p100\.yaml:1:9: the policy "p100" is the 101st policy in shadow mode/);
    }
  });

  test("distinguishes kinds of faults in SARIF, so that one kind can be suppressed", async (t) => {
    const rule = "rules:\n  - { name: r, effect: allow }\n";
    const folder = folderWith(t, {
      "condition.yaml": `policy: a\n${rule.replace("effect", "when: 1 +, effect")}`,
      "missing.yaml": rule,
      "pattern.yaml": `policy: b\n${rule.replace("effect", 'tool: "x ", effect')}`,
      "repeated.yaml": `policy: c\n${rule}${rule.split("\n")[1]}\n`,
      "same.yaml": `policy: d\n${rule}---\npolicy: d\n${rule}`,
      "syntax.yaml": "policy: e\nrules: [\n",
      "unknown.yaml": `policy: f\n${rule.replace("name", "nam")}`,
      "unreadable.yaml": "# nothing\n",
      "value.yaml": `policy: g\n${rule.replace("allow", "maybe")}`,
    });
    const results = resultsOf((await assentInProcess("policy", "check", folder, "--format", "sarif")).out);
    assert.deepEqual(
      results.map(({ ruleId, locations }) => [
        ruleId,
        locations[0]?.physicalLocation.artifactLocation.uri.split("/").at(-1),
      ]),
      [
        ["condition", "condition.yaml"],
        ["missing-key", "missing.yaml"],
        ["pattern", "pattern.yaml"],
        ["repeated-name", "repeated.yaml"],
        ["yaml-syntax", "syntax.yaml"],
        ["unknown-key", "unknown.yaml"],
        ["unreadable-file", "unreadable.yaml"],
        ["wrong-value", "value.yaml"],
        ["repeated-name", "same.yaml"],
      ],
    );
  });

  test("reports one fault for one mistake, and missing quotes as such", async (t) => {
    const policy = (...lines: string[]): string => `policy: a\nrules:\n  - name: r\n${lines.join("\n")}\n`;
    const rest = ["    tool: t", "    operation: o", "    effect: allow", "  - name: s", "    effect: deny"];
    const slips: [slip: string, fault: RegExp][] = [
      [policy("   tool: t", ...rest), /^a\.yaml:4:\d+: /],
      [policy("\ttool: t", ...rest), /^a\.yaml:4:\d+: tabs/],
      [policy("    when: params.n > 1 ? true : false", ...rest), /^a\.yaml:4:\d+: .*quote the condition/],
      [policy("    when: params.n > 1", "      ? true : false", ...rest), /^a\.yaml:\d+:\d+: .*quote the condition/],
      [policy("    when: !has(params.n)", ...rest), /^a\.yaml:4:\d+: .*quote the condition/],
      [policy('    when: "x" == params.n', ...rest), /^a\.yaml:4:\d+: .*quote the condition/],
      [policy("    reason: note: see above", ...rest), /^a\.yaml:4:\d+: .*quote the text/],
      [policy("    efect: allow"), /^a\.yaml:4:5: .*did you mean "effect"\?/],
      [policy("    tool: t", "    effect: allow").replace("rules", "rule"), /^a\.yaml:2:1: .*did you mean "rules"\?/],
    ];
    for (const [text, fault] of slips) {
      const run = await assentInProcess("policy", "check", folderWith(t, { "a.yaml": text }));
      const told = run.err.trimEnd().split("\n");
      assert.equal(told.length, 1, `${text}\n${run.err}`);
      assert.match(told[0] ?? "", fault, text);
    }
  });

  test("warns of channels that the configuration lacks, if there is a configuration", async (t) => {
    const asks = (channel: string): string =>
      `policy: ${channel}\nrules:\n  - { name: r, effect: require_approval, approval: { notify: [${channel}] } }\n`;
    const channels = "channels:\n  finance: { notifier: notify-webhook, places: [{ to: https://hooks.example/x }] }\n";
    const root = folderWith(t, {
      "policies/a.yaml": asks("finance"),
      "policies/b.yaml": asks("finanec"),
      "assent.yaml": channels,
      "other.yaml": channels.replace("finance", "finanec"),
      "broken.yaml": "channels: [",
    });
    const check = (...args: string[]): Promise<Run> =>
      assentInProcessInFolder(root, "policy", "check", "policies", ...args);
    const told = await check();
    assert.equal(told.code, 0, "a warning is no fault");
    assert.match(told.err, /^warning {2}b\.yaml:1:9: .*channel "finanec".*did you mean "finance"\?\n$/);
    assert.match((await check("--config", "other.yaml")).err, /^warning {2}a\.yaml:1:9: .*channel "finance"/);
    const broken = await assent(["policy", "check", "policies", "--config", "broken.yaml"], { cwd: root });
    assert.notEqual(broken.code, 0);
    const [result, ...others] = resultsOf((await check("--format", "sarif")).out) as (SarifResult & {
      level: string;
    })[];
    assert.deepEqual([result?.ruleId, result?.level, others], ["unknown-channel", "warning", []]);
    const json = JSON.parse((await check("--json")).out) as { faults: unknown[]; warnings: { file: string }[] };
    assert.deepEqual([json.faults, json.warnings.map(({ file }) => file)], [[], ["b.yaml"]]);
    // Nothing is known without a configuration, or with one whose variables are set elsewhere.
    for (const text of ["", 'channels: { finance: { notifier: "${NOT_SET_HERE}" } }\n']) {
      const elsewhere = folderWith(t, { "p/b.yaml": asks("finanec"), ...(text === "" ? {} : { "assent.yaml": text }) });
      assert.equal((await assentInProcessInFolder(elsewhere, "policy", "check", "p")).err, "");
    }
  });

  test("warns of rules without effect and without tests, and fails on warnings with --strict", async (t) => {
    const unreachable = "policy: a\nrules:\n  - { name: r, effect: allow }\n  - { name: s, tool: t, effect: deny }\n";
    const folder = folderWith(t, { "a.yaml": unreachable, "a_test.yaml": cases(one("c", "allow")) });
    const run = await assentInProcess("policy", "check", folder);
    assert.equal(run.code, 0, "a warning is no fault");
    assert.deepEqual(run.err.trimEnd().split("\n"), [
      'warning  a.yaml:4:5: the rule "s" never decides, because "r" matches the same actions first',
      'warning  a.yaml:4:13: no test reaches the rule "s" of "a"',
    ]);
    const strict = await assentInProcess("policy", "check", folder, "--strict");
    assert.deepEqual([strict.code, strict.out], [1, ""]);
    assert.equal((await assentInProcess("policy", "check", folderWith(t, { "a.yaml": GOOD }), "--strict")).code, 0);
    const ids = resultsOf((await assentInProcess("policy", "check", folder, "--format", "sarif")).out) as SarifResult[];
    assert.deepEqual(
      ids.map(({ ruleId }) => ruleId),
      ["unreachable-rule", "untested-rule"],
    );
  });

  test("warns of files that look like policies and are not loaded", async (t) => {
    const folder = folderWith(t, {
      "a.yaml": GOOD,
      "b.YAML": GOOD.replace("policy: a", "policy: b"),
      ".c.yaml": GOOD.replace("policy: a", "policy: c"),
      "team/d.yaml": GOOD.replace("policy: a", "policy: d"),
    });
    const run = await assentInProcess("policy", "check", folder);
    assert.deepEqual([run.code, run.out], [0, "1 policy is valid\n"]);
    assert.deepEqual(run.err.trimEnd().split("\n"), [
      "warning  .c.yaml: looks like a policy and is not loaded, because its name or folder begins with a dot",
      "warning  b.YAML: looks like a policy and is not loaded, because its name does not end in .yaml or .yml",
      "note  not loaded without --recursive: team/d.yaml",
    ]);
    assert.equal((await assentInProcess("policy", "check", folder, "--strict")).code, 1);
    const json = JSON.parse((await assentInProcess("policy", "check", folder, "--json")).out) as { unloaded: unknown };
    assert.deepEqual(json.unloaded, [
      { file: ".c.yaml", reason: "hidden" },
      { file: "b.YAML", reason: "ending" },
      { file: "team/d.yaml", reason: "subfolder" },
    ]);
    const ids = resultsOf((await assentInProcess("policy", "check", folder, "--format", "sarif")).out) as SarifResult[];
    assert.deepEqual(
      ids.map(({ ruleId }) => ruleId),
      ["unloaded-policy", "unloaded-policy"],
    );
  });

  test("text of a file cannot start a line or reach a terminal", async (t) => {
    const folder = folderWith(t, {
      "a.yaml": GOOD,
      "a_test.yaml": cases(one("x\n::set-output name=a::b\u001b[2J", "deny")),
    });
    const run = await assentInProcess("policy", "test", folder);
    assert.ok(!/^::/m.test(run.out + run.err) && !run.err.includes("\u001b"), run.err);
    assert.match(run.err, /FAIL {2}a_test\.yaml: x\ufffd::set-output/);
  });
});

describe("test", () => {
  test("names the rules that no test reaches, and fails if there are too many", async (t) => {
    const folder = folderWith(t, { "a.yaml": GOOD, "a_test.yaml": cases(one("c", "allow")) });
    const told = await assentInProcess("policy", "test", folder, "--coverage");
    assert.deepEqual(
      [told.code, told.out],
      [0, "ok    a_test.yaml: c\n1 passed, 0 failed\n1 of 2 rules are reached (50 %)\n"],
    );
    assert.equal(told.err, 'none  a.yaml:6: a: no test reaches the rule "s"\n');
    const short = await assentInProcess("policy", "test", folder, "--min-coverage", "100");
    assert.equal(short.code, 1);
    assert.match(short.err, /50 % of the rules are reached, and --min-coverage requires 100 %/);
    assert.equal((await assentInProcess("policy", "test", folder, "--min-coverage", "50")).code, 0);
    const json = JSON.parse(
      (await assentInProcess("policy", "test", folder, "--coverage", "--format", "json")).out,
    ) as {
      coverage: unknown;
      passed: number;
    };
    assert.deepEqual(
      [json.passed, json.coverage],
      [
        1,
        {
          percent: 50,
          rules: [
            { file: "a.yaml", line: 3, policy: "a", rule: "r", reached: 1, failed: 0, condition: null },
            { file: "a.yaml", line: 6, policy: "a", rule: "s", reached: 0, failed: 0, condition: null },
          ],
        },
      ],
    );
    for (const wrong of ["", "101", "-1", "all"])
      assert.equal((await assentInProcess("policy", "test", folder, `--min-coverage=${wrong}`)).code, 2, wrong);
  });

  test("writes the coverage by line as LCOV, and failing tests and uncovered rules as SARIF", async (t) => {
    const folder = folderWith(t, { "a.yaml": GOOD, "a_test.yaml": cases(one("c", "allow")) });
    const trace = await assentInProcess("policy", "test", folder, "--format", "lcov");
    assert.deepEqual(
      [trace.code, trace.out],
      [0, `TN:\nSF:${folder}/a.yaml\nDA:3,1\nDA:6,0\nLF:2\nLH:1\nend_of_record\n`],
    );
    const conditional = GOOD.replace(
      "    effect: allow",
      "    when: >-\n      params.n == 1\n      || params.n == 2\n    effect: allow",
    );
    writeFiles(folder, {
      "a.yaml": conditional,
      "a_test.yaml": cases(one("c", "allow").replace("operation: o", "operation: o, params: { n: 1 }")),
    });
    const branches = await assentInProcess("policy", "test", folder, "--format", "lcov");
    assert.equal(
      branches.out,
      `TN:\nSF:${folder}/a.yaml\nBRDA:6,0,0,1\nBRDA:6,0,1,0\nBRF:2\nBRH:1\nDA:3,1\nDA:6,1\nDA:7,1\nDA:9,0\nLF:4\nLH:3\nend_of_record\n`,
    );
    writeFiles(folder, { "a.yaml": GOOD, "a_test.yaml": cases(one("c", "deny")) });
    const failed = await assentInProcess("policy", "test", folder, "--format", "sarif", "--coverage");
    assert.equal(failed.code, 1);
    assert.deepEqual(
      resultsOf(failed.out).map(({ ruleId }) => ruleId),
      ["failing-test", "untested-rule"],
    );
    assert.match(failed.out, /"startLine": 6/);
  });

  test("writes JUnit that an XML parser reads back", async (t) => {
    const name = `<"&'> \u0007 \ud83d\ude00`;
    const folder = folderWith(t, { "a.yaml": GOOD, "a_test.yaml": cases(one(name, "deny"), one("fine", "allow")) });
    const run = await assentInProcess("policy", "test", folder, "--format", "junit", "--min-coverage", "100");
    assert.equal(run.code, 1);
    assert.match(
      run.out,
      /^<\?xml version="1\.0" encoding="UTF-8"\?>\n<testsuites name="assent policy test" tests="3" failures="2" /,
    );
    assert.ok(run.out.includes(`name="&lt;&quot;&amp;'&gt; \ufffd \ud83d\ude00"`), run.out);
    assert.match(
      run.out,
      /<testsuite name="coverage" tests="1" failures="1" [^>]*>\n {4}<testcase [^>]*name="[^"]*a\.yaml: a: s" time="0"><failure message="no test reaches the rule"\/><\/testcase>/,
    );
    const read = await runProgram(
      "python3",
      [
        "-c",
        "import sys,xml.dom.minidom as m; d=m.parseString(sys.stdin.buffer.read()); print([c.getAttribute('name') for c in d.getElementsByTagName('testcase')][1])",
      ],
      { input: run.out },
    ).catch(() => null);
    if (read !== null) assert.deepEqual([read.code, read.out], [0, "fine\n"], read.err);
  });

  test("writes JUnit that Jenkins' schema accepts", async (t) => {
    // junit-10.xsd of Jenkins' xUnit plugin: permitted and required members of each element.
    const schema: Record<string, { may: string[]; must: string[]; inside: string[] }> = {
      testsuites: { may: ["name", "time", "tests", "failures", "errors"], must: [], inside: ["testsuite"] },
      testsuite: {
        may: [
          "name",
          "tests",
          "failures",
          "errors",
          "time",
          "skipped",
          "timestamp",
          "hostname",
          "id",
          "package",
          "file",
        ],
        must: ["name", "tests", "failures", "errors"],
        inside: ["testcase"],
      },
      testcase: { may: ["name", "time", "classname", "group"], must: ["name"], inside: ["failure"] },
      failure: { may: ["type", "message"], must: [], inside: [] },
    };
    const good = folderWith(t, { "a.yaml": GOOD, "a_test.yaml": cases(one("c", "deny"), one("d", "allow")) });
    const bad = folderWith(t, { "a.yaml": BAD });
    for (const args of [[good], [good, "--min-coverage", "100"], [bad]]) {
      const { out } = await assentInProcess("policy", "test", ...args, "--format", "junit");
      const open: string[] = [];
      let seen = 0;
      for (const [, end, name = "", attributes = "", empty] of out.matchAll(
        /<(\/?)([a-z]+)((?: [a-z]+="[^"]*")*)(\/?)>/g,
      )) {
        if (end === "/") {
          assert.equal(open.pop(), name);
          continue;
        }
        seen++;
        const parent = open.at(-1);
        assert.ok(
          parent === undefined ? name === "testsuites" : schema[parent]?.inside.includes(name),
          `${name} in ${parent}`,
        );
        const names = [...attributes.matchAll(/ ([a-z]+)="([^"]*)"/g)].map(([, attribute = "", value = ""]) => {
          if (attribute === "time") assert.match(value, /^\d{0,3}(\.\d*)?$/);
          return attribute;
        });
        for (const attribute of names) assert.ok(schema[name]?.may.includes(attribute), `${name} has no ${attribute}`);
        for (const attribute of schema[name]?.must ?? [])
          assert.ok(names.includes(attribute), `${name} needs ${attribute}`);
        if (empty !== "/") open.push(name);
      }
      assert.ok(seen > 3 && open.length === 0, out);
    }
  });

  test("a faulty file is a failure in JUnit too", async (t) => {
    const folder = folderWith(t, { "a.yaml": BAD });
    const run = await assentInProcess("policy", "test", folder, "--format", "junit");
    assert.equal(run.code, 1);
    assert.match(run.out, /tests="2" failures="2"[\s\S]*name="line 4, column 5"[\s\S]*did you mean &quot;effect&quot;/);
  });
});

test("each subcommand has help, and mistyped names are reported", async () => {
  const whole = await assentInProcess("policy", "--help");
  const verbs = [...whole.out.matchAll(/^ {2}(\w+) {2,}\S/gm)].map((match) => match[1] as string);
  assert.ok(verbs.length >= 3);
  const page = readFileSync(join(ROOT, "docs/cli.md"), "utf8");
  for (const verb of verbs) {
    const row = page.split("\n").find((line) => line.startsWith(`| \`assent policy ${verb} `)) ?? "";
    const [help, about] = await Promise.all([
      assentInProcess("policy", verb, "--help"),
      assentInProcess("help", "policy", verb),
    ]);
    assert.deepEqual([help.code, about], [0, help]);
    assert.match(help.out, new RegExp(`^usage: assent policy ${verb}\\b[\\s\\S]*\\nexamples:\\n {2}`));
    const formats = /--format FORMAT +(.*)/.exec(help.out)?.[1]?.match(/text|json|sarif|junit|markdown/g) ?? [];
    assert.deepEqual(
      [...row.matchAll(/`(text|json|sarif|junit|markdown)`/g)].map((match) => match[1]),
      formats,
      `docs/cli.md: ${row}`,
    );
  }
  const wrong = await assentInProcess("policy", "chek");
  assert.deepEqual(
    [wrong.code, /has no subcommand "chek"; .*did you mean "check"\?/.test(wrong.err)],
    [2, true],
    wrong.err,
  );
  assert.match(
    (await assentInProcess("policy", "check", "--format", "xml")).err,
    /--format must be text, json or sarif; got "xml"/,
  );
});

test(
  "on a terminal, progress is shown on standard error",
  { skip: process.platform === "linux" ? false : "script(1) differs elsewhere" },
  async (t) => {
    const run = (words: string): Promise<Run> => runProgram("script", ["-qec", words, "/dev/null"]);
    const folder = folderWith(t, {
      "status.mjs": `import { withStatusLine } from ${JSON.stringify(scriptOf("src/cli/status-line"))};
      await withStatusLine({ watched: process.stderr.isTTY === true }, async (say) => say("half done"));
      console.log("done");`,
      "package.json": '{"type":"module"}',
    });
    const status = join(folder, "status.mjs");
    const seen = await run([process.execPath, ...NODE, status].join(" ")).catch(() => null);
    if (seen === null) return t.skip("no script(1) here");
    assert.ok(seen.out.includes("\r\u001b[Khalf done\r\u001b[Kdone"), JSON.stringify(seen.out));
    const piped = await runProgram(process.execPath, [...NODE, status]);
    assert.deepEqual(piped, { code: 0, out: "done\n", err: "" });
  },
);

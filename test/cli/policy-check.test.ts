/** `assent policy check` and `assent policy test` in every format, as CI systems read them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, test } from "node:test";
import { Ajv } from "ajv";
import { ROOT } from "../support/process.ts";
import { assent, assentHere, folderWith, program, TSX, type Run } from "../support/cli.ts";

const BAD = "policy: a\nrules:\n  - name: r\n    efect: allow\n  - name: s\n    effect: allow\n    when: 1 +\n";
const GOOD = "policy: a\nrules:\n  - name: r\n    tool: t\n    effect: allow\n  - name: s\n    effect: deny\n";
const cases = (...lines: string[]): string => `now: 2026-01-01T00:00:00Z\ncases:\n${lines.join("")}`;
const one = (name: string, effect: string, tool = "t"): string => `  - name: ${JSON.stringify(name)}\n    action: { agent_id: a, tool: ${tool}, operation: o }\n    expect: { effect: ${effect} }\n`;

/** What SARIF 2.1.0 (OASIS, appendix C, sarif-schema-2.1.0.json) requires of the parts that are used here. */
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
                properties: { name: { type: "string" }, rules: { type: "array", uniqueItems: true, items: { type: "object", required: ["id"], properties: { id: { type: "string" }, shortDescription: TEXT, help: TEXT } } } },
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
                          artifactLocation: { type: "object", required: ["uri"], properties: { uri: { type: "string", pattern: "^[^\\\\ ]+$" } } },
                          region: { type: "object", required: ["startLine"], additionalProperties: false, properties: { startLine: { type: "integer", minimum: 1 }, startColumn: { type: "integer", minimum: 1 } } },
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
  locations: { physicalLocation: { artifactLocation: { uri: string }; region?: { startLine: number; startColumn: number } } }[];
}

function resultsOf(text: string): SarifResult[] {
  const log = JSON.parse(text) as { runs: [{ tool: { driver: { rules: { id: string }[] } }; results: SarifResult[] }] };
  assert.ok(isSarif(log), JSON.stringify(isSarif.errors));
  const [run] = log.runs;
  for (const { ruleId, ruleIndex } of run.results) assert.equal(run.tool.driver.rules[ruleIndex]?.id, ruleId);
  return run.results;
}

describe("check", () => {
  test("says all faults at once, as text and as JSON under both names", async (t) => {
    const folder = folderWith(t, { "a.yaml": BAD, "b_test.yaml": "cases: []\n" });
    const text = await assent(["policy", "check", folder]);
    assert.deepEqual([text.code, text.out], [1, ""]);
    assert.deepEqual(text.err.split("\n").map((line) => line.split(" ")[0]), ["a.yaml:3:5:", "a.yaml:4:5:", "a.yaml:7:13:", "b_test.yaml:1:1:", "b_test.yaml:1:8:", ""]);
    const [flag, format] = await Promise.all([assentHere("policy", "check", folder, "--json"), assentHere("policy", "check", folder, "--format", "json")]);
    assert.deepEqual(flag, format);
    assert.equal((JSON.parse(flag.out) as { faults: unknown[] }).faults.length, 5);
  });

  test("writes SARIF with places, and paths that a viewer finds from the working folder", async (t) => {
    const root = folderWith(t, { "my policies/a b.yaml": BAD.replace("efect", "effect"), "my policies/x_test.yaml": "cases: []\n", "good/a.yaml": GOOD });
    const run = await assent(["policy", "check", "my policies", "--format", "sarif"], { cwd: root });
    assert.equal(run.code, 1);
    const results = resultsOf(run.out);
    assert.deepEqual(results[0]?.locations[0]?.physicalLocation, { artifactLocation: { uri: "my%20policies/a%20b.yaml" }, region: { startLine: 7, startColumn: 13 } });
    assert.deepEqual(results.map(({ ruleId }) => ruleId), ["policy-file", "policy-test-file", "policy-test-file"]);
    assert.deepEqual(resultsOf((await assent(["policy", "check", "good", "--format", "sarif"], { cwd: root })).out), []);
    const outside = resultsOf((await assent(["policy", "check", "../my policies", "--format", "sarif"], { cwd: join(root, "good") })).out);
    assert.ok(outside[0]?.locations[0]?.physicalLocation.artifactLocation.uri.startsWith(pathToFileURL(root).href), "absolute where it lies outside");
    const missing = resultsOf((await assent(["policy", "check", "nowhere", "--format", "sarif"], { cwd: root })).out);
    assert.deepEqual(missing.map(({ ruleId, locations }) => [ruleId, locations[0]?.physicalLocation]), [["policy-folder", { artifactLocation: { uri: "nowhere" } }]]);
  });

  test("finds what policies are too much of together, where the service would", async (t) => {
    const shadow = (n: number): string => `policy: p${String(n).padStart(3, "0")}\nmode: shadow\nrules:\n  - name: r\n    effect: allow\n`;
    const folder = folderWith(t, Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`p${String(n).padStart(3, "0")}.yaml`, shadow(n)])));
    for (const verb of ["check", "test"]) {
      const run = await assentHere("policy", verb, folder);
      assert.equal(run.code, 1);
      assert.match(run.err, /^p100\.yaml:1:9: the policy "p100" is the 101st policy in shadow mode/);
    }
  });

  test("lets nothing of a file begin a line, or reach a terminal", async (t) => {
    const folder = folderWith(t, { "a.yaml": GOOD, "a_test.yaml": cases(one("x\n::set-output name=a::b\u001b[2J", "deny")) });
    const run = await assentHere("policy", "test", folder);
    assert.ok(!/^::/m.test(run.out + run.err) && !run.err.includes("\u001b"), run.err);
    assert.match(run.err, /FAIL {2}a_test\.yaml: x\ufffd::set-output/);
  });
});

describe("test", () => {
  test("names the rules that no test reaches, and fails when there are too many", async (t) => {
    const folder = folderWith(t, { "a.yaml": GOOD, "a_test.yaml": cases(one("c", "allow")) });
    const told = await assentHere("policy", "test", folder, "--coverage");
    assert.deepEqual([told.code, told.out], [0, "ok    a_test.yaml: c\n1 passed, 0 failed\n1 of 2 rules are reached (50 %)\n"]);
    assert.equal(told.err, 'none  a.yaml: a: no test reaches the rule "s"\n');
    const short = await assentHere("policy", "test", folder, "--min-coverage", "100");
    assert.equal(short.code, 1);
    assert.match(short.err, /50 % of the rules are reached, and --min-coverage asks for 100 %/);
    assert.equal((await assentHere("policy", "test", folder, "--min-coverage", "50")).code, 0);
    const json = JSON.parse((await assentHere("policy", "test", folder, "--coverage", "--format", "json")).out) as { coverage: unknown; passed: number };
    assert.deepEqual([json.passed, json.coverage], [1, { percent: 50, rules: [{ file: "a.yaml", policy: "a", rule: "r", reached: 1, failed: 0 }, { file: "a.yaml", policy: "a", rule: "s", reached: 0, failed: 0 }] }]);
    for (const wrong of ["", "101", "-1", "all"]) assert.equal((await assentHere("policy", "test", folder, `--min-coverage=${wrong}`)).code, 2, wrong);
  });

  test("writes JUnit that an XML parser reads back", { timeout: 60_000 }, async (t) => {
    const name = `<"&'> \u0007 \ud83d\ude00`;
    const folder = folderWith(t, { "a.yaml": GOOD, "a_test.yaml": cases(one(name, "deny"), one("fine", "allow")) });
    const run = await assentHere("policy", "test", folder, "--format", "junit", "--min-coverage", "100");
    assert.equal(run.code, 1);
    assert.match(run.out, /^<\?xml version="1\.0" encoding="UTF-8"\?>\n<testsuites name="assent policy test" tests="3" failures="2" /);
    assert.ok(run.out.includes(`name="&lt;&quot;&amp;'&gt; \ufffd \ud83d\ude00"`), run.out);
    assert.match(run.out, /<testsuite name="coverage" tests="1" failures="1" [^>]*>\n {4}<testcase [^>]*name="[^"]*a\.yaml: a: s" time="0"><failure message="no test reaches the rule"\/><\/testcase>/);
    const read = await program("python3", ["-c", "import sys,xml.dom.minidom as m; d=m.parseString(sys.stdin.buffer.read()); print([c.getAttribute('name') for c in d.getElementsByTagName('testcase')][1])"], { input: run.out }).catch(() => null);
    if (read !== null) assert.deepEqual([read.code, read.out], [0, "fine\n"], read.err);
  });

  test("a faulty file is a failure in JUnit too", async (t) => {
    const folder = folderWith(t, { "a.yaml": BAD });
    const run = await assentHere("policy", "test", folder, "--format", "junit");
    assert.equal(run.code, 1);
    assert.match(run.out, /tests="3" failures="3"[\s\S]*name="line 4, column 5"[\s\S]*did you mean &quot;effect&quot;/);
  });
});

test("each verb has help of its own, and what is mistyped is named", async () => {
  const whole = await assentHere("policy", "--help");
  const verbs = [...whole.out.matchAll(/^ {2}(\w+) {2,}\S/gm)].map((match) => match[1] as string);
  assert.ok(verbs.length >= 3);
  const page = readFileSync(join(ROOT, "docs/cli.md"), "utf8");
  for (const verb of verbs) {
    const row = page.split("\n").find((line) => line.startsWith(`| \`assent policy ${verb} `)) ?? "";
    const [help, about] = await Promise.all([assentHere("policy", verb, "--help"), assentHere("help", "policy", verb)]);
    assert.deepEqual([help.code, about], [0, help]);
    assert.match(help.out, new RegExp(`^usage: assent policy ${verb}\\b[\\s\\S]*\\nexamples:\\n {2}`));
    const formats = /--format FORMAT +(.*)/.exec(help.out)?.[1]?.match(/text|json|sarif|junit|markdown/g) ?? [];
    assert.deepEqual([...row.matchAll(/`(text|json|sarif|junit|markdown)`/g)].map((match) => match[1]), formats, `docs/cli.md: ${row}`);
  }
  const wrong = await assentHere("policy", "chek");
  assert.deepEqual([wrong.code, /not "chek"; did you mean "check"\?/.test(wrong.err)], [2, true], wrong.err);
  assert.match((await assentHere("policy", "check", "--format", "xml")).err, /--format takes text, json or sarif, not "xml"/);
});

test("on a terminal, what is going on stands on standard error while it goes on", { skip: process.platform === "linux" ? false : "script(1) differs elsewhere" }, async (t) => {
  const run = (words: string): Promise<Run> => program("script", ["-qec", words, "/dev/null"]);
  const folder = folderWith(t, {
    "status.ts": `import { withStatus } from ${JSON.stringify(new URL("../../src/cli/status.ts", import.meta.url).href)};
      await withStatus({ watched: process.stderr.isTTY === true }, async (say) => say("half done"));
      console.log("done");`,
    "package.json": '{"type":"module"}',
  });
  const status = join(folder, "status.ts");
  const seen = await run(`${process.execPath} --import ${TSX} ${status}`).catch(() => null);
  if (seen === null) return t.skip("no script(1) here");
  assert.ok(seen.out.includes("\r\u001b[Khalf done\r\u001b[Kdone"), JSON.stringify(seen.out));
  const piped = await program(process.execPath, ["--import", TSX, status]);
  assert.deepEqual(piped, { code: 0, out: "done\n", err: "" });
});

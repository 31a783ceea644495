import assert from "node:assert/strict";
import test from "node:test";
import {
  MAX_FILE_LENGTH,
  parsePolicies,
  parsePolicyTests,
  validatePolicyDocument,
} from "../../src/domain/policy/parse/parse.ts";
import { formatYaml } from "../../src/domain/policy/parse/format.ts";
import { MAX_ALIASES, MAX_DOCUMENTS } from "../../src/domain/yaml.ts";
import type { PolicyDocument } from "../../src/domain/policy/policy-types.ts";

const GOOD = "policy: a\nrules:\n  - name: r\n    effect: allow\n";

/** Faults as `line:column message`. */
function faults(text: string): string[] {
  const parsed = parsePolicies(text, "a.yaml");
  if (parsed.faults.length > 0) assert.deepEqual(parsed.documents, [], "a file with faults gives no policy");
  for (const { file } of parsed.faults) assert.equal(file, "a.yaml");
  return parsed.faults.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

test("a file can contain several policies", () => {
  const {
    documents,
    places,
    faults: none,
  } = parsePolicies(`# first\n${GOOD}---\n${GOOD.replace("policy: a", "policy: b")}---\n`, "a.yaml");
  assert.deepEqual(none, []);
  assert.deepEqual(
    documents.map(({ policy }) => policy),
    ["a", "b"],
  );
  assert.deepEqual(places, [
    { line: 2, column: 9 },
    { line: 7, column: 9 },
  ]);
});

test("files are YAML 1.2: no, on and dates are text", () => {
  for (const head of ["", "---\n", "\uFEFF"]) {
    const {
      documents,
      places,
      faults: none,
    } = parsePolicies(
      `${head}${GOOD}description: no\nmetadata: { day: 2026-01-01, on: 0o17, off: 1_000, hex: 0x10, nothing: ~ }\n`,
      "a.yaml",
    );
    assert.deepEqual(none, []);
    assert.deepEqual(places, [{ line: head.split("\n").length, column: 9 }]);
    assert.deepEqual(
      [documents[0]?.description, documents[0]?.metadata],
      ["no", { day: "2026-01-01", on: 15, off: "1_000", hex: 16, nothing: null }],
    );
  }
});

test("anchors stand for their values", () => {
  const { documents, faults: none } = parsePolicies(
    "policy: a\nrules:\n  - &base\n    name: r\n    effect: deny\n    tool: &tools [x, y]\n  - { name: s, effect: allow, tool: *tools }\n",
    "a.yaml",
  );
  assert.deepEqual(none, []);
  assert.deepEqual(documents[0]?.rules[1]?.tool, ["x", "y"]);
});

const LINES = "policy: a\nrules:\n  - name: r\n    effect: allow\n"; // the next line is 5
const TABLE: [what: string, text: string, expected: string[]][] = [
  ["nothing", "", ["1:1 the file contains no policy; add one, or remove the file"]],
  ["comments only", "# later\n---\n", ["1:1 the file contains no policy; add one, or remove the file"]],
  ["text", "hello", ["1:1 expected object"]],
  ["bad YAML", "policy: a\nrules:\n\t- name: r\n", ["3:1 tabs are not allowed as indentation"]],
  ["a key twice", `${LINES}policy: b\n`, ["5:1 map keys must be unique"]],
  ["an unknown key", `${LINES}mod: shadow\n`, ['5:1 mod: "mod" is not recognized; did you mean "mode"?']],
  [
    "an unknown key in a rule",
    `${LINES}    wen: "true"\n`,
    ['5:5 rules.0.wen: "wen" is not recognized; did you mean "when"?'],
  ],
  ["__proto__", `${LINES}__proto__: { policy: b }\n`, ['5:1 __proto__: "__proto__" is not recognized']],
  ["a missing key", "policy: a\nrules:\n  - effect: allow\n", ["3:5 rules.0.name: this member is required"]],
  ["no rules", "policy: a\nrules: []\n", ["2:8 rules: a policy without limits and results needs at least one rule"]],
  [
    "a bad name",
    `${LINES.replace("policy: a", "policy: Team A")}`,
    [
      "1:9 policy: does not have the expected form: Name: lowercase letters, digits, dots, dashes and underscores, at most 64.",
    ],
  ],
  [
    "a bad effect",
    LINES.replace("allow", "alow"),
    ['4:13 rules.0.effect: expected "allow" or "deny" or "require_approval"; did you mean "allow"?'],
  ],
  ["a bad mode", `${LINES}mode: off\n`, ['5:7 mode: expected "enforce" or "shadow"']],
  ["a tool that is a number", `${LINES}    tool: 5\n`, ["5:11 rules.0.tool: expected a string or an array"]],
  [
    "approval beside allow",
    `${LINES}    approval: { quorum: 2 }\n`,
    ['5:5 rules.0.approval: approval has no meaning with the effect "allow"; remove it or use require_approval'],
  ],
  [
    "a bad duration",
    LINES.replace("allow", "require_approval\n    approval: { expires_in: 1 hour }"),
    ['5:29 rules.0.approval.expires_in: "1 hour" is not a duration such as 30m, 1h or 7d'],
  ],
  [
    "too short",
    LINES.replace("allow", "require_approval\n    approval: { expires_in: 999ms }"),
    ['5:29 rules.0.approval.expires_in: "999ms" is not between 1s and 30d'],
  ],
  [
    "too long",
    LINES.replace("allow", "require_approval\n    approval: { expires_in: 31d }"),
    ['5:29 rules.0.approval.expires_in: "31d" is not between 1s and 30d'],
  ],
  ["the longest", LINES.replace("allow", "require_approval\n    approval: { expires_in: 30d }"), []],
  ["the shortest", LINES.replace("allow", "require_approval\n    approval: { expires_in: 1000ms }"), []],
  [
    "a fault behind an alias",
    `policy: a\nmetadata: { base: &ask { quorum: 0 } }\nrules:\n  - { name: r, effect: require_approval, approval: *ask }\n`,
    ["2:34 rules.0.approval.quorum: expected integer to be greater or equal to 1"],
  ],
  [
    "quorum 0",
    LINES.replace("allow", "require_approval\n    approval: { quorum: 0 }"),
    ["5:25 rules.0.approval.quorum: expected integer to be greater or equal to 1"],
  ],
  [
    "quorum 21",
    LINES.replace("allow", "require_approval\n    approval: { quorum: 21 }"),
    ["5:25 rules.0.approval.quorum: expected integer to be less or equal to 20"],
  ],
  [
    "a rule twice",
    `${LINES}  - name: r\n    effect: deny\n`,
    ['5:11 rules.1.name: the rule "r" appears twice in this policy; give each rule and each limit a name of its own'],
  ],
  [
    "NaN",
    `${LINES}metadata: { n: .nan }\n`,
    ["5:16 the number .nan cannot be represented exactly; put quotes around it"],
  ],
  [
    "infinity",
    `${LINES}metadata: { n: -.inf, m: 1e400 }\n`,
    [
      "5:16 the number -.inf cannot be represented exactly; put quotes around it",
      "5:26 the number 1e400 cannot be represented exactly; put quotes around it",
    ],
  ],
  [
    "an integer beyond 2^53",
    `${LINES}metadata: { n: 9007199254740993 }\n`,
    ["5:16 the number 9007199254740993 cannot be represented exactly; put quotes around it"],
  ],
  [
    "binary",
    `${LINES}metadata: { n: !!binary aGk= }\n`,
    ["5:16 the tag !!binary does not fit the value or is not supported; remove it"],
  ],
  [
    "a tag of one's own",
    `${LINES}description: !secret x\n`,
    [
      '5:14 the tag !secret does not fit the value or is not supported; remove it; quote the text, or begin it on a line of its own behind "description: >-"',
    ],
  ],
  ["half of a pair", `${LINES}description: "\\uD83D"\n`, ["5:14 the string contains half of a surrogate pair"]],
  [
    "half of a pair in a key",
    `${LINES}metadata: { "\\uDE00": 1 }\n`,
    ["5:13 the string contains half of a surrogate pair"],
  ],
  ["a key that is a number", `${LINES}metadata: { 1: x }\n`, ["5:13 keys must be strings; put quotes around them"]],
  [
    "an anchor inside itself",
    `${LINES}metadata: &m { again: *m }\n`,
    ['5:23 "*m" refers to a value that contains it; write the value out'],
  ],
  [
    "an anchor that is not there",
    `${LINES}metadata: { a: *nope }\n`,
    ['5:16 there is no anchor "&nope" before this alias'],
  ],
  [
    "an alias bomb",
    `${LINES}metadata:\n  a: &a [1,1,1,1,1,1,1,1,1]\n  b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n  c: [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n`,
    ["1:1 aliases unfold to more than 50 times their number of nodes; write the values out"],
  ],
  [
    "too deep",
    `${LINES}metadata: { a: ${"[".repeat(70)}${"]".repeat(70)} }\n`,
    ["5:78 the file nests deeper than 64 levels"],
  ],
  [
    "so deep that the reader gives up",
    `${LINES}metadata: { a: ${"[".repeat(20_000)}${"]".repeat(20_000)} }`,
    ["5: the file nests deeper than 64 levels"],
  ],
];

test("each fault is at its line and column", () => {
  for (const [what, text, expected] of TABLE) {
    const found = what.startsWith("so deep") ? faults(text).map((one) => one.replace(/:\d+ /, ": ")) : faults(text);
    assert.deepEqual(found, expected, what);
  }
});

test("all faults are reported at once, in order, through all documents", () => {
  assert.deepEqual(
    faults(
      "policy: A\nmode: on\nrules:\n  - name: r\n    effect: allow\n    when: params.x ==\n---\npolicy: b\nrules:\n  - name: s\n    efect: deny\n",
    ),
    [
      "1:9 policy: does not have the expected form: Name: lowercase letters, digits, dots, dashes and underscores, at most 64.",
      '2:7 mode: expected "enforce" or "shadow"',
      '6:20 rules.0.when: the condition cannot be read at "=="',
      '11:5 rules.0.efect: "efect" is not recognized; did you mean "effect"?',
    ],
  );
  // One mistake in YAML makes its parser report many errors.
  assert.equal(faults(`policy: a\nrules: ${"[".repeat(30)}\n`).length, 1);
  assert.equal(faults(`policy: a\nrules: [\n---\npolicy: b\nrules: [\n`).length, 2, "one for each document");
  const many = `policy: a\nrules:\n${"  - { name: r, effect: nope }\n".repeat(500)}`;
  assert.equal(faults(many).length, 50);
});

test("a fault in a condition has its character position, in any style of text", () => {
  const rule = (when: string): string[] =>
    faults(`policy: a\nrules:\n  - name: r\n    effect: allow\n    when: ${when}\n`);
  const unknown = (name: string): string =>
    `rules.0.when: there is no variable "${name}"; the variables are agent, agent_groups, agent_metadata, tool, operation, params, context, principal, session, now`;
  assert.deepEqual(rule("params.a && user == 1"), [`5:23 ${unknown("user")}`]);
  assert.deepEqual(rule('"params.a && user == 1"'), [`5:24 ${unknown("user")}`]);
  assert.deepEqual(rule("'params.a && user == 1'"), [`5:24 ${unknown("user")}`]);
  assert.deepEqual(rule("params.a\n      && user == 1"), [`6:10 ${unknown("user")}`]);
  assert.deepEqual(rule("|\n      params.a\n      && user == 1"), [`7:10 ${unknown("user")}`]);
  assert.deepEqual(rule(">-\n\n      params.a\n      &&\n        user == 1"), [`9:9 ${unknown("user")}`]);
  // After an escape the characters of file and text differ, so the start of the condition is the best position.
  assert.deepEqual(rule('"params.a == \\"x\\" && user == 1"'), [`5:11 ${unknown("user")}`]);
});

test("a file that is too large is not read", () => {
  assert.deepEqual(parsePolicies(`${GOOD}#${"x".repeat(MAX_FILE_LENGTH)}`, "a.yaml").faults, [
    {
      kind: "unreadable-file",
      file: "a.yaml",
      line: null,
      column: null,
      message: `the file has more than ${MAX_FILE_LENGTH} characters`,
    },
  ]);
});

test("an alias refers to the last anchor of its name before it", () => {
  const { documents, faults: none } = parsePolicies(
    `${GOOD}metadata: { a: &x one, b: *x, c: &x [two], d: *x, &k key: 1 }\n`,
    "a.yaml",
  );
  assert.deepEqual(none, []);
  assert.deepEqual(documents[0]?.metadata, { a: "one", b: "one", c: ["two"], d: ["two"], key: 1 });
  assert.deepEqual(faults(`${LINES}metadata: { a: *x, b: &x 1 }\n`), [
    '5:16 there is no anchor "&x" before this alias',
  ]);
});

test("a document has a bounded number of aliases", () => {
  const using = (count: number): string =>
    `${GOOD}metadata:\n${Array.from({ length: count / 20 }, (_, i) => `  k${i}: [&a${i} 1${`, *a${i}`.repeat(20)}]\n`).join("")}`;
  assert.deepEqual(faults(using(MAX_ALIASES)), []);
  assert.deepEqual(faults(using(MAX_ALIASES + 20)), [
    "56:17 the document has more than 1000 aliases; write the values out",
  ]);
});

test("every repeated key is a fault, including in lists and next to other faults", () => {
  assert.deepEqual(faults(`${LINES}metadata:\n  a: 1\n  "a": 2\n  b: [{ c: 1, c: 2, c: 3 }]\n  d: .nan\n`), [
    "7:3 map keys must be unique",
    "8:15 map keys must be unique",
    "8:21 map keys must be unique",
    "9:6 the number .nan cannot be represented exactly; put quotes around it",
  ]);
});

test("more faults than the maximum number of call arguments cause no exception", () => {
  assert.equal(faults(`${GOOD}metadata: { a: [${".nan,".repeat(150_000)}1] }\n`).length, 50);
});

test("a JSON policy has the same rules, with pointers", () => {
  const good: PolicyDocument = { policy: "a", rules: [{ name: "r", effect: "allow" }] };
  assert.deepEqual(validatePolicyDocument(good), []);
  const pointers = (value: unknown): string[] => validatePolicyDocument(value).map(({ pointer }) => pointer);
  assert.deepEqual(pointers(null), [""]);
  assert.deepEqual(pointers([]), [""]);
  assert.deepEqual(pointers({ ...good, extra: 1 }), ["/extra"]);
  assert.deepEqual(pointers({ ...good, policy: "a".repeat(65) }), ["/policy"]);
  assert.deepEqual(pointers({ ...good, policy: "a\n" }), ["/policy"]);
  assert.deepEqual(
    pointers({
      ...good,
      rules: [
        { name: "", effect: "allow" },
        { name: "r", effect: "allow", reason: "x".repeat(1001) },
      ],
    }),
    ["/rules/0/name", "/rules/1/reason"],
  );
  assert.deepEqual(
    pointers({
      ...good,
      rules: [
        { name: "r", effect: "allow", when: "params.a <" },
        { name: "r", effect: "deny", approval: {} },
      ],
    }),
    ["/rules/0/when", "/rules/1/name", "/rules/1/approval"],
  );
  assert.deepEqual(pointers({ ...good, applies_to: { tools: [] } }), ["/applies_to/tools"]);
});

test("a very long name is rejected quickly", () => {
  assert.equal(
    validatePolicyDocument({ policy: `${"a".repeat(100_000)}!`, rules: [{ name: "r", effect: "allow" }] })[0]?.pointer,
    "/policy",
  );
});

test("test files are validated, and cases have positions", () => {
  const good =
    "now: 2026-01-15T10:00:00Z\ncases:\n  - name: one\n    action: { agent_id: a, tool: t, operation: o }\n    expect: { effect: deny }\n  - { name: two, action: { agent_id: a, tool: t, operation: o }, expect: { effect: deny } }\n";
  const { tests, locators, faults: none } = parsePolicyTests(good, "a_test.yaml");
  assert.deepEqual(none, []);
  assert.equal(tests.length, 1);
  assert.deepEqual(
    locators.map((locate) => [locate("/cases/0"), locate("/cases/1")]),
    [
      [
        { line: 3, column: 5 },
        { line: 6, column: 5 },
      ],
    ],
  );
  const wrong = (text: string): string[] =>
    parsePolicyTests(text, "a_test.yaml").faults.map(({ line, column, message }) => `${line}:${column} ${message}`);
  assert.deepEqual(wrong(good.replace("10:00:00Z", "25:00:00Z")), [
    "1:6 now: expected an RFC 3339 time such as 2026-01-31T12:00:00Z",
  ]);
  assert.deepEqual(wrong(good.replace("effect: deny", "efect: deny")), [
    '5:15 cases.0.expect.efect: "efect" is not recognized; did you mean "effect"?',
  ]);
  assert.deepEqual(wrong(good.replace("operation: o }", "params: { n: 9007199254740993 } }")), [
    "4:50 the number 9007199254740993 cannot be represented exactly; put quotes around it",
  ]);
  assert.deepEqual(wrong("now: 2026-01-15T10:00:00Z\ncases: []\n"), [
    "2:8 cases: expected array length to be greater or equal to 1",
  ]);
});

test("a text that nests too deeply is not passed to the parser, however it nests", () => {
  const deep = 300_000;
  const texts: Record<string, string> = {
    lists: "[".repeat(deep),
    "closed lists": "[".repeat(deep) + "]".repeat(deep),
    maps: "{a: ".repeat(deep),
    "lists in lines": `${"- ".repeat(deep)}x`,
    keys: `${"? ".repeat(deep)}x`,
    indentation: Array.from({ length: 2_000 }, (_, i) => `${" ".repeat(i)}a:`).join("\n"),
    "lists under keys": Array.from({ length: 800 }, (_, i) => `${"  ".repeat(i)}a:\n${"  ".repeat(i)}- b: 1`).join(
      "\n",
    ),
    mixed: Array.from({ length: 800 }, (_, i) => `${"  ".repeat(i)}- a: 1\n${"  ".repeat(i)}  b:`).join("\n"),
    "behind other documents": `a: 1\n---\n${"[".repeat(deep)}`,
  };
  for (const [what, text] of Object.entries(texts)) {
    const { faults: found } = parsePolicies(text, "a.yaml");
    assert.deepEqual(
      found.map(({ message }) => message),
      ["the file nests deeper than 64 levels"],
      what,
    );
    assert.deepEqual(formatYaml(text).ok, false, what);
  }
});

test("brackets in text, and files of many short lines, are not deep", () => {
  const brackets = "[".repeat(1_000);
  const text = `${GOOD}metadata:\n  plain: a${brackets}\n  quoted: "${brackets}"\n  block: |\n    ${brackets}\n  # ${brackets}\n  list:\n${"  - a: 1\n    b: 2\n".repeat(500)}`;
  assert.deepEqual(parsePolicies(text, "a.yaml").faults, []);
});

test("a text with an error at each character is rejected without an excerpt for each", () => {
  // Each of these errors used to copy its line, so the time grew with the square of the length.
  for (const text of [`[${",".repeat(10_000)}]`, "]\n".repeat(5_000), "a: b: c\n".repeat(5_000)])
    assert.ok(parsePolicies(text, "a.yaml").faults.length > 0);
  assert.deepEqual(
    parsePolicies("---\n".repeat(MAX_DOCUMENTS + 1), "a.yaml").faults.map(({ line, message }) => [line, message]),
    [[MAX_DOCUMENTS + 1, "the file has more than 2000 documents; split it"]],
  );
});

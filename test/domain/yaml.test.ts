/**
 * YAML is read as YAML 1.2 reads it, or refused.
 * @needs mcp
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError, loadConfig } from "../../src/config/index.ts";
import { parsePolicies, parsePolicyTests, parseSharedData } from "../../src/domain/policy/parse/parse.ts";
import { readYaml } from "../../src/domain/yaml.ts";
import { readProxyConfig } from "../../clients/mcp/config/proxy-config.ts";
import { folderWith } from "../support/cli.ts";

const CORE = "tag:yaml.org,2002:";

/** Texts for each kind of construct, and the documents that YAML 1.2 reads. */
const READ: [text: string, documents: unknown[]][] = [
  // Collections.
  ["a: {b: 1, c: [2, 3]}\n", [{ a: { b: 1, c: [2, 3] } }]],
  ["- [a: b, c]\n- {a, b: }\n", [[[{ a: "b" }, "c"], { a: null, b: null }]]],
  ["{a:b, 'c':d}\n", [{ "a:b": null, c: "d" }]],
  ["? a\n: b\n? c\n", [{ a: "b", c: null }]],
  ["a:\n- b\n-\n  - c\n", [{ a: ["b", ["c"]] }]],
  ["--- !!map\na: !!seq [!!map {}]\n", [{ a: [{}] }]],
  ["a: ! [b]\n", [{ a: ["b"] }]],
  [`a: !<${CORE}map> {b: !<${CORE}str> 1}\n`, [{ a: { b: "1" } }]],
  // Scalars.
  [
    "a: 1\nb: 1.5\nc: true\nd: ~\ne: 0x1F\nf: 0o17\ng: +1\nh: .5\ni: 5.\nj: 1e3\nk: 007\n",
    [{ a: 1, b: 1.5, c: true, d: null, e: 31, f: 15, g: 1, h: 0.5, i: 5, j: 1000, k: 7 }],
  ],
  [
    "[no, on, y, 1_000, 12:30:45, 2026-01-31, 0b11, 0x1p3, 'true', \"1\"]\n",
    [["no", "on", "y", "1_000", "12:30:45", "2026-01-31", "0b11", "0x1p3", "true", "1"]],
  ],
  [
    "a: !!str 12\nb: ! 12\nc: !!int '12'\nd: !!float 1.0\ne: !!bool 'true'\nf: !!null ~\ng: !!str\n",
    [{ a: "12", b: "12", c: 12, d: 1, e: true, f: null, g: "" }],
  ],
  ["!!str 1: a\n'2': b\n", [{ 1: "a", 2: "b" }]],
  [
    "a: 'it''s'\nb: \"\\x41\\u00e9\\U0001F600\\t\\n\\_\\N\\L\"\n",
    [{ a: "it's", b: "A\u00e9😀\t\n\u00a0\u0085\u2028" }],
  ],
  ["a: b\n c\n\n d\nb: 'c\n  d'\n", [{ a: "b c\nd", b: "c d" }]],
  ["a: |\n  b\n   c\n\nb: >-\n  d\n  e\n\n  f\nc: |+2\n    g\n\n", [{ a: "b\n c\n", b: "d e\nf", c: "  g\n\n" }]],
  ["a: b#c # d\n", [{ a: "b#c" }]],
  ["'<<': {a: 1}\n", [{ "<<": { a: 1 } }]],
  ["__proto__: {a: 1}\n", [JSON.parse('{"__proto__":{"a":1}}')]],
  // Anchors. An alias refers to the last anchor before it.
  ["a: &x 1\nb: *x\nc: &x 2\nd: *x\n", [{ a: 1, b: 1, c: 2, d: 2 }]],
  // Documents and lines.
  ["\uFEFF# a\r\na: 1\r\n---\r\n...\r\n--- b\n", [{ a: 1 }, "b"]],
  ["", []],
];

/** Texts that have no JSON value, or that readers read differently. */
const REFUSED: [text: string, why: RegExp][] = [
  // Collections of YAML 1.1, however the tag is written.
  ["a: !!set {b, c}\n", /the tag .* does not fit/],
  ["--- !!set\n? b\n", /the tag .* does not fit/],
  ["a: &x !!set {b}\n", /the tag .* does not fit/],
  ["a: !!omap [b: 1]\n", /the tag .* does not fit/],
  ["a: !!omap {b: 1}\n", /the tag .* does not fit/],
  ["a: !!pairs [b: 1]\n", /the tag .* does not fit/],
  [`a: !<${CORE}set> {b}\n`, /the tag .* does not fit/],
  ["a: !!%73et {b}\n", /the tag .* does not fit/],
  ["- !!omap\n  - b: 1\n", /the tag .* does not fit/],
  // Tags that do not fit, scalars of YAML 1.1 and tags of applications.
  ...["!!map [b]", "!!seq {b: 1}", "!!map", "!!seq b", "!!str [b]", "!!int {b: 1}", "!!null [b]"].map(
    (value): [string, RegExp] => [`a: ${value}\n`, /the tag .* does not fit/],
  ),
  ...["!!int b", "!!int 1.5", "!!float x", "!!bool yes", "!!null b", "!!int ''"].map((value): [string, RegExp] => [
    `a: ${value}\n`,
    /the tag .* does not fit/,
  ]),
  ...["!!binary aGk=", "!!timestamp 2026-01-31", "!!merge <<", "!!value =", "!!yaml b", "!b c", "!<b> c", "!b!c d"].map(
    (value): [string, RegExp] => [`a: ${value}\n`, /tag/],
  ),
  ["!!binary aGk=: b\n", /tag|keys must be strings/],
  // Directives.
  ["%YAML 1.1\n---\na: no\n", /without directives; remove the line "%YAML 1\.1"/],
  [`%TAG !e! ${CORE}\n---\na: !e!set {b}\n`, /without directives/],
  ["%TAG !! tag:example.com,2000:\n---\na: !!int 1\n", /without directives/],
  ["%a: 1\n", /without directives/],
  ["a: 1\n...\n%YAML 1.1\n---\nb: no\n", /without directives/],
  // Keys.
  ["<<: {a: 1}\nb: 2\n", /merge keys/],
  ["a: &x {b: 1}\nc: {<<: *x}\n", /merge keys/],
  ["a: &x {b: 1}\nc: {<<: [*x]}\n", /merge keys/],
  ["a: 1\n'a': 2\n", /keys must be unique/],
  ['a: 1\n"\\x61": 2\n', /keys must be unique/],
  ["\u00e9: 1\ne\u0301: 2\n", /keys must be unique/],
  ["{a, a: 1}\n", /keys must be unique/],
  ...["1", "true", "~", "[a]", "{a: 1}", "", "1.5"].map((key): [string, RegExp] => [
    `a: {? ${key}\n  : 1}\n`,
    /keys must be strings/,
  ]),
  ["a: &x b\n*x : 1\n", /keys must be strings/],
  // Aliases.
  ["a: *x\n", /no anchor/],
  ["a: &x [*x]\n", /contains it/],
  ["--- &x a\n--- *x\n", /no anchor/],
  // Characters that a reader does not see or reads as a line break.
  ["# a\ra: 1\n", /carriage return/],
  ["- a\r- b\n", /carriage return/],
  ["a: 'b\rc'\n", /carriage return/],
  ["# a\u2028b: 1\n", /U\+2028/],
  ["# a\u0085b: 1\n", /U\+0085.*write \\u0085 in double quotes/],
  ["a: 1\n\uFEFFb: 2\n", /U\+FEFF/],
  ["a: 1\n---\n\uFEFFb: 2\n", /U\+FEFF/],
  ["a: b\u0000c\n", /U\+0000/],
  ["a: \u202eb\n", /U\+202E/],
  ["# \u2066b\n", /U\+2066/],
  ["a: \ud800\n", /surrogate/],
  ['a: "\\ud800"\n', /surrogate/],
  // Numbers that a double changes.
  ...[
    "9007199254740993",
    "9007199254740993.0",
    "0x20000000000001",
    "0o400000000000000001",
    "1e400",
    "-1e400",
    ".inf",
    ".nan",
  ].map((number): [string, RegExp] => [`a: ${number}\n`, /cannot be represented exactly/]),
  ...["1e-400", "-1e-400", ".1e-399", "3e-324", "1e-99999999999", `0.${"0".repeat(400)}1`, "!!float 1e-400"].map(
    (number): [string, RegExp] => [`a: ${number}\n`, /cannot be represented exactly/],
  ),
  // Syntax.
  ["a: - b\n", /./],
  ["a: b: c\n", /colon/],
  ["a: @b\n", /reserved/],
  ["a: [b,,c]\n", /./],
  ["a: 1\n\tb: 2\n", /tabs/],
  ['a: "\\q"\n', /escape/],
];

test("every kind of construct has the value that YAML 1.2 gives it", () => {
  for (const [text, documents] of READ) {
    const { values, faults } = readYaml(text);
    assert.deepEqual(faults, [], JSON.stringify(text));
    assert.deepEqual(
      values.map(({ value }) => value),
      documents,
      JSON.stringify(text),
    );
  }
});

test("a text without a JSON value, or with several readings, is refused", () => {
  for (const [text, why] of REFUSED) {
    const { values, faults } = readYaml(text);
    assert.match(faults[0]?.message ?? "accepted", why, `${JSON.stringify(text)} ${JSON.stringify(values)}`);
    assert.ok((faults[0]?.line ?? 0) > 0 && (faults[0]?.column ?? 0) > 0, JSON.stringify(text));
  }
});

test("no reader of YAML accepts a set, an ordered map, a merge key or a hidden line break", (t) => {
  const policy = (more: string): string => `policy: p\n${more}rules:\n  - {name: r, effect: allow}\n`;
  const configFaults = (text: string): string[] => {
    try {
      loadConfig({ cwd: folderWith(t, { "assent.yaml": text }), env: {} });
      return [];
    } catch (error) {
      assert.ok(error instanceof ConfigError);
      return error.faults.map(({ line, message }) => `${line} ${message}`);
    }
  };
  const proxyFault = (text: string): string => {
    try {
      readProxyConfig(text, {});
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };
  assert.match(
    parsePolicies(policy("applies_to: !!omap [ tools: [ticketing] ]\n"), "p.yaml").faults[0]?.message ?? "",
    /the tag !!omap does not fit/,
  );
  assert.match(parsePolicies(policy("data: { denied: !!set {a, b} }\n"), "p.yaml").faults[0]?.message ?? "", /set/);
  assert.match(
    parsePolicyTests(
      "cases:\n  - {name: a, action: {agent_id: a, tool: t, operation: o, params: !!set {b}}, expect: {effect: deny}}\n",
      "p_test.yaml",
    ).faults[0]?.message ?? "",
    /set/,
  );
  assert.match(parseSharedData("data: d\nvalues: !!set {a}\n", "d_data.yaml").faults[0]?.message ?? "", /set/);
  for (const [text, why] of [
    ["server: !!set {port}\n", /^1 the tag !!(?:set|omap) does not fit/],
    ["groups: !!omap [ a: [b] ]\n", /^1 the tag !!(?:set|omap) does not fit/],
    ["server: &s {port: 8000}\nx: {<<: *s}\n", /2 merge keys/],
    ["# old\rserver: {port: 8000}\n", /1 the file contains a carriage return/],
    ["server: {port: 8e-400}\n", /1 the number 8e-400/],
    ["server: {port: 8000}\n---\nserver: {port: 8001}\n", /3 the file has a second document/],
    ["%YAML 1.1\n---\nserver: {port: 8000}\n", /1 files are YAML 1.2 without directives/],
  ] as const)
    assert.match(configFaults(text)[0] ?? "", why, text);
  for (const [text, why] of [
    ["servers: {a: {command: x, env: !!set {b}}}\n", /line 1, column 32: the tag !!set/],
    ["servers: {a: {command: x, hide: !!omap [ b: c ]}}\n", /the tag .* does not fit/],
    ["servers: {a: {command: x}}\n---\nwait: 5\n", /line 3: the file has a second document/],
    ["# old\rservers: {a: {command: x}}\n", /carriage return/],
  ] as const)
    assert.match(proxyFault(text), why, text);
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatYaml } from "../../src/domain/policy/parse/format.ts";
import { readYaml } from "../../src/domain/yaml.ts";
import { createRandom } from "../support/random.ts";

function formatted(source: string): string {
  const result = formatYaml(source);
  assert.ok(result.ok, result.ok ? "" : `${result.message}\n${source}`);
  return result.text;
}

describe("the layout of policy files", () => {
  it("uses two spaces a level, and keeps comments, empty lines, quotes and the order of keys", () => {
    const source = `\uFEFF# top\r
\r
policy:   a   # name\r
# about rules
rules:
# one
-   effect:   allow # yes
    name: "x"
    # before when
    when: >-
          has(params.a)
             && params.b


    tool: [ a,b ,
      'c' ]   # list
    # end of one

# two
- name: y
  effect: deny
  when: |
      a == 1 ||
        b
# at the end
...
---   # second
policy: b
rules: [{name: s, effect: allow}]`;
    assert.equal(
      formatted(source),
      `# top

policy: a # name
# about rules
rules:
  # one
  - effect: allow # yes
    name: "x"
    # before when
    when: >-
      has(params.a)
         && params.b

    tool: [a, b, 'c'] # list
    # end of one

  # two
  - name: y
    effect: deny
    when: |
      a == 1 ||
        b

# at the end
---
# second
policy: b
rules: [{ name: s, effect: allow }]
`,
    );
  });

  it("keeps anchors, aliases, tags, documents without content and every style of text", () => {
    const source = `a: &x {k: [1, 2.50, true, ~]}
b: *x
c: !!str 12
d: |2+
    indented

e: >+
  kept

f: "two\\n  lines\\
  \\ joined"
g: 'it''s'
h: a plain text
  over lines
---
# nothing
---
? long key
: value
`;
    const text = formatted(source);
    assert.deepEqual(
      readYaml(text).values.map(({ value }) => value),
      readYaml(source).values.map(({ value }) => value),
    );
    for (const part of ["&x", "*x", "'it''s'", "h: a plain text over lines", "# nothing"])
      assert.ok(text.includes(part), part);
  });

  it("refuses a file that it cannot keep unchanged in meaning", () => {
    assert.deepEqual(formatYaml("a: [\n"), {
      ok: false,
      message: "the file was not changed: it cannot be read, or is empty",
    });
    assert.equal(formatYaml("").ok, false);
  });

  it("keeps the meaning and all comments, and is stable, for any file", () => {
    const { random, pick } = createRandom(42);
    const scalars = [
      "1",
      "a b",
      '"q # no"',
      "'s'",
      "~",
      "true",
      "1.50",
      '"x\\ty"',
      "a: b".replace(": ", ":"),
      "#x".replace("#", "n#"),
      "[p,  q]",
      "{r: 1,s: [ ]}",
      "-1",
    ];
    const comment = (indent: string): string =>
      (random(3) === 0 ? `${pick(["", `${" ".repeat(random(6))}`, indent])}# c${random(1000)}\n` : "") +
      (random(5) === 0 ? "\n" : "");
    const value = (indent: string, depth: number): string => {
      const kind = depth > 2 ? 0 : random(6);
      const deeper = indent + " ".repeat(1 + random(3));
      if (kind === 1)
        return `\n${Array.from({ length: 1 + random(3) }, (_, i) => `${comment(deeper)}${deeper}k${i}:${value(deeper, depth + 1)}`).join("")}`;
      if (kind === 2)
        return `\n${Array.from({ length: 1 + random(3) }, () => `${comment(deeper)}${deeper}-${value(deeper, depth + 1)}`).join("")}`;
      if (kind === 3)
        return ` ${pick([">-", ">", "|", "|-", ">+", "|+"])}\n${deeper}x && y\n${random(2) === 0 ? "" : `${deeper}  z\n`}${random(3) === 0 ? "\n" : ""}${deeper}w\n${random(3) === 0 ? "\n" : ""}`;
      return ` ${pick(scalars)}${random(4) === 0 ? `   # t${random(1000)}` : ""}\n`;
    };
    let kept = 0;
    for (let round = 0; round < 100; round++) {
      const source =
        Array.from({ length: 1 + random(3) }, (_, i) => `${comment("")}key${i}:${value("", 0)}`).join("") + comment("");
      const before = readYaml(source);
      if (before.faults.length > 0) continue;
      const text = formatted(source);
      kept++;
      assert.deepEqual(
        readYaml(text).values.map((one) => one.value),
        before.values.map((one) => one.value),
        source,
      );
      const comments = (text: string): string[] => (text.match(/# [ct]\d+/g) ?? []).sort();
      assert.deepEqual(comments(text), comments(source), source);
      assert.equal(formatted(text), text, source);
      assert.ok(!/[ \t]$/m.test(text), JSON.stringify(text));
    }
    assert.ok(kept > 50, `only ${kept} were laid out`);
  });
});

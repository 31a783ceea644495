/**
 * Runs generated lines in bash, dash, zsh and fish, with programs that only record their arguments. If the hook's parser finds
 * nothing unclear in a line, no shell runs a command or writes a file that the parser does not list.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseShell } from "../../support/parsed-shell.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const SHELLS: Readonly<Record<string, readonly string[]>> = {
  bash: ["bash", "--norc"],
  dash: ["dash"],
  zsh: ["zsh", "-f", "-o", "extendedglob"],
  fish: ["fish", "--no-config"],
};
const LINES = 1_500;

/** Words, operators and lines of here-documents that shells may read differently. */
const WORDS =
  String.raw`a b 'x_y' "x_y" \x \n \u0041 \cA $'\x41' $'a' $"a" "a\"b" 'a\' 'a\\b' "a\\" "a\nb" \\ \' \" {a,b} ~ # ! =a ^a a#b %a a=b - -- [a] (a) a(b) * ? $ $x \;
  @ +a a:b ./RUN 1 12 '' "" a'b'c a{ } { [ ] a;b \& & a^b a~b a&b <a a>b $? é 'it'\''s'`.split(/\s+/);
const OPERATORS =
  " ; | & | && | || | \\| | \\|& | &> | &>> | >& | > | >> | < | <> | >\\| | 2> | 2>&1 | >&2 | &!|&\\| |>|&|;|\n| >! | >? | ^ | <& | >&- | 12> | {x}> | <<< ";
const MODIFIERS = "time not and or begin end coproc ! exec command builtin eval noglob nocorrect - then do".split(" ");
const DELIMITERS = String.raw`E 'E' "E" \E E'F' $'E' -E E# $E E~ {E} ;E`.split(" ");
const DOCUMENT_LINES = String.raw`a E EF E_ \ a\ \\ E\ $x $(q) \$x q_z ./RUN ' " $'E' $E E# -E {E} )`.split(" ");

/** Returns a generator of numbers from 0 to 1 (mulberry32), so that a failure can be repeated. */
function seeded(start: number): () => number {
  let seed = start;
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function lineGenerator(seed: number): () => string {
  const random = seeded(seed);
  const pick = (list: readonly string[]): string => list[Math.floor(random() * list.length)] as string;
  const times = (max: number): unknown[] => Array.from({ length: Math.floor(random() * (max + 1)) });
  const operators = OPERATORS.split(/(?<!\\)\|/).map((each) => each.replaceAll("\\|", "|"));
  const word = (): string => (pick(WORDS) + (random() < 0.25 ? pick(WORDS) : "")).replaceAll("_", " ");
  const command = (): string =>
    [
      random() < 0.08 ? `${pick(MODIFIERS)} ` : "",
      pick(["p", "q", "r", "./RUN"]),
      ...times(2).map(() => ` ${word()}`),
    ].join("");
  const document = (): string =>
    [
      `${pick(["p", "q a", "sh", "{ p; }"])} <<${pick(["", "-", " "])}${pick(DELIMITERS)}${pick(["", "; q y", " | r", " > o"])}`,
      ...times(4).map(() => pick(DOCUMENT_LINES).replaceAll("_", " ")),
      pick(["E", "EF"]),
      pick(["./RUN", "q w"]),
    ].join("\n");
  return () =>
    random() < 0.25 ? document() : [command(), ...times(2).map(() => pick(operators) + command())].join("");
}

test("no shell runs more than the parser lists for a clear line", (t) => {
  const root = temporaryFolder("assent-shells-");
  const [bin, cwd, home, log] = ["bin", "cwd", "home", "log"].map((name) => join(root, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const folder of [bin, home]) mkdirSync(folder);
  const program = (path: string, name: string): void => {
    writeFileSync(path, `#!/bin/sh\nn=${name}; for a; do n="$n\t$a"; done; printf '%s\\036' "$n" >> ${log}\n`);
    chmodSync(path, 0o755);
  };
  for (const name of ["p", "q", "r"]) program(join(bin, name), name);
  const shells = Object.entries(SHELLS).filter(([, [name]]) => existsSync(join("/usr/bin", name as string)));
  if (shells.length < 4) t.diagnostic(`only ${shells.map(([name]) => name).join(", ")} are installed`);
  const nextLine = lineGenerator(20_260_115);
  let clear = 0;
  for (let i = 0; i < LINES; i++) {
    const line = nextLine();
    const { unclear, commands, writes } = parseShell(line, { cwds: [cwd], home });
    if (unclear.length > 0) continue;
    clear++;
    const listed = commands.map(({ name, args }) => [name, ...args].join("\t"));
    for (const [name, [command, ...options]] of shells) {
      rmSync(cwd, { recursive: true, force: true });
      mkdirSync(cwd);
      program(join(cwd, "RUN"), "./RUN");
      rmSync(log, { force: true });
      const env = { PATH: bin, HOME: home, LANG: "C.UTF-8" };
      spawnSync(join("/usr/bin", command as string), [...options, "-c", line], { cwd, env, input: "" });
      const ran = existsSync(log) ? readFileSync(log, "utf8").replaceAll(home, "~").split("\x1e").slice(0, -1) : [];
      const written = readdirSync(cwd).filter((file) => file !== "RUN" && !writes.includes(join(cwd, file)));
      assert.deepEqual(
        ran.filter((each) => !listed.includes(each)),
        [],
        `${name} ran this in ${JSON.stringify(line)}`,
      );
      assert.deepEqual(written, [], `${name} wrote these files in ${JSON.stringify(line)}`);
    }
  }
  assert.ok(clear > LINES / 10, `only ${clear} lines are clear`);
});

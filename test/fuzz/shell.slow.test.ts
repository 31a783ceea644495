/**
 * Runs random lines in bash that the hook considers clear. Every command that bash runs must be one that the hook
 * found. `FUZZ_LINES` sets their number (default 2,000). `FUZZ_SEED` repeats a run; the test prints the seed.
 * @needs hook
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { parseShell } from "../support/parsed-shell.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** No loops, background jobs or builtins, so that each line ends and every command is reported. */
const PIECES = [
  ...'a b -x = 1 2 q \' " " \\ \\\\ ; && || E # ( ) ; < > >> >& <& <> <<< >| 2>&1 2> ! ^ % + @ [ ] { } * ?'.split(" "),
  ..."a=b CI=1 TZ=a '' \"\" \\a \\' \\\" \\; \\# é 中 'E' \"E\" ` $ a#b #a {a} 1> 11> -- - !! [a] a[0]=1 a+=b".split(
    " ",
  ),
  ..."$'\\x41' $'a\\tb' \"\\$a\" \"\\`\" \"\\\\\" <(q) >(q) #( (); =( }# >&2 \\( '('".split(" "),
  ..." |\n|\t|\r|\\\n|\"\\\n\"| # |(# |case a in |a) | ;; | esac|if |then |fi|else | { | } |; }|[[ | ]]|in |'a b'".split(
    "|",
  ),
  ..."<<E\nq\nE\n|<<'E'\n$(q)\nE\n|<<-E\n\tq\n\tE\n|E\n|esac\n|in\n| | | | | | | ".split("|"),
];

/**
 * Reports each command that bash does not find, which is every command. One write for each report, because some
 * commands run concurrently.
 */
const RUNNER = String.raw`
command_not_found_handle() { builtin printf '%s\x1f' "$I" "$@" $'\x1e' >&9; }
exec 9>&1; I=0
while IFS= read -r -d '' line; do
  ( PATH=/nonexistent; ulimit -t 2; exec </dev/null; eval "$line" ) >/dev/null 2>&1
  I=$((I + 1))
done`;

test("the hook finds every command that bash runs in a clear line", { skip: process.platform === "win32" }, (t) => {
  const seed = Number(process.env["FUZZ_SEED"] ?? Date.now() % 2 ** 31);
  t.diagnostic(`FUZZ_SEED=${seed}`);
  let state = seed;
  const below = (n: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const lines: { text: string; read: string[][] }[] = [];
  while (lines.length < Number(process.env["FUZZ_LINES"] ?? 2_000)) {
    const text = Array.from({ length: 2 + below(14) }, () => PIECES[below(PIECES.length)]).join("");
    const { unclear, commands } = parseShell(text, { cwds: ["/work/app"], home: "/home/ada" });
    if (unclear.length === 0 && commands.length > 0)
      lines.push({ text, read: commands.map(({ via, name, args }) => [...via, name, ...args]) });
  }
  const folder = temporaryFolder("assent-shell-");
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const input = lines.map(({ text }) => `${text}\0`).join("");
  const { stdout } = spawnSync("bash", ["--norc", "-c", RUNNER], {
    cwd: folder,
    input,
    encoding: "utf8",
    maxBuffer: 2 ** 26,
    env: { ...process.env, LC_ALL: "C.UTF-8" },
  });
  const ran = stdout.split("\u001f\u001e\u001f").slice(0, -1);
  assert.ok(ran.length > lines.length / 2, `only ${ran.length} commands ran`);
  for (const each of ran) {
    const [index, ...words] = each.split("\u001f");
    const line = lines[Number(index)];
    assert.ok(line !== undefined);
    const isRead = line.read.some((read) => {
      const last = read.slice(-words.length);
      // The hook lists a number that it does not know, such as `$$`, as 0. It is never the name of a command.
      const isSame = (word: string, at: number): boolean =>
        word === words[at] || (at > 0 && word === words[at]?.replaceAll(/\d+/g, "0"));
      return last.length === words.length && last.every(isSame);
    });
    assert.ok(isRead, `FUZZ_SEED=${seed}: ${JSON.stringify(line.text)} ran ${JSON.stringify(words)}`);
  }
});

/**
 * What the hook reads in a shell line: every command that runs, through any wrapper, and what the text does not show.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseShell } from "../../support/parsed-shell.ts";
import type { ParsedShell, UnclearReason } from "../../../clients/hook/shell/shell-types.ts";

const read = (text: string): ParsedShell => parseShell(text, { cwds: ["/work/app"], home: "/home/ada" });
const commands = (text: string): string[] => read(text).commands.map(({ name, args }) => [name, ...args].join(" "));

describe("commands in the text", () => {
  /** Nothing in these is unclear. */
  const CLEAR: readonly [text: string, ...commands: string[]][] = [
    ["ls -la src", "ls -la src"],
    ["r\\m -rf x", "rm -rf x"],
    [`r""m -r'f' x`, "rm -rf x"],
    ["/bin/rm -rf x", "rm -rf x"],
    ["/usr/bin/../bin/rm -rf x", "rm -rf x"],
    ["ls && rm a; cat b || touch c & wc d", "ls", "rm a", "cat b", "touch c", "wc d"],
    ["ls | tee out", "ls", "tee out"],
    ["(cd /tmp; rm a)", "cd /tmp", "rm a"],
    ["if true; then rm a; else rm b; fi", "true", "rm a", "rm b"],
    ["sh -c 'rm -rf x'", "rm -rf x"],
    ["bash -lc 'sh -c \"rm x\"'", "rm x"],
    ["env -i FORCE_COLOR=1 rm x", "rm x"],
    ["sudo -u root -- env nice -n 5 timeout -k 1 30s rm x", "rm x"],
    ["nohup busybox rm x", "rm x"],
    ["eval 'rm' x", "rm x"],
    ["bash <<'E'\nrm x\nE", "rm x"],
    ["sh <<-E\n\trm x\n\tE", "rm x"],
    ["git commit -m \"$(cat <<'EOF'\nWhy: it's $(needed)\nEOF\n)\"", "git commit -m Why: it's $(needed)"],
    ["git --no-pager log --oneline", "git log --oneline"],
    ["command -v node", "command -v node"],
    ["time rm x", "rm x"],
    ["exec rm x", "rm x"],
    ["trap 'rm x' EXIT", "rm x"],
    ["trap -- 'rm x' EXIT", "rm x"],
    ["trap - EXIT; trap '' INT; ls", "ls"],
    ["printf '%-20s|%5.1f|%%\\n' 'my name' 1.5", "printf %-20s|%5.1f|%%\\n my name 1.5"],
    ["[ -t 1 ] && [ 1 -eq 2 ] || exit 1", "[ -t 1 ]", "[ 1 -eq 2 ]", "exit 1"],
    ["git diff HEAD~2 HEAD^", "git diff HEAD~2 HEAD^"],
    ["cat a~ ~/x '^x' a\\#b", "cat a~ ~/x ^x a#b"],
    ["set -euo pipefail\nls", "set -euo pipefail", "ls"],
    ["NODE_ENV=test npm test", "npm test"],
    // The output of commands is only displayed, compared or searched for.
    ["echo $(rm x)", "rm x", "echo $(rm x)"],
    ["echo `rm x`", "rm x", "echo `rm x`"],
    ['x=$(rm x); printf %s "$x"', "rm x", 'printf %s "$x"'],
    ["for f in a b; do wc -l $f; done", "wc -l a", "wc -l b"],
    ['base=$(git merge-base main HEAD); git log "$base"..x', "git merge-base main HEAD", "git log HEAD..x"],
    ["diff <(rm a) <(rm b)", "rm a", "rm b", "diff <(rm a) <(rm b)"],
    ['case "$?" in 0*) rm a ;; esac', "rm a"],
  ];
  for (const [text, ...expected] of CLEAR)
    test(JSON.stringify(text), () => {
      assert.deepEqual(commands(text), expected);
      assert.deepEqual(read(text).unclear, []);
    });

  test("wrappers of a command are listed with it, outermost first", () => {
    assert.deepEqual(read("sudo sh -c 'env rm x'").commands, [{ name: "rm", args: ["x"], via: ["sudo", "sh", "env"] }]);
  });
});

describe("what the text does not show", () => {
  const UNCLEAR: readonly [text: string, reasons: UnclearReason[], ...commands: string[]][] = [
    ["$X -rf /", ["expansion", "name"], "$X -rf /"],
    // A variable may have another value, or none.
    ["f=a; f=$X; cat $f", ["expansion"]],
    ["f=a; if true; then f=b; fi; cat $f", ["expansion"], "cat $f"],
    ["f=a; for i in 1 2; do cat $f; f=b; done", ["expansion"], "cat $f"],
    ["(f=a); cat $f", ["expansion"], "cat $f"],
    ["true || f=a; cat $f", ["expansion"], "cat $f"],
    ["f=a; sh -c 'f=b; cat $f'; cat $f", ["expansion"], "cat b", "cat $f"],
    ["trap 'f=b' DEBUG; f=a; cat $f", ["assignment"], "cat a"],
    ["f='a b'; cat $f", ["expansion"], "cat $f"],
    ["path=x; ls", ["assignment"], "ls"],
    ['cat "$(rm x)"', ["expansion"], "rm x"],
    ['grep x "$(rm x)"', ["expansion"], "rm x"],
    ['[ "$(rm x)" -gt 1 ]', ["expansion"], "rm x"],
    // fish opens a file of that name.
    ["cat <(rm x)", ["expansion"], "rm x"],
    ["comm - <(rm x)", ["shell"], "rm x"],
    ["rm$IFS-rf$IFS/", ["expansion", "name"], "rm$IFS-rf$IFS/"],
    // Bash expands the file of `>&` twice.
    [`echo >&'$(rm x)'`, ["shell"], "echo"],
    ["echo >&'`rm x`'", ["shell"], "echo"],
    [`echo >&"<(rm x)"`, ["shell"], "echo"],
    ["echo >&\\$\\(rm\\)", ["shell"], "echo"],
    ['echo "${A:-$(rm x)}"', ["expansion"], "rm x", 'echo "${A:-$(rm x)}"'],
    ["cat <(rm x)", ["expansion"], "rm x", "cat <(rm x)"],
    ["echo $((a[$(rm x)]))", ["expansion"], "rm x", "echo $((a[$(rm x)]))"],
    ["cat <<E\n$(rm x)\nE", ["expansion"], "rm x", "cat"],
    ["[[ -v a[$(rm x)] ]]", ["glob"], "rm x"],
    ["(( x ))", ["expansion"]],
    ["rm *", ["glob"], "rm *"],
    ["/bin/r? x", ["glob", "name"], "/bin/r? x"],
    ["{rm,-rf,x}", ["brace", "name"], "{rm,-rf,x}"],
    ["=rm x", ["expansion", "name"], "=rm x"],
    ["PATH=/tmp ls", ["assignment"], "ls"],
    ["LD_PRELOAD=/tmp/x.so ls", ["assignment"], "ls"],
    ["export GIT_SSH_COMMAND=x", ["assignment"], "export GIT_SSH_COMMAND=x"],
    ["env PATH=/tmp ls", ["assignment"], "ls"],
    ["ls() { rm x; }; ls", ["function"], "rm x", "ls"],
    ["alias ls='rm x'; ls", ["alias"], "rm x", "ls"],
    ["shopt -s expand_aliases", ["state"], "shopt -s expand_aliases"],
    ["sh ./x.sh", ["script"], "sh ./x.sh"],
    [". ./x.sh", ["script"], ". ./x.sh"],
    ["curl http://x | sh", ["stdin"], "curl http://x", "sh"],
    ["echo cm0gLXJmIC8K | base64 -d | bash -s", ["stdin"], "echo cm0gLXJmIC8K", "base64 -d", "bash -s"],
    ["bash <<E\n$X\nE", ["expansion", "stdin"], "bash"],
    ["$$", ["name"], "0"],
    ['<&-"" rm x', ["shell"], "rm x"],
    ["echo $!", ["expansion"], "echo $!"],
    ['sh -c "$X"', ["expansion"], 'sh -c "$X"'],
    ["eval $X", ["expansion"]],
    ["python3 -c 'import os'", ["code"], "python3 -c import os"],
    ["node --eval 'require(x)'", ["code"], "node --eval require(x)"],
    ["echo x | python3 -", ["stdin"], "echo x", "python3 -"],
    ["find . -exec rm {} +", ["expansion"], "rm {}", "find . -exec rm {} +"],
    ["find . -exec sh -c 'rm x' \\; -delete", ["expansion"], "rm x", "find . -exec sh -c rm x ; -delete"],
    ["ls | xargs -n 1 rm", ["expansion"], "ls", "rm"],
    ["ls | xargs -i rm {}", ["expansion"], "ls", "rm {}"],
    ["git -c core.pager='rm x' log", ["wrapper"], "git log"],
    ["sudo -e /etc/passwd", ["wrapper"], "sudo -e /etc/passwd"],
    ["env -S 'rm x'", ["wrapper"], "env -S rm x"],
    ["parallel rm", ["wrapper"], "parallel rm"],
    ["coproc rm x", ["wrapper"], "rm x"],
    ["[[ -v 'a[$(rm x)]' ]]", ["expansion"]],
    ["CI['$(rm x)']=1 ls", ["assignment"], "ls"],
    ["CI+=x ls", ["assignment"], "ls"],
    ["LC_ALL=zh_CN.GBK ls", ["assignment"], "ls"],
    ["for PATH in x; do ls; done", ["assignment"], "ls"],
    ["ls {PATH}>/dev/null", ["assignment"], "ls"],
    ["declare -i CI", ["assignment"], "declare -i CI"],
    ["test -v 'a[$(rm x)]'", ["expansion"], "test -v a[$(rm x)]"],
    ["ls $'\\'; rm x #'", ["shell"]],
    ["$'\\x72m' -rf x", ["shell"], "rm -rf x"],
    // dash reads "&>" as "&" and ">".
    ["cat README.md &>/dev/null ./RUN", ["shell"]],
    ["ls &>> x", ["shell"]],
    ["ls >& x", ["shell"]],
    ["ls >| x", ["shell"]],
    ["cat <<$'E'\nE\nrm x\n$E", ["syntax"]],
    // zsh reads "&!" as one operator, fish "a&b" as one word.
    ["ls &!cat x", ["shell"]],
    ["ls a&b", ["shell"]],
    // Escapes of fish, and brackets that it continues beyond a space.
    ["cat \\x2e\\x65nv", ["shell"]],
    ["cat 'a\\\\b'", ["shell"]],
    ["cat 'a\\' x", ["shell"]],
    ["cat [a || rm x]", ["shell"]],
    ["not cat x", ["shell"]],
    ["- cat x", ["shell"]],
    ["cat <<E\nx", ["syntax"], "cat"],
    ["cat $\\\nHOME/x", ["syntax"]],
    ['ls "$\\\n(rm x)"', ["syntax"]],
    ["cat <\\\n(rm x)", ["syntax"]],
    ["ls 1>(rm x)", ["syntax"]],
    ["cat 3<(rm x)", ["syntax"]],
    ["cat <&-.env", ["shell"]],
    ["sh -c 'cat $\\\nHOME/x'", ["syntax"]],
    ["ls $' \\\n'", ["shell"]],
    ["cat id_rsa\\", ["syntax"]],
    ["ls\u00a0x", ["characters"]],
    ["cd $X", ["directory", "expansion"], "cd $X"],
    ["cd -", ["directory"], "cd -"],
    ["cat link/../x", ["directory"], "cat link/../x"],
    ["cat ~root/x", ["expansion"], "cat ~root/x"],
    ["pwsh -c ls", ["shell"], "pwsh -c ls"],
    ["if true", ["syntax"], "true"],
    ["echo 'x", ["syntax"], "echo x"],
    ["ls *(e:'rm x':)", ["glob"]],
    ["ls \u202ex", ["characters"], "ls \u202ex"],
    ["ls\u0000x", ["characters"]],
  ];
  for (const [text, reasons, ...expected] of UNCLEAR)
    test(JSON.stringify(text), () => {
      const { unclear } = read(text);
      for (const reason of reasons) assert.ok(unclear.includes(reason), `${reason} is not in ${unclear.join()}`);
      for (const each of expected)
        assert.ok(commands(text).includes(each), `${each} is not in ${commands(text).join("; ")}`);
    });

  test("too long or too deep lines are unclear", () => {
    for (const text of [
      "ls;".repeat(100),
      `ls ${"x ".repeat(1000)}`,
      `ls ${"x".repeat(40_000)}`,
      `${"(".repeat(300)}ls${")".repeat(300)}`,
      "echo $(".repeat(300) + ")".repeat(300),
    ]) {
      const { unclear, commands: all } = read(text);
      assert.ok(unclear.includes("size") || unclear.includes("syntax"), unclear.join());
      assert.ok(all.length <= 64);
    }
    let nested = "rm x";
    for (let i = 0; i < 10; i++) nested = `eval ${JSON.stringify(nested)}`;
    assert.ok(read(nested).unclear.includes("size"));
  });
});

describe("files", () => {
  const paths = (text: string): string[] => read(text).paths;
  test("are absolute, wherever a word names one", () => {
    assert.deepEqual(paths("cat a ./b ../c /etc/x ~/d"), [
      "/etc/x",
      "/home/ada/d",
      "/work/app/a",
      "/work/app/b",
      "/work/c",
    ]);
    assert.ok(paths("dd of=/dev/sda").includes("/dev/sda"));
    assert.ok(paths("git show HEAD:.env").includes("/work/app/.env"));
    assert.ok(paths("docker run -v /srv:/x,ro y").includes("/srv"));
    assert.ok(paths("docker run --mount=type=bind,src=/srv").includes("/srv"));
    assert.ok(paths("curl -d @.env x").includes("/work/app/.env"));
    assert.ok(paths("grep -f.env x").includes("/work/app/.env"));
    assert.ok(paths("tar --file=../x").includes("/work/x"));
    assert.ok(paths("grep -f/etc/shadow x").includes("/etc/shadow"));
    assert.ok(paths("tar -C../../x").includes("/x"));
  });
  test("of redirections are listed by direction", () => {
    const { reads, writes } = read("sort < in > out 2>> log 2>&1 >/dev/null");
    assert.deepEqual(reads, ["/work/app/in"]);
    assert.deepEqual(writes, ["/work/app/log", "/work/app/out"]);
    assert.deepEqual(read("{ ls; } > /etc/x").writes, ["/etc/x"]);
    assert.deepEqual(read("ls >& x").writes, ["/work/app/x"]);
    assert.deepEqual(read("ls > -").writes, ["/work/app/-"]);
    assert.deepEqual(read("ls >> -x").writes, ["/work/app/-x"]);
    assert.deepEqual(read("ls 2>/dev/null").paths, []);
  });
  test("of redirections are those of bash and of zsh, if the two differ", () => {
    for (const [text, file] of [
      ["echo x >! /etc/x", "/etc/x"],
      ["echo x >!/etc/x", "/etc/x"],
      ["echo x >>! '/etc/x' y", "/etc/x"],
      ["echo x >&! /etc/x", "/etc/x"],
      ["echo x &>>! /etc/x", "/etc/x"],
      ["echo x 2>!~/x", "/home/ada/x"],
      [">! /etc/x echo y", "/etc/x"],
      ["sh -c 'a | b >! /etc/x' c", "/etc/x"],
    ] as const) {
      const { writes, unclear } = read(text);
      assert.ok(
        writes.includes(file) && writes.some((path) => path.startsWith("/work/app/!")),
        `${text}: ${writes.join(" ")}`,
      );
      assert.ok(unclear.includes("shell"), text);
    }
    assert.deepEqual(read("echo x >'!' /etc/x").writes, ["/work/app/!"]);
    assert.deepEqual(read("cat <! /etc/x").unclear, []);
  });
  test("of the standard streams are the files that they refer to", () => {
    assert.deepEqual(read("echo x > /dev/stderr").writes, []);
    assert.deepEqual(read("{ echo x > /dev/stdout; } 3< a 1>&3").writes, ["/dev/stdout"]);
    assert.deepEqual(read("echo x > /dev/stdin").writes, ["/dev/stdin"]);
  });
  test("are resolved in every folder that the line may be in", () => {
    assert.deepEqual(paths("cd /etc; cat passwd"), ["/etc", "/etc/passwd", "/work/app/passwd"]);
    assert.ok(paths("cd; cat x").includes("/home/ada/x"));
    assert.ok(paths("git -C /etc log x").includes("/etc/x"));
  });
  test("are resolved only in the folder of a cd in front of them in a list of &&", () => {
    assert.deepEqual(paths("cd /etc && cat passwd"), ["/etc", "/etc/passwd"]);
    assert.deepEqual(paths("cd src && ls a && cd .."), ["/work/app", "/work/app/src", "/work/app/src/a"]);
    assert.deepEqual(paths("cd ../b && cd ../app; cat x"), ["/work/app", "/work/app/x", "/work/b", "/work/b/x"]);
    for (const [text, path] of [
      ["cd src || cd .. && cat x", "/work/x"],
      ["cd src || cd .. && cat x", "/work/app/x"],
      ["cd src & cd .. && cat x", "/work/x"],
      ["false && cd src && cd ..; rm -rf x", "/work/app/x"],
      ["false && cd src && cd ..; rm -rf x", "/work/app/src/x"],
      ["pushd a && cd b && popd && cat x", "/work/app/x"],
      ["pushd a && cd b && { popd; cat x; }", "/work/app/x"],
      ["pushd a && cd b && pushd && cat x", "/work/app/x"],
      ["! cd src && cat x", "/work/app/x"],
      ["cd src | cat x && cat x", "/work/app/x"],
      ["(cd src) && cat x", "/work/app/x"],
      ["cd src && { false && cd a; cat x; }", "/work/app/src/x"],
      ["cd src && ls; cat x", "/work/app/x"],
    ] as const)
      assert.ok(paths(text).includes(path), `${text}: ${path}`);
    for (const text of ['cd "$X" && cat y', "cd - && cat y", "cd a* && cat y", "popd && cat y"])
      assert.ok(read(text).unclear.includes("directory"), text);
    assert.ok(read("CDPATH=/etc cd ssl && cat x").unclear.length > 0);
  });
  test("do not include patterns of grep, rg and sed", () => {
    assert.deepEqual(paths("rg -n -t ts '/api' src"), ["/work/app/src", "/work/app/ts"]);
    assert.deepEqual(paths("grep -A 3 -- '/api' a"), ["/work/app/3", "/work/app/a"]);
    assert.deepEqual(paths("sed -n '/a/,/b/p' x"), ["/work/app/x"]);
    for (const text of [
      "grep -e x /etc/y",
      "grep -ie x /etc/y",
      "rg --regexp=x /etc/y",
      "rg --files /etc/y",
      "grep --reg x /etc/y",
    ])
      assert.ok(paths(text).includes("/etc/y"), text);
    assert.ok(paths("sed -e 1p /etc/y").includes("/etc/y"));
    // An empty program makes the next word a file, also a word that is a program itself.
    for (const text of ["sed '' i/y", "awk '' i/y", "gawk '' i/y", "jq '' i/y", "sed -n -i '' i/y"])
      assert.ok(paths(text).includes("/work/app/i/y"), text);
  });
  test("do not include the text of echo, the pattern of git grep, a message of git or words for a test script", () => {
    for (const text of [
      "echo .env",
      "printf '%s' .env",
      "git grep -n credentials",
      "git commit -m .env",
      "git commit -am secrets",
      "npm test -- secrets",
    ])
      assert.deepEqual(
        paths(text).filter((path) => /env|credentials|secrets/.test(path)),
        [],
        text,
      );
    for (const text of [
      "echo .env | xargs cat",
      "cat $(echo .env)",
      "echo x > .env",
      "git grep -f .env",
      "git grep KEY -- .env",
      "git grep -O x .env",
      "git commit -F .env",
      "git diff .env",
      "npm test -- ./.env",
    ])
      assert.ok(paths(text).includes("/work/app/.env"), text);
  });
  test("do not include filters, names, tags, titles and messages, by the syntax of each program", () => {
    for (const text of [
      "jq '.env' package.json",
      "jq -r '.env.production' package.json",
      "jq --arg f .env '.[$f]' package.json",
      "cargo test -- '.env'",
      "cargo test --test env -- --exact .env",
      "docker build -t app:.env .",
      "docker run --rm --name .env app",
      "docker tag app:latest app:.env",
      "docker ps --filter name=.env",
      "docker compose -p .env logs .env",
      "tmux rename-window .env",
      "tmux new-session -s .env",
      'export NOTE=".env"',
      "declare -x NOTE=.env",
      "yq --expression .env config.yaml",
      "awk -F.env '{ print $1 }' README.md",
      "awk -v name=.env '{ print name }' README.md",
      "grep -rn -e .env src",
      "rg --regexp .env src",
      "rg -g '!.env' x src",
      "grep -rn --exclude .env x src",
      "grep -rn --exclude-dir=.env x src",
      "tar czf a.tgz --exclude=.env src",
      "git commit --fixup .env",
      "git remote add .env https://example.com/x.git",
      "npx vitest run .env",
      "git grep -e .env",
      "git commit --amend -m .env",
      "git log -p -S .env",
      "git log --oneline --grep .env",
      "git notes add -m .env",
      "git tag -a .env -m .env",
      "git rev-parse .env",
      "git worktree add ../other -b .env",
      "gh pr create --draft --title .env --body .env",
      "gh label create .env",
      "kubectl -n .env get pods -l app=.env",
      "helm install .env ./chart",
      "curl -s -d name=.env -H 'X-Name: .env' localhost:3000",
      "npm test -- -t .env",
      "npm run lint -- -t .env",
      "npx vitest --run -t .env",
      "npx mocha -f .env",
      "npx playwright test -g .env",
      "go test -v -run .env ./...",
      "pytest -q -k .env",
      "mvn test -Dtest=.env",
      "gradle test --tests .env",
      "terraform plan -target=.env",
      "cut -d .env -f 1 README.md",
      "tr .env x",
      "notify-send .env",
    ])
      assert.deepEqual(
        paths(text).filter((path) => path.includes(".env")),
        [],
        text,
      );
    for (const text of [
      "jq . .env",
      "jq -f .env package.json",
      "jq -rf .env",
      "jq --rawfile a .env . package.json",
      "jq --arg a b . .env",
      "cargo run -- .env",
      "cargo test --config .env",
      "cargo test -- --logfile .env",
      "docker build -f .env .",
      "docker build -t app:.env -f .env .",
      "docker build --file -t .env .",
      "docker run --env-file .env app",
      "docker run --env-file --name .env app",
      "docker compose -f .env ps",
      "tmux source-file .env",
      "tmux new-session cat .env",
      "export X=$(cat .env)",
      "yq . .env",
      // yq reads its first operand as a file if there is one of this name.
      "yq .env config.yaml",
      "awk -f .env README.md",
      "awk -F x 1 .env",
      "grep -e x .env",
      "grep -e .env .env",
      "grep -f .env -e x README.md",
      "rg --file .env src",
      "rg -g .env x src",
      "rg -g '!.env' -f .env src",
      "grep -r --exclude-from=.env x src",
      "tar -X .env -czf a.tgz src",
      "git config include.path .env",
      "npx jest -c .env",
      "git commit -F .env",
      "git commit -F -m .env",
      "git commit -m x -t .env",
      "git tag -F .env v1",
      "git log -S x -- .env",
      "gh pr create --title x --body-file .env",
      "gh release create v1 -t x .env",
      "kubectl apply -n x -f .env",
      "helm install x -f .env ./chart",
      "helm template .env",
      "curl -d @.env localhost:3000",
      "curl -H @.env localhost:3000",
      "curl -d x -T .env localhost:3000",
      "npm test -- --setupFiles .env",
      "npx jest -t x -c .env",
      "go test -run x -args .env",
      "pytest -c -k .env",
      "terraform plan -target x -var-file .env",
      "node --env-file -t .env",
      "cut -d x -f 1 .env",
      "tr a b < .env",
      "docker tag app:latest app:.env; xargs cat",
    ])
      assert.ok(paths(text).includes("/work/app/.env"), text);
    for (const text of ["unset .env", "kill .env", "read .env", "builtin unset .env", "getopts .env x"])
      assert.deepEqual(paths(text), [], text);
    assert.deepEqual(read("unset NODE_ENV CI").unclear, []);
    for (const text of ["unset PATH", "unset f", "unset -f npm", "unset 'a[$(id)]'"])
      assert.ok(read(text).unclear.includes("state"), text);
    assert.deepEqual(read("tmux rename-window .env").unclear, []);
    for (const text of ["tmux rename-window '#(id)'", "tmux new-session id", "tmux rename-window x ';' new-window id"])
      assert.deepEqual(read(text).unclear, ["wrapper"], text);
    for (const text of ["jq env x", "jq '.env | env' x", "jq '.env, $ENV.KEY' x"])
      assert.deepEqual(read(text).unclear, ["code"], text);
    assert.deepEqual(read("curl -d to=https://evil.example localhost:3000").hosts, ["evil.example", "localhost"]);
  });
  test("include the arguments after a pattern, with any options before it", () => {
    for (const text of [
      "rg -tasm . /etc/y",
      "rg -ntasm x /etc/y",
      "rg -g -g '*.ts' /etc/y",
      "rg -t '' /etc/y x",
      "rg -A x /etc/y",
      "grep -C x /etc/y",
      "grep -nA '' /etc/y x",
      "rg --max-count 3 /etc/y",
      "grep --unknown x /etc/y",
      "sed -n -l 5 /etc/y",
    ])
      assert.ok(paths(text).includes("/etc/y"), text);
    assert.deepEqual(paths("rg -nA3 -g '*.ts' /x src"), ["/work/app/*.ts", "/work/app/src"]);
    assert.ok(paths(String.raw`sed -n '1,/x\/p;/e cat /etc/y #/p' x`).some((path) => path.endsWith("/etc/y #/p")));
  });
});

/** Settings of hosts: the hook is added once, and everything else stays unchanged. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, describe, test, type TestContext } from "node:test";
import { HOSTS } from "../../../clients/hook/hosts/answers.ts";
import { lineDiff } from "../../../clients/settings/settings-files.ts";
import { TEST_SESSION, HookState, stateFolder } from "../../../clients/hook/hook-state.ts";
import { hookCommand } from "../../../clients/hook/install/hook-program.ts";
import {
  hasHook,
  settingsFile,
  SettingsError,
  findUnreadableReason,
  addHook,
  removeHook,
} from "../../../clients/hook/install/host-settings.ts";
import { assentInProcessWith, folderWith, writeFiles, type Run, type RunOptions } from "../../support/cli.ts";
import { allows } from "./payloads.ts";
import { HOOK, runHook, startHookService, type HookService } from "../../support/hook.ts";

/** Runs in this process, because these tests depend only on arguments, environment and folder, and there are many. */
const assent = (args: string[], options: RunOptions): Promise<Run> => assentInProcessWith(options, ...args);

const PLACE = { home: "/home/ada", project: "/work/app" };
const COMMAND = "/usr/bin/node /opt/assent/dist/clients/hook/bin.js";

for (const host of HOSTS)
  describe(host, () => {
    test("installing twice adds it once, and removal restores the text", () => {
      const once = addHook(null, { host, command: COMMAND });
      assert.equal(addHook(once, { host, command: COMMAND }), once);
      assert.ok(hasHook(once, host));
      assert.ok(once.includes(host === "opencode" ? `"${COMMAND}"` : `${COMMAND} --host ${host}`));
      assert.equal(addHook(addHook(null, { host, command: "assent-hook" }), { host, command: COMMAND }), once);
      assert.equal(removeHook(once, host), null);
    });
    if (host !== "opencode") {
      test("other content is kept", () => {
        const list = host === "kiro";
        const other = { type: "command", command: "audit.sh" };
        const before = JSON.stringify(
          {
            model: "x",
            version: 1,
            hooks: list
              ? [{ name: "audit", action: other }]
              : { Stop: [other], PreToolUse: [{ matcher: "Bash", hooks: [other] }] },
          },
          null,
          2,
        );
        const after = addHook(before, { host, command: COMMAND });
        assert.equal(after.split("audit.sh").length, before.split("audit.sh").length);
        assert.match(after, /"model": "x"/);
        assert.equal(addHook(after, { host, command: COMMAND }), after);
        assert.equal(removeHook(after, host), before);
      });
      test("comments, tabs, line ends and a byte order mark are kept, and removal restores the text", () => {
        const kiro = host === "kiro";
        const list = kiro ? '"hooks": [' : '"hooks": {';
        const end = kiro ? "]" : "}";
        const comments = "comments";
        const commas = "trailing commas";
        const reads = { vscode: [comments, commas, "a byte order mark"], gemini: [comments] }[host as string] ?? [];
        for (const [before, ...extras] of [
          ['{\n\t"model": "//",\n\t"version": 1\n}\n'],
          ['{\r\n  "version": 1,\r\n  "a": ["/*", ",]"]\r\n}\r\n'],
          ['{\n\t"model": "x", // mine\n\t"version": 1\n}\n', comments],
          [
            '\uFEFF{\r\n  "version": 1,\r\n  /* what else */\r\n  "a": [1, 2,],\r\n}\r\n',
            "a byte order mark",
            comments,
            commas,
          ],
          ['{ "version": 1, // all\n}', comments, commas],
          ['{"version":1,"model":"x"}'],
          [`// first\n{\n    "version": 1,\n    ${list} // others\n    ${end},\n    "z": {}\n}\n`, comments],
          [
            `{\n  "version": 1,\n  ${list}${kiro ? '{ "action": { "command": "a.sh" } }' : '"Stop": [{ "command": "a.sh" }]'} // theirs\n  ${end}\n}\n`,
            comments,
          ],
        ] as [string, ...string[]][]) {
          if (!extras.every((extra) => reads.includes(extra))) {
            // A hook in a file that the host does not read has no effect.
            assert.throws(() => addHook(before, { host, command: COMMAND }), /take that out first/, before);
            continue;
          }
          const after = addHook(before, { host, command: COMMAND });
          assert.ok(hasHook(after, host), after);
          assert.equal(addHook(after, { host, command: COMMAND }), after);
          for (const comment of before.match(/\/\/.*|\/\*.*?\*\//g) ?? []) assert.ok(after.includes(comment), after);
          assert.equal(/[^\r]\n/.test(after), !before.includes("\r"), JSON.stringify(after));
          const out = removeHook(after, host);
          // An empty list is equivalent to none.
          if (before.includes("others")) assert.ok(out !== null && /\/\/ first/.test(out) && !hasHook(out, host));
          else assert.equal(out, before);
        }
      });
      test("syntax that the host does not read is reported, and removal keeps comments", () => {
        const once = addHook(null, { host, command: COMMAND });
        const comment = `// mine\n${once}`;
        assert.equal(findUnreadableReason(host, once), null);
        assert.ok(hasHook(comment, host));
        assert.match(removeHook(comment, host) ?? "", /^\/\/ mine\n/);
        assert.equal(/comments/.test(findUnreadableReason(host, comment) ?? ""), !["vscode", "gemini"].includes(host));
        for (const [text, extra] of [
          [`\uFEFF${once}`, /a byte order mark/],
          ['{ "a": [1, ], }', /trailing commas/],
        ] as const)
          assert.equal(extra.test(findUnreadableReason(host, text) ?? ""), host !== "vscode");
      });
      test("a hook with a custom command is replaced and removed, and similar ones are not", () => {
        const wanted = { host, command: "'/opt/our tools/ask'" };
        const once = addHook(null, wanted);
        assert.equal(addHook(once, wanted), once);
        assert.ok(hasHook(once, host, wanted.command));
        assert.equal(removeHook(once, host, wanted.command), null);
        const other = "/opt/other --host claude-code # not-assent-hooks";
        const theirs = addHook(null, { host, command: "x" }).replaceAll(`x --host ${host}`, other);
        assert.ok(!hasHook(theirs, host));
        assert.equal(removeHook(addHook(theirs, { host, command: COMMAND }), host), theirs);
      });
      test("settings that cannot be parsed are not changed", () => {
        const twice = ['{ "hooks": {}, "hooks": {} }', '{ "a": { "b": 1, "\\u0062": 2 } }'];
        const deep = `{ "a": ${"[".repeat(100_000)}${"]".repeat(100_000)} }`;
        const broken = [
          "{",
          "[]",
          '{ "hooks": 1 }',
          '{ "a": 1 } x',
          '{ "a": 01 }',
          '{ "a": "\u0001" }',
          '{ "a": [,] }',
        ];
        for (const text of [...broken, ...twice, deep])
          assert.throws(() => addHook(text, { host, command: COMMAND }), SettingsError, text);
      });
    } else
      test("another plugin of that name is not changed", () => {
        assert.throws(() => addHook("export const X = 1;\n", { host, command: COMMAND }), SettingsError);
      });
    test("has a place in a project", () => {
      assert.match(settingsFile(host, "project", PLACE) ?? "", /^\/work\/app\/\./);
    });
  });

test("the events of the host's own question are registered if this version knows them, and doctor reports their absence", async (t) => {
  const folder = folderWith(t, {});
  const run = (version: string, action: string, host = "claude-code") => {
    writeFiles(folder, { "bin/claude": `#!/bin/sh\necho "${version} (Claude Code)"\n` });
    chmodSync(join(folder, "bin/claude"), 0o755);
    return assent(["hook", action, "--host", host, "--command", "assent-hook"], {
      cwd: folder,
      env: { ...ready.env, HOME: folder, PATH: `${join(folder, "bin")}:${process.env["PATH"]}` },
    });
  };
  const events = (file: string): string[] =>
    Object.keys((JSON.parse(readFileSync(join(folder, file), "utf8")) as { hooks: object }).hooks).filter((name) =>
      /^permission/i.test(name),
    );
  for (const [version, expected, doctored] of [
    ["2.1.88", [], /note .*has no hook for PermissionRequest[^]*wrong Claude Code 2\.1\.88 lets an allow/],
    ["2.1.89", ["PermissionRequest", "PermissionDenied"], /wrong Claude Code 2\.1\.89 lets an allow/],
    ["2.1.330", ["PermissionRequest", "PermissionDenied"], /^(?![^]*(no hook for Permission|lets an allow))/],
  ] as const) {
    assert.equal((await run(version, "install")).code, 0);
    assert.deepEqual(events(".claude/settings.json"), expected);
    assert.match((await run(version, "doctor")).out, doctored);
  }
  for (const [host, file, event] of [
    ["codex", ".codex/hooks.json", "PermissionRequest"],
    ["copilot", ".github/hooks/assent.json", "permissionRequest"],
  ] as const) {
    assert.equal((await run("2.1.330", "install", host)).code, 0);
    assert.deepEqual(events(file), [event]);
  }
});
test("onFailure is set if this Claude Code supports it, and only where it stops a call", () => {
  const settings = JSON.parse(addHook(null, { host: "claude-code", command: COMMAND, onFailure: true })) as {
    hooks: Record<string, { hooks: Record<string, unknown>[] }[]>;
  };
  assert.equal(settings.hooks["PreToolUse"]?.[0]?.hooks[0]?.["onFailure"], "block");
  assert.equal(settings.hooks["PostToolUse"]?.[0]?.hooks[0]?.["onFailure"], undefined);
  assert.ok(!addHook(null, { host: "claude-code", command: COMMAND }).includes("onFailure"));
});

test("only changed lines are displayed", () => {
  assert.deepEqual(lineDiff("a\nb\nc\n", "a\nx\nc\n"), ["- b", "+ x"]);
  assert.deepEqual(lineDiff(null, "a\n"), ["+ a"]);
  assert.deepEqual(lineDiff("a\n", "a\n"), []);
  assert.deepEqual(lineDiff("a\nb\nc\nd\n", "x\na\nb\nc\n"), ["+ x", "- d"]);
});

/** For all tests: install refuses if the hook cannot reach the service. */
let ready: HookService;
before(async () => {
  ready = await startHookService("policy: test\nrules:\n  - { name: allowed, tool: [shell, files], effect: allow }\n");
});
after(() => ready.close());

/** A folder on the path where hosts would find the hook. */
function onPath(t: TestContext): string {
  const folder = folderWith(t, {});
  writeFileSync(join(folder, "assent-hook"), `#!/bin/sh\nexec ${[process.execPath, ...HOOK].join(" ")} "$@"\n`, {
    mode: 0o755,
  });
  return `${folder}:${process.env["PATH"]}`;
}

test("assent hook install displays, writes, replaces and removes the hook", async (t) => {
  const folder = folderWith(t, {});
  const PATH = onPath(t);
  const run = (...args: string[]) =>
    assent(["hook", "install", "--host", "cursor", ...args], {
      cwd: folder,
      env: { ...ready.env, HOME: folder, PATH },
    });
  const file = join(folder, ".cursor/hooks.json");
  assert.match((await run("--dry-run")).out, /would change:[^]*\+ .*assent-hook --host cursor/);
  assert.equal(statSync(file, { throwIfNoEntry: false }), undefined);
  assert.equal((await run()).code, 0);
  const written = JSON.parse(readFileSync(file, "utf8")) as { hooks: { preToolUse: Record<string, unknown>[] } };
  assert.deepEqual(written.hooks.preToolUse, [
    { command: "assent-hook --host cursor", timeout: 160, failClosed: true },
  ]);
  assert.match((await run()).out, /nothing changes/);
  assert.equal((await run("--uninstall")).code, 0);
  assert.equal(statSync(file, { throwIfNoEntry: false }), undefined);
  for (const broken of ["{ // mine", '{ "hooks": [] }', "\uFEFF{,}"]) {
    writeFiles(folder, { ".cursor/hooks.json": broken });
    for (const args of [[], ["--uninstall"]]) {
      const refused = await run(...args);
      assert.equal(refused.code, broken.includes("[]") && args.length > 0 ? 0 : 1, refused.err);
      if (refused.code === 1) assert.match(refused.err, /nothing was changed/);
      assert.equal(readFileSync(file, "utf8"), broken);
    }
  }
  writeFiles(folder, { ".cursor/hooks.json": "{}" });
  assert.match((await run("--uninstall")).out, /nothing changes/);
  assert.equal(readFileSync(file, "utf8"), "{}");
  assert.equal((await assent(["hook", "install"], {})).code, 2);
  assert.equal((await assent(["hook", "instal"], {})).code, 2);
});

test("tabs of settings are displayed as blanks, without terminal control characters", async (t) => {
  const folder = folderWith(t, { ".cursor/hooks.json": '{\n\t"version": 1\n}\n' });
  const env = { ...ready.env, HOME: folder, PATH: onPath(t) };
  const { out } = await assent(["hook", "install", "--host", "cursor"], { cwd: folder, env });
  assert.match(out, /^- {5}"version": 1$/m);
  assert.ok(!out.includes("\ufffd") && !out.includes("\t"), out);
});

test("status reports that no host has called the hook, and ignores the canary session", async (t) => {
  const folder = folderWith(t, {});
  const env = { HOME: folder, XDG_STATE_HOME: folder };
  const state = new HookState(stateFolder(env));
  await state.recordSession("claude-code", TEST_SESSION, "call");
  const none = await assent(["hook", "status"], { env });
  assert.deepEqual([none.code, none.out], [0, ""]);
  assert.match(none.err, /^no host of this user has called the hook/);
  await state.recordSession("claude-code", "s-1", "call");
  assert.match((await assent(["hook", "status"], { env })).out, /^claude-code\ts-1\t/);
});

test("handles a read-only file, a link, a folder instead of the file, and a path with blanks and quotes", async (t) => {
  const folder = folderWith(t, { "dotfiles/hooks.json": '{ "version": 1 }\n', "away/x": "" });
  const project = join(folder, `it's "a" $HOME \`x\` project`);
  mkdirSync(join(project, ".cursor"), { recursive: true });
  const file = join(project, ".cursor/hooks.json");
  const PATH = onPath(t);
  const run = (...args: string[]) =>
    assent(["hook", "install", "--host", "cursor", ...args], {
      cwd: project,
      env: { ...ready.env, HOME: folder, PATH },
    });

  symlinkSync(join(folder, "dotfiles/hooks.json"), file);
  assert.equal((await run()).code, 0);
  assert.ok(lstatSync(file).isSymbolicLink());
  assert.match(readFileSync(join(folder, "dotfiles/hooks.json"), "utf8"), /assent-hook/);
  assert.equal((await run("--uninstall")).code, 0);
  assert.ok(!hasHook(existsSync(file) ? readFileSync(file, "utf8") : null, "cursor"));
  rmSync(file, { force: true });

  symlinkSync(join(folder, "nowhere"), file);
  const dangling = await run();
  assert.equal(dangling.code, 1);
  assert.match(dangling.err, /a link to a missing file/);
  rmSync(file);

  writeFileSync(file, '{ "version": 1 }\n', { mode: 0o444 });
  const readOnly = await run();
  assert.equal(readOnly.code, 1);
  assert.match(readOnly.err, /the file is read-only; nothing was changed/);
  assert.equal(readFileSync(file, "utf8"), '{ "version": 1 }\n');

  rmSync(join(project, ".cursor"), { recursive: true });
  writeFileSync(join(project, ".cursor"), "a file");
  const inTheWay = await run();
  assert.equal(inTheWay.code, 1);
  assert.match(inTheWay.err, /a parent folder is a file/);
  rmSync(join(project, ".cursor"));

  // A program path that a shell would split.
  const program = join(project, "bin.cjs");
  writeFileSync(program, "process.stdout.write(process.argv.slice(2).join(' '))");
  const out = execFileSync("/bin/sh", ["-c", `${hookCommand(program)} --host cursor`], { encoding: "utf8" });
  assert.equal(out, "--host cursor");
});

test("a hook that hosts would not find is not installed", async (t) => {
  const folder = folderWith(t, { "bin/x": "" });
  const run = (args: string[], env: Record<string, string>) =>
    assent(["hook", "install", "--host", "gemini", ...args], {
      cwd: folder,
      env: { ...ready.env, PATH: "/usr/bin:/bin", ...env },
    });
  const without = await run([], { HOME: folder });
  assert.equal(without.code, 1);
  assert.match(without.err, /assent-hook is not on the PATH.*runs its calls/s);
  // The folders that npx adds to the path exist only for npx.
  const PATH = onPath(t).replace(/^[^:]*/, (each) => {
    mkdirSync(join(folder, "node_modules"));
    renameSync(each, join(folder, "node_modules/.bin"));
    return join(folder, "node_modules/.bin");
  });
  assert.equal((await run([], { HOME: folder, PATH, npm_execpath: "/usr/lib/npm" })).code, 1);
  assert.equal((await run(["--command", "assent-hook"], { HOME: folder })).code, 0);
  assert.match(readFileSync(join(folder, ".gemini/settings.json"), "utf8"), /"assent-hook --host gemini"/);
  const homeless = await run(["--scope", "user"], { HOME: "." });
  assert.equal(homeless.code, 1);
  assert.match(homeless.err, /the home folder is unknown; set HOME/);
});

test("assent hook doctor tests a denial and reports faults; status lists sessions", async (t) => {
  const hooks = ready;
  const folder = folderWith(t, {});
  const command = [process.execPath, ...HOOK].join(" ");
  const env = { ...hooks.env, HOME: folder };
  const doctor = (more: Record<string, string> = {}) =>
    assent(["hook", "doctor", "--host", "claude-code", "--command", command], {
      cwd: folder,
      env: { ...env, ...more },
    });
  const without = await doctor();
  assert.equal(without.code, 1);
  assert.match(without.out, /wrong no settings of claude-code have the hook/);
  const install = await assent(["hook", "install", "--host", "claude-code", "--command", command], {
    cwd: folder,
    env,
  });
  assert.equal(install.code, 0, install.err);
  const well = await doctor();
  assert.equal(well.code, 0, well.out);
  assert.match(well.out, /ok {4}a call of a tool that no policy names was denied in the host's format/);
  assert.match(well.out, /note {2}claude-code runs the call when the hook is killed/);
  const file = join(folder, ".claude/settings.json");
  const plain = readFileSync(file, "utf8");
  writeFileSync(file, `// mine\n${plain}`);
  const commented = await doctor();
  assert.equal(commented.code, 1);
  assert.match(
    commented.out,
    /wrong .*settings\.json has the hook, but it has comments, and claude-code might not be able to read/,
  );
  const again = await assent(["hook", "install", "--host", "claude-code", "--command", command], { cwd: folder, env });
  assert.equal(again.code, 1);
  assert.match(again.err, /it has comments.*take that out first; nothing was changed/s);
  assert.equal(readFileSync(file, "utf8"), `// mine\n${plain}`);
  writeFileSync(file, plain);
  const wrongKey = await doctor({ ASSENT_API_KEY: "ask_wrong" });
  assert.equal(wrongKey.code, 1);
  assert.match(wrongKey.out, /wrong .*was not denied by the service/);
  // It starts the command in the settings, not another one that would work.
  writeFiles(folder, {
    ".claude/settings.json": readFileSync(join(folder, ".claude/settings.json"), "utf8").replaceAll(
      command,
      "/no/such/assent-hook",
    ),
  });
  const missing = await assent(["hook", "doctor", "--host", "claude-code"], { cwd: folder, env });
  assert.equal(missing.code, 1);
  assert.match(
    missing.out,
    /wrong .*was not denied by the service \(\/no\/such\/assent-hook --host claude-code\):.*not found/,
  );

  const event = { session_id: "s-1", cwd: folder, tool_name: "Bash", tool_input: { command: "ls" }, tool_use_id: "t" };
  await runHook(
    "claude-code",
    JSON.stringify({ session_id: "s-2", cwd: folder, hook_event_name: "SessionStart", source: "startup" }),
    env,
  );
  await runHook("claude-code", JSON.stringify({ ...event, hook_event_name: "PreToolUse" }), env);
  const { out } = await assent(["hook", "status"], { env });
  assert.match(out, /claude-code\ts-1\t-\t\S+\t1/);
  assert.match(out, /claude-code\ts-2\t\S+\t-\tnone/);
});

test("without a name the hook acts as the agent of its key, and doctor reports the agent and its rights", async (t) => {
  const hooks = await startHookService("policy: test\nrules:\n  - { name: allowed, tool: shell, effect: allow }\n");
  t.after(() => hooks.close());
  const folder = folderWith(t, {});
  const command = [process.execPath, ...HOOK].join(" ");
  const env = { ...hooks.env, ASSENT_AGENT: "", HOME: folder };
  const event = { session_id: "s", cwd: folder, tool_name: "Bash", tool_input: { command: "ls" }, tool_use_id: "t" };
  const allowed = await runHook("claude-code", JSON.stringify({ ...event, hook_event_name: "PreToolUse" }), env);
  assert.ok(allows("claude-code", { stdout: allowed.out, code: allowed.code }), allowed.out);
  const { body } = await hooks.service.call("GET", "/v1/actions", { key: hooks.service.admin });
  assert.deepEqual(
    (body.actions as { agent_id: string; status: string }[]).map((one) => [one.agent_id, one.status]),
    [["coder", "executing"]],
  );

  const args = ["hook", "install", "--host", "claude-code", "--command", command];
  assert.equal((await assent(args, { cwd: folder, env })).code, 0);
  const doctor = (more: Record<string, string>) =>
    assent(["hook", "doctor", "--host", "claude-code", "--command", command], {
      cwd: folder,
      env: { ...env, ...more },
    });
  const well = await doctor({});
  assert.match(well.out, /ok .* accepts the key, for the agent coder$/m);
  assert.match((await doctor({ ASSENT_AGENT: "other" })).out, /wrong the key is bound to coder, not to other/);
  const admin = await doctor({ ASSENT_API_KEY: hooks.service.admin, ASSENT_AGENT: "coder" });
  assert.match(admin.out, /wrong the key may do more than submit/);
});

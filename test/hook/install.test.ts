/** Settings of hosts: the hook once, everything else as it was. */
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { HOSTS } from "../../src/hook/hosts/answers.ts";
import { difference } from "../../src/hook/install/files.ts";
import { hasHook, settingsFile, SettingsFault, withHook, withoutHook } from "../../src/hook/install/settings.ts";
import { assent, folderWith, write } from "../support/cli.ts";
import { HOOK, runHook, startHookService } from "../support/hook.ts";

const PLACE = { home: "/home/ada", project: "/work/app" };
const COMMAND = "/usr/bin/node /opt/assent/dist/src/hook/bin.js";

for (const host of HOSTS)
  describe(host, () => {
    test("twice is once, and taken out is as before", () => {
      const once = withHook(null, { host, command: COMMAND });
      assert.equal(withHook(once, { host, command: COMMAND }), once);
      assert.ok(hasHook(once));
      assert.ok(once.includes(host === "opencode" ? `"${COMMAND}"` : `${COMMAND} --host ${host}`));
      assert.equal(withHook(withHook(null, { host, command: "assent-hook" }), { host, command: COMMAND }), once);
      assert.equal(withoutHook(once, host), null);
    });
    if (host !== "opencode") {
      test("what else stands there stays", () => {
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
        const after = withHook(before, { host, command: COMMAND });
        assert.equal(after.split("audit.sh").length, before.split("audit.sh").length);
        assert.match(after, /"model": "x"/);
        assert.deepEqual(JSON.parse(withoutHook(after, host) as string), JSON.parse(before));
      });
      test("settings that cannot be read are left alone", () => {
        for (const text of ["{", "[]", '{ "hooks": 1 }', "// x\n{}"])
          if (!(host === "kiro" && text.includes("1")))
            assert.throws(() => withHook(text, { host, command: COMMAND }), SettingsFault, text);
      });
    } else
      test("another plugin of that name is left alone", () => {
        assert.throws(() => withHook("export const X = 1;\n", { host, command: COMMAND }), SettingsFault);
      });
    test("has a place in a project", () => {
      assert.match(settingsFile(host, "project", PLACE) ?? "", /^\/work\/app\/\./);
    });
  });

test("onFailure stands where this Claude Code knows it, and only at what stops a call", () => {
  const settings = JSON.parse(withHook(null, { host: "claude-code", command: COMMAND, onFailure: true })) as {
    hooks: Record<string, { hooks: Record<string, unknown>[] }[]>;
  };
  assert.equal(settings.hooks["PreToolUse"]?.[0]?.hooks[0]?.["onFailure"], "block");
  assert.equal(settings.hooks["PostToolUse"]?.[0]?.hooks[0]?.["onFailure"], undefined);
  assert.ok(!withHook(null, { host: "claude-code", command: COMMAND }).includes("onFailure"));
});

test("what changes is shown without what does not", () => {
  assert.deepEqual(difference("a\nb\nc\n", "a\nx\nc\n"), ["- b", "+ x"]);
  assert.deepEqual(difference(null, "a\n"), ["+ a"]);
  assert.deepEqual(difference("a\n", "a\n"), []);
});

test("assent hook install shows, writes, replaces and takes out", async (t) => {
  const folder = folderWith(t, {});
  const run = (...args: string[]) =>
    assent(["hook", "install", "--host", "cursor", ...args], { cwd: folder, env: { HOME: folder } });
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
  write(folder, { ".cursor/hooks.json": "{ // mine\n}" });
  const refused = await run();
  assert.equal(refused.code, 1);
  assert.match(refused.err, /nothing was changed/);
  assert.equal(readFileSync(file, "utf8"), "{ // mine\n}");
  assert.equal((await assent(["hook", "install"], {})).code, 2);
  assert.equal((await assent(["hook", "instal"], {})).code, 2);
});

test("assent hook doctor proves a deny, and says what is wrong; status lists who asked", async (t) => {
  const hooks = await startHookService("policy: test\nrules:\n  - { name: allowed, tool: shell, effect: allow }\n");
  t.after(() => hooks.close());
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
  assert.match(well.out, /ok {4}a call of a tool that no policy names came back as a deny/);
  assert.match(well.out, /note {2}claude-code runs the call when the hook is killed/);
  const wrongKey = await doctor({ ASSENT_API_KEY: "ask_wrong" });
  assert.equal(wrongKey.code, 1);
  assert.match(wrongKey.out, /wrong .*did not come back as the service's deny/);

  const event = { session_id: "s-1", cwd: folder, tool_name: "Bash", tool_input: { command: "ls" }, tool_use_id: "t" };
  await runHook(
    "claude-code",
    JSON.stringify({ session_id: "s-2", cwd: folder, hook_event_name: "SessionStart", source: "startup" }),
    env,
  );
  await runHook("claude-code", JSON.stringify({ ...event, hook_event_name: "PreToolUse" }), env);
  const { out } = await assent(["hook", "status"], { env });
  assert.match(out, /claude-code\ts-1\t-\t\S+\t1/);
  assert.match(out, /claude-code\ts-2\t\S+\t-\tnever asked/);
});

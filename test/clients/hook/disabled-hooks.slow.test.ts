/** Host settings that contain the hook, and another setting that disables it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { addHook } from "../../../clients/hook/install/host-settings.ts";
import { findDisabledReason } from "../../../clients/hook/install/disabled-hooks.ts";
import type { Host } from "../../../clients/hook/hosts/answers.ts";
import { assent, folderWith } from "../../support/cli.ts";
import { startHookService } from "../../support/hook.ts";

const PLACE = { home: "/home/me", project: "/work/app" };
const MANAGED = "/etc/claude-code/managed-settings.json";
const SYSTEM = "/etc/gemini-cli/settings.json";
const HOOK = addHook(null, { host: "claude-code", command: "/opt/assent-hook" });
const both = (more: object) => JSON.stringify({ ...(JSON.parse(HOOK) as object), ...more });

type Files = Readonly<Record<string, string>>;
const off = (host: Host, files: Files) =>
  findDisabledReason(host, PLACE, (path) => files[path] ?? null, "/opt/assent-hook");

describe("Claude Code", () => {
  const user = "/home/me/.claude/settings.json";
  const project = "/work/app/.claude/settings.json";
  const local = "/work/app/.claude/settings.local.json";
  for (const [what, files, why] of [
    ["no switch", { [user]: HOOK }, null],
    ["off in the same file", { [user]: both({ disableAllHooks: true }) }, user],
    ["off by a repository", { [user]: HOOK, [project]: '{ "disableAllHooks": true }' }, project],
    ["off in the file that is not committed", { [project]: HOOK, [local]: '{ "disableAllHooks": true }' }, local],
    ["on again nearer", { [user]: both({ disableAllHooks: true }), [local]: '{ "disableAllHooks": false }' }, null],
    ["off, and the hook managed", { [MANAGED]: HOOK, [user]: '{ "disableAllHooks": true }' }, null],
    ["off where it is managed", { [MANAGED]: both({ disableAllHooks: true }) }, MANAGED],
    ["managed hooks alone, and it is none", { [MANAGED]: '{"allowManagedHooksOnly":true}', [user]: HOOK }, MANAGED],
    ["managed hooks alone, and it is one", { [MANAGED]: both({ allowManagedHooksOnly: true }) }, null],
    ["a file that is no JSON", { [user]: HOOK, [project]: "{" }, null],
  ] as [string, Files, string | null][])
    test(what, () => {
      const said = off("claude-code", files);
      if (why === null) assert.equal(said, null);
      else assert.ok(said?.startsWith(`${why} has "`), String(said));
    });
});

test("Gemini CLI, by the names of its versions; the system's settings win", () => {
  const user = "/home/me/.gemini/settings.json";
  for (const text of [
    '{ "hooksConfig": { "enabled": false } }',
    '{ "hooks": { "enabled": false } }',
    '{ "tools": { "enableHooks": false } } // mine',
  ])
    assert.match(off("gemini", { [user]: text }) ?? "", /^\/home\/me\/\.gemini\/settings\.json has ".*": false/, text);
  const on = '{ "hooksConfig": { "enabled": true } }';
  assert.equal(off("gemini", { [user]: '{ "hooksConfig": { "enabled": false } }', [SYSTEM]: on }), null);
});

describe("Codex, whose switch is in TOML", () => {
  for (const [text, isOff] of [
    ["[features]\nhooks = false\n", true],
    ['model = "x"\n[ features ] # mine\n  codex_hooks=false # none\n', true],
    ["features.hooks = false\n", true],
    ["features = { web = true, hooks = false }\n", true],
    ["[features]\nhooks = true\n", false],
    ["[features]\n# hooks = false\n", false],
    ["[features]\nweb = true\n[other]\nhooks = false\n", false],
    ["hooks = false\n", false],
    ["[features]\nno_hooks = false\n", false],
  ] as const)
    test(JSON.stringify(text), () => {
      for (const path of [
        "/home/me/.codex/config.toml",
        "/work/app/.codex/config.toml",
        "/etc/codex/requirements.toml",
      ])
        assert.equal(off("codex", { [path]: text })?.startsWith(`${path} has "hooks = false"`) ?? false, isOff, path);
    });
});

test("install and doctor report it", async (t) => {
  const hooks = await startHookService();
  t.after(() => hooks.close());
  const folder = folderWith(t, { ".claude/settings.local.json": '{ "disableAllHooks": true }' });
  const env = { ...hooks.env, HOME: folder };
  const on = ["--host", "claude-code", "--command", "/opt/assent-hook"];
  const install = await assent(["hook", "install", ...on], { cwd: folder, env });
  assert.equal(install.code, 1);
  assert.match(install.err, /installed but disabled: .*settings\.local\.json has "disableAllHooks": true/);
  const doctor = await assent(["hook", "doctor", ...on], { cwd: folder, env });
  assert.match(doctor.out, /^wrong .*settings\.local\.json has "disableAllHooks": true, .* calls no hook$/m);
});

/** A watched folder: loaded completely or not at all, however it changes. */
import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { ALLOWED, startService, type Answer, type Service } from "../../support/service.ts";
import { pause, until } from "../../support/wait.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const policy = (name: string, effect: string): string =>
  `policy: ${name}\nrules:\n  - { name: r, tool: ${name}, effect: ${effect} }\n`;
const testOf = (name: string, effect: string): string =>
  `now: 2026-01-15T10:00:00Z\npolicies: [${name}]\ncases:\n  - name: it does\n    action: { agent_id: a, tool: ${name}, operation: o }\n    expect: { effect: ${effect} }\n`;

describe("a watched folder of policies", () => {
  let root: string;
  let folder: string;
  let service: Service;

  beforeEach(async () => {
    root = temporaryFolder("assent-watched-");
    folder = join(root, "policies");
    mkdirSync(folder);
    write("one", "allow");
    service = await startService({ policies: folder, pluginOptions: { "policy-files": { poll_seconds: 0.2 } } });
  });
  afterEach(async () => {
    await service.close();
    rmSync(root, { recursive: true, force: true });
  });

  function write(name: string, effect: string, into = folder): void {
    writeFileSync(join(into, `${name}.yaml`), policy(name, effect));
  }
  const decided = async (tool: string): Promise<string> =>
    (await service.call("POST", "/v1/gate/decide", { body: { ...ALLOWED, tool } })).body.decision as string;
  const ready = async (): Promise<Answer["body"]> => (await service.call("GET", "/readyz", { key: null })).body;

  const comes = (what: string, holds: () => Promise<boolean>): Promise<void> =>
    until(() => `${what}\n${service.logged.slice(-5).join("\n")}`, holds);
  const becomes = (tool: string, effect: string): Promise<void> =>
    comes(`${tool} is ${effect}`, async () => (await decided(tool)) === effect);
  const sets = async (): Promise<{ source: Record<string, string>; previous: string; policy_set: string }[]> =>
    (await service.storage.entries(0, 1000))
      .filter(({ type }) => type === "policy_set")
      .map(({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)));

  it("loads an edit in place, a rename over a file, a new file and a deleted file", async () => {
    write("one", "deny");
    await becomes("one", "deny");
    writeFileSync(join(root, "next"), policy("one", "require_approval"));
    renameSync(join(root, "next"), join(folder, "one.yaml"));
    await becomes("one", "require_approval");
    write("two", "allow");
    await becomes("two", "allow");
    unlinkSync(join(folder, "two.yaml"));
    await becomes("two", "deny");
  });

  it("names a file that looks like a policy and is not loaded, as soon as it is written", async () => {
    assert.deepEqual((await ready()).policies.unloaded, []);
    writeFileSync(join(folder, "two.YAML"), policy("two", "deny"));
    await comes("the file is named", async () => (await ready()).policies.unloaded.length === 1);
    const { ok, unloaded } = (await ready()).policies;
    assert.deepEqual([ok, unloaded], [true, [{ source: "policy-files", file: "two.YAML", reason: "ending" }]]);
    const lines = service.logged.filter((line) => line.includes("look like policies and are not loaded"));
    assert.equal(lines.length, 1);
    assert.match(
      lines[0] as string,
      /two\.YAML looks like a policy and is not loaded, because its name does not end in/,
    );
    renameSync(join(folder, "two.YAML"), join(folder, "two.yaml"));
    await comes("no file is named", async () => (await ready()).policies.unloaded.length === 0);
  });

  it("loads both files of a swap of symbolic links, as git-sync and ConfigMaps do it, together", async () => {
    const mounted = join(root, "mounted");
    mkdirSync(mounted);
    for (const [version, effect] of [
      ["v1", "allow"],
      ["v2", "deny"],
    ] as const) {
      mkdirSync(join(mounted, `..${version}`));
      for (const name of ["left", "right"]) write(name, effect, join(mounted, `..${version}`));
    }
    symlinkSync("..v1", join(mounted, "..data"));
    for (const name of ["left", "right"]) symlinkSync(`..data/${name}.yaml`, join(mounted, `${name}.yaml`));
    const mount = await startService({ policies: mounted, pluginOptions: { "policy-files": { poll_seconds: 0.2 } } });
    try {
      const seen = new Set<string>();
      const look = async (): Promise<string> => {
        const active = (await mount.call("GET", "/v1/policies?status=active", { key: mount.admin })).body.policies as {
          active_version: number;
        }[];
        const effects = active.map(({ active_version }) => active_version).join();
        seen.add(effects);
        return effects;
      };
      assert.equal(await look(), "1,1");
      symlinkSync("..v2", join(mounted, "..data_tmp"));
      renameSync(join(mounted, "..data_tmp"), join(mounted, "..data"));
      await until(
        () => `the new version is taken: ${[...seen].join(" ")} ${mount.logged.slice(-3).join(" ")}`,
        async () => (await look()) === "2,2",
        2,
      );
      assert.deepEqual([...seen], ["1,1", "2,2"], "never one without the other");
    } finally {
      await mount.close();
    }
  });

  it("keeps the last valid set while there is a fault, and reports where, since when, and when it ends", async () => {
    const since = Date.now();
    writeFileSync(join(folder, "two.yaml"), "policy: two\nrules:\n  - { name: r, tool: two, effect: sometimes }\n");
    write("one", "deny");
    await comes("the fault shows", async () => (await ready()).policies.stale_since !== null);
    assert.equal(await decided("one"), "allow", "as a whole or not at all");
    const { policies } = await ready();
    assert.deepEqual(
      policies.faults.map(({ file, line }: { file: string; line: number }) => [file, line]),
      [["two.yaml", 3]],
    );
    assert.ok(policies.faults[0].column > 1 && Date.parse(policies.stale_since) >= since && policies.ok);
    assert.ok(service.logged.some((line) => line.includes("two.yaml:3:") && line.includes("the last valid set stays")));
    const [, refused] = await sets();
    assert.deepEqual([refused?.source["refused"], refused?.previous === refused?.policy_set], ["1", true]);
    assert.match(refused?.source["fault"] ?? "", /^two\.yaml:3:\d+: /);
    // Checked repeatedly, and reported once.
    await pause(700);
    assert.equal((await sets()).length, 2);

    write("two", "allow");
    await becomes("one", "deny");
    await becomes("two", "allow");
    assert.deepEqual([(await ready()).policies.stale_since, (await ready()).policies.faults], [null, []]);
  });

  it("runs the tests next to the policies first", async () => {
    writeFileSync(join(folder, "one_test.yaml"), testOf("one", "allow"));
    write("one", "deny");
    await comes("the failing test shows", async () =>
      (await ready()).policies.faults.some(
        ({ file, line }: { file: string; line: number }) => file === "one_test.yaml" && line === 4,
      ),
    );
    assert.equal(await decided("one"), "allow");
    writeFileSync(join(folder, "one_test.yaml"), testOf("one", "deny"));
    await becomes("one", "deny");
  });

  it("ignores temporary files of editors, and never loads half a file", async () => {
    for (const name of [".one.yaml.swp", "one.yaml~", "4913", "#one.yaml#", ".#one.yaml", "one.yaml.bak"])
      writeFileSync(join(folder, name), "not: [a policy");
    // Is loaded after them.
    write("two", "allow");
    await becomes("two", "allow");
    assert.equal((await ready()).policies.stale_since, null);
    assert.equal((await sets()).length, 2);

    // A slow writer: every prefix that ends with a rule is a valid policy.
    const rules = Array.from({ length: 12 }, (_, i) => `  - { name: r${i}, tool: slow${i}, effect: allow }\n`);
    writeFileSync(join(folder, "slow.yaml"), "policy: slow\nrules:\n");
    for (const rule of rules) {
      appendFileSync(join(folder, "slow.yaml"), rule);
      await pause(40);
    }
    await becomes("slow11", "allow");
    const versions = (await service.call("GET", "/v1/policies/slow/versions", { key: service.admin })).body
      .versions as unknown[];
    assert.equal(versions.length, 1, "taken once, when it was whole");
    assert.equal(readFileSync(join(folder, "slow.yaml"), "utf8").split("\n").length, 15);
  });

  it("continues after the folder was deleted and created again", async () => {
    renameSync(folder, `${folder}.away`);
    await comes("it is missed", async () => (await ready()).policies.stale_since !== null);
    assert.equal(await decided("one"), "allow");
    write("one", "deny", `${folder}.away`);
    renameSync(`${folder}.away`, folder);
    await becomes("one", "deny");
    assert.equal((await ready()).policies.stale_since, null);
  });
});

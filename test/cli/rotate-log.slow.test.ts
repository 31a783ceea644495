/**
 * `assent keys rotate-log` on a separate store, as an operator runs it, and clients that pinned the old key.
 * @needs events, provenance
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { assentInProcessWithEnv, type Run } from "../support/cli.ts";
import { newKey } from "../support/keys.ts";
import { startProcess, stateBeside, stopProcess } from "../support/process.ts";
import { FEW_POLICIES } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ADMIN = "assent-admin-0123456789abcdefghijklmnop";

describe("assent keys rotate-log", () => {
  let folder: string;
  before(() => {
    folder = temporaryFolder("assent-rotate-log-");
  });
  after(() => rmSync(folder, { recursive: true }));

  /** A store, and a service's responses on it: its keys, and the proof of its first entry. */
  function storeOf(name: string, env: Record<string, string> = {}) {
    const data = join(folder, name);
    const settings = { ASSENT_DATA: data, ASSENT_POLICIES: FEW_POLICIES, ASSENT_ADMIN_KEY: ADMIN, ...env };
    const run = (args: string[], more: Record<string, string> = {}): Promise<Run> =>
      assentInProcessWithEnv({ ...stateBeside(settings), ...settings, ...more }, ...args);
    async function served(more: Record<string, string> = {}): Promise<{ vkeys: string[]; proof: string }> {
      const service = await startProcess({ ...settings, ...more });
      const get = async (path: string): Promise<string> => {
        const answer = await fetch(`${service.url}${path}`, { headers: { authorization: `Bearer ${ADMIN}` } });
        const text = await answer.text();
        assert.equal(answer.status, 200, text);
        return text;
      };
      try {
        const busy = await run(["keys", "rotate-log"], more);
        assert.notEqual(busy.code, 0, "not while the service has the store");
        const { keys } = JSON.parse(await get("/v1/provenance/keys")) as { keys: { vkey: string }[] };
        const { events } = JSON.parse(await get("/v1/events/page?after=-1&limit=1")) as { events: { hash: string }[] };
        const proof = join(data, "proof.json");
        writeFileSync(proof, await get(`/v1/provenance/${events[0]?.hash}/proof`));
        return { vkeys: keys.map(({ vkey }) => vkey), proof };
      } finally {
        await stopProcess(service);
      }
    }
    return { data, run, served };
  }

  test("rotates the data folder's key; an old pin verifies and is told the new key, audits pass, and a backup has both keys", async () => {
    const { data, run, served } = storeOf("own");
    const { vkeys, proof } = await served();
    const [old = ""] = vkeys;
    const made = await run(["keys", "rotate-log", "--overlap", "7d", "--json"]);
    assert.equal(made.code, 0, made.err);
    const { vkey, previous, previous_until, recorded } = JSON.parse(made.out) as Record<string, string>;
    assert.deepEqual([previous, recorded], [old, true]);
    assert.ok(Math.abs(Date.parse(previous_until as string) - Date.now() - 7 * 86_400_000) < 600_000);
    const twice = await run(["keys", "rotate-log"]);
    assert.deepEqual([twice.code, /nothing was recorded/.test(twice.out)], [0, true], twice.err);
    assert.deepEqual((await served()).vkeys, [vkey, old]);
    const verified = await run(["verify", proof, "--key", old]);
    assert.equal(verified.code, 0, verified.err);
    assert.ok(verified.out.includes(`pin this key from now on: ${vkey}`), verified.out);
    assert.doesNotMatch((await run(["verify", proof, "--key", vkey as string])).out, /pin this key/);
    for (const key of [old, vkey as string]) {
      const audit = await run(["audit", "--key", key, "--checkpoint", join(data, "checkpoint")]);
      assert.equal(audit.code, 0, audit.out);
      assert.match(audit.out, /authorized the new key/);
    }
    const copy = join(folder, "copy");
    assert.equal((await run(["backup", copy])).code, 0);
    const pems = (where: string): string[] => readdirSync(where).filter((name) => name.startsWith("log-key"));
    assert.deepEqual([pems(copy).length, pems(copy)], [2, pems(data)]);
  });

  test("requires the next key if one is configured, and accepts the configuration after the overlap", async () => {
    const [first, second] = ["first.pem", "second.pem"].map((name) => {
      writeFileSync(join(folder, name), newKey(), { mode: 0o600 });
      return join(folder, name);
    }) as [string, string];
    const permits = { ASSENT_PERMIT_KEY: newKey() };
    const { run, served } = storeOf("given", { ASSENT_LOG_KEY: first, ...permits });
    const [old = ""] = (await served({ ASSENT_LOG_NEXT_KEY: second })).vkeys;
    const bare = await run(["keys", "rotate-log"]);
    assert.deepEqual([bare.code, /ASSENT_LOG_NEXT_KEY/.test(bare.err)], [2, true], bare.err);
    const same = await run(["keys", "rotate-log"], { ASSENT_LOG_NEXT_KEY: first });
    assert.deepEqual([same.code, /signed with this key before/.test(same.err)], [1, true], same.err);
    const made = await run(["keys", "rotate-log", "--at-once", "--json"], { ASSENT_LOG_NEXT_KEY: second });
    assert.equal(made.code, 0, made.err);
    const { vkey } = JSON.parse(made.out) as { vkey: string };
    const late = await run(["keys", "rotate-log", "--json"], { ASSENT_LOG_NEXT_KEY: second });
    assert.equal((JSON.parse(late.out) as { recorded: boolean }).recorded, false, "the same configuration, run again");
    assert.deepEqual((await served({ ASSENT_LOG_KEY: second })).vkeys, [vkey, old]);
    const refused = await run(["serve", "--port", "0"]);
    assert.deepEqual([refused.code, /was changed at entry/.test(refused.err)], [1, true], refused.err);
    assert.equal(existsSync(join(folder, "given", "log-key.pem")), false);
    assert.equal(readFileSync(first, "utf8").includes("PRIVATE"), true);
  });
});

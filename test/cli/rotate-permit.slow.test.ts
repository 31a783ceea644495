/**
 * `assent keys rotate-permit` on a store of its own, as an operator runs it.
 * @needs well-known
 */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { assentInProcessWithEnv, type Run } from "../support/cli.ts";
import { newKey } from "../support/keys.ts";
import { startProcess, stateBeside, stopProcess } from "../support/process.ts";
import { FEW_POLICIES } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

describe("assent keys rotate-permit", () => {
  let data: string;
  before(() => {
    data = temporaryFolder("assent-rotate-");
  });
  after(() => rmSync(data, { recursive: true }));

  function rotate(args: string[] = [], env: Record<string, string> = {}): Promise<Run> {
    const settings = { ASSENT_DATA: data, ASSENT_POLICIES: FEW_POLICIES, ...env };
    return assentInProcessWithEnv(
      { ...stateBeside(settings), ...settings },
      "keys",
      "rotate-permit",
      "--json",
      ...args,
    );
  }
  async function published(env: Record<string, string> = {}): Promise<string[]> {
    const service = await startProcess({ ASSENT_DATA: data, ASSENT_POLICIES: FEW_POLICIES, ...env });
    try {
      const busy = await rotate([], env["ASSENT_PERMIT_KEY"] === undefined ? {} : { ASSENT_PERMIT_KEY: "" });
      assert.notEqual(busy.code, 0, "not while the service has the store");
      const answer = await fetch(`${service.url}/.well-known/jwks.json`);
      return ((await answer.json()) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid);
    } finally {
      await stopProcess(service);
    }
  }

  test("rotates the data folder's key, then a configured one; old keys are published until they end", async () => {
    const first = await rotate();
    assert.equal(first.code, 0, first.err);
    const { kid: second, previous: original, previous_until } = JSON.parse(first.out) as Record<string, string>;
    assert.ok(Date.parse(previous_until as string) > Date.now() + 86_000_000);
    assert.deepEqual(await published(), [second, original]);

    const file = join(data, "given.pem");
    const pem = newKey();
    writeFileSync(file, pem, { mode: 0o600 });
    const given = await rotate(["--key", file]);
    assert.equal(given.code, 0, given.err);
    assert.match(given.err, /ASSENT_PERMIT_KEY/);
    const { kid: third } = JSON.parse(given.out) as Record<string, string>;
    assert.deepEqual(await published({ ASSENT_PERMIT_KEY: file }), [third, second, original]);

    const bare = await rotate([], { ASSENT_PERMIT_KEY: file });
    assert.deepEqual([bare.code, /--key must name the file/.test(bare.err)], [2, true], bare.err);
    const again = await rotate(["--key", file], { ASSENT_PERMIT_KEY: file });
    assert.deepEqual([again.code, /signed with this key before/.test(again.err)], [1, true], again.err);
  });

  test("creates another key if the file was lost, and ends a stolen key immediately", async () => {
    rmSync(join(data, "permit-key.pem"));
    const found = await rotate();
    assert.equal(found.code, 0, found.err);
    const { kid, previous: gone } = JSON.parse(found.out) as Record<string, string>;
    const stolen = readFileSync(join(data, "permit-key.pem"));
    const ended = await rotate(["--at-once"]);
    assert.equal(ended.code, 0, ended.err);
    const { kid: last, previous } = JSON.parse(ended.out) as Record<string, string>;
    assert.equal(previous, kid);
    assert.notDeepEqual(readFileSync(join(data, "permit-key.pem")), stolen);
    const keys = await published();
    assert.deepEqual([keys[0], keys.includes(kid as string), keys.includes(gone as string)], [last, false, false]);
  });
});

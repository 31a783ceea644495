/**
 * The key that signs permits: separate from the log's, the same at each start, and rotated without losing a permit.
 * @needs well-known
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, it } from "node:test";
import { decodeProtectedHeader } from "jose";
import { defaultConfig } from "../../src/config/index.ts";
import { Refusal } from "../../src/contract/errors.ts";
import { decodeEntry, type PermitKeyEntry } from "../../src/domain/entries.ts";
import { VaultError } from "../../src/identity/key-files.ts";
import { MAX_PERMIT_SECONDS } from "../../src/domain/permit.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { newKey } from "../support/keys.ts";
import { ALLOWED, FEW_POLICIES, startService, type Service, type ServiceOptions } from "../support/service.ts";

let service: Service;
const start = async (options: ServiceOptions = {}): Promise<void> => {
  service = await startService(options);
};
afterEach(() => service.close());

const file = (name = "permit-key.pem"): string => join(service.folder, name);
const kids = async (): Promise<string[]> =>
  (await service.call("GET", "/.well-known/jwks.json", { key: null })).body.keys.map(({ kid }: { kid: string }) => kid);
const submit = async (): Promise<{ id: string; permit: string }> =>
  (await service.call("POST", "/v1/actions", { body: ALLOWED, headers: { prefer: "permit" } })).body;
const startAction = async ({ id, permit }: { id: string; permit: string }): Promise<[number, string | undefined]> => {
  const { status, body } = await service.call("POST", `/v1/actions/${id}/start`, { body: { permit } });
  return [status, body.code as string | undefined];
};
const kidOf = ({ permit }: { permit: string }): string | undefined => decodeProtectedHeader(permit).kid;
const rotate = (key: string | null = null, overlap = MAX_PERMIT_SECONDS) =>
  service.runtime.rotatePermitKey({ key, overlap });

describe("the key that signs permits", () => {
  it("the permit key is created at the first start, differs from the log's, is readable only by its owner, and is reused", async () => {
    await start();
    const [kid] = await kids();
    assert.equal(statSync(file()).mode & 0o777, 0o600);
    assert.notEqual(readFileSync(file(), "utf8"), readFileSync(file("log-key.pem"), "utf8"));
    const made = await submit();
    assert.equal(kidOf(made), kid);
    await service.restart();
    assert.deepEqual(await kids(), [kid]);
    assert.deepEqual(await startAction(made), [200, undefined]);
  });

  it("a key is rejected if it is the log's, or not the one in the store", async () => {
    await start();
    const right = readFileSync(file(), "utf8");
    writeFileSync(file(), readFileSync(file("log-key.pem")));
    await assert.rejects(
      service.restart(),
      (error) => error instanceof VaultError && /one of their own/.test(error.message),
    );
    writeFileSync(file(), newKey());
    await assert.rejects(
      service.restart(),
      (error) => error instanceof VaultError && /rotate-permit/.test(error.message),
    );
    writeFileSync(file(), right);
    await service.restart();
    assert.deepEqual(await startAction(await submit()), [200, undefined]);
  });
});

describe("a rotation of the permit key", () => {
  it("the new key signs from the next start on; permits of the old one are accepted until they expire", async () => {
    await start();
    const [old] = await kids();
    const before = await submit();
    const { kid, previous } = await rotate();
    assert.equal(previous, old);
    assert.deepEqual(await kids(), [kid, old]);
    assert.deepEqual(await startAction(before), [200, undefined]);
    // The running process still has the old key, whose permits are accepted.
    const meanwhile = await submit();
    assert.equal(kidOf(meanwhile), old);
    await service.restart();
    assert.equal(existsSync(file("permit-key.next.pem")), false);
    assert.deepEqual(await kids(), [kid, old]);
    assert.deepEqual(await startAction(meanwhile), [200, undefined]);
    const after = await submit();
    assert.equal(kidOf(after), kid);
    assert.deepEqual(await startAction(after), [200, undefined]);
    service.clock.now += MAX_PERMIT_SECONDS * 1000;
    assert.deepEqual(await kids(), [kid], "no permit of the old one is left");
  });

  it("rotate-permit --at-once invalidates permits of the old key, and the process signs none until it has the new key", async () => {
    await start();
    const before = await submit();
    const { kid } = await rotate(null, 0);
    assert.deepEqual(await kids(), [kid]);
    assert.deepEqual(await startAction(before), [403, "PERMIT_INVALID"]);
    const grant = { id: "a", decision_hash: "00".repeat(32), issued_at: Date.now(), expires_at: Date.now() + 1000 };
    const subject = {
      issuer: "",
      action_id: "",
      agent_id: "",
      tool: "",
      operation: "",
      action_digest: "",
      request_hash: "",
    };
    await assert.rejects(
      service.runtime.host.permits.make(subject, grant),
      (error) => error instanceof Refusal && error.code === "PERMIT_KEY_RETIRED",
    );
    await service.restart();
    assert.equal(kidOf(await submit()), kid);
  });

  it("the ledger entry names both keys and the end of the old one", async () => {
    await start();
    await rotate();
    const { size } = await service.storage.head();
    const [row] = await service.storage.entries(size - 1, size);
    const entry = decodeEntry<PermitKeyEntry>(row?.bytes as Uint8Array);
    assert.deepEqual(
      [entry.type, Date.parse(entry.previous_until) - Date.parse(entry.at), entry.public_key === entry.previous],
      ["permit_key", MAX_PERMIT_SECONDS * 1000, false],
    );
    assert.equal(await service.storage.meta("permit_key"), entry.previous);
  });

  it("a rotation interrupted before its entry changes nothing, and continues with the same key", async () => {
    await start();
    const [old] = await kids();
    const waiting = newKey();
    writeFileSync(file("permit-key.next.pem"), waiting, { mode: 0o600 });
    await service.restart();
    assert.deepEqual(await kids(), [old]);
    await rotate();
    assert.equal(readFileSync(file(), "utf8"), waiting);
  });

  it("a rotation interrupted after its entry is finished at the next start", async () => {
    await start();
    const before = readFileSync(file());
    const { kid } = await rotate();
    renameSync(file(), file("permit-key.next.pem"));
    writeFileSync(file(), before, { mode: 0o600 });
    await service.restart();
    assert.equal(existsSync(file("permit-key.next.pem")), false);
    assert.equal(kidOf(await submit()), kid);
  });

  it("a key that only the store names is not trusted, because anyone with the database could have added it", async () => {
    await start();
    const [own] = await kids();
    await service.storage.write((tx) => tx.putMeta("permit_key", "ab".repeat(32)));
    await assert.rejects(service.restart(), VaultError);
    const config = {
      ...defaultConfig({ data: service.folder, policies: FEW_POLICIES }),
      log: { level: "silent" as const },
    };
    const runtime = await createRuntime(config, { anyPermitKey: true });
    await runtime.start();
    const { kid, previous, until } = await runtime.rotatePermitKey({ key: null, overlap: MAX_PERMIT_SECONDS });
    assert.deepEqual([kid, previous === kid, until <= Date.now()], [own, false, true]);
    await runtime.stop();
    await service.restart();
    assert.deepEqual(await kids(), [own]);
  });

  it("an earlier permit key and the log's key are rejected, and a missing configured key aborts startup", async () => {
    const [first, second] = [newKey(), newKey()];
    await start({ change: (config) => (config.permits.key = first) });
    const { size } = await service.storage.head();
    await assert.rejects(rotate(first), VaultError);
    await assert.rejects(rotate(readFileSync(file("log-key.pem"), "utf8")), VaultError);
    await assert.rejects(rotate(null), VaultError);
    await assert.rejects(rotate("no such file"), VaultError);
    assert.equal((await service.storage.head()).size, size);
    await rotate(second);
    await assert.rejects(rotate(first), VaultError);
    assert.equal((await service.storage.head()).size, size + 1);
  });
});

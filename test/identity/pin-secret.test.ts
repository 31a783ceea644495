/** The secret of a store: another one is refused, and accepting it seals all rows again. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import type { Vault } from "../../src/contract/core-host.ts";
import type { LedgerHead } from "../../src/contract/storage.ts";
import { SEALED_TABLES } from "../../src/contract/row-seals.ts";
import { pinSecret } from "../../src/identity/pin-secret.ts";
import { createRowSeals } from "../../src/identity/row-seals.ts";
import { verifyEd25519 } from "../../src/identity/vault.ts";
import { memoryStorage } from "../../src/testing/memory-storage.ts";
import { deliveryRow, documentRow, entryRow, headRow, idempotencyRow } from "../../src/testing/suite/rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const silent = { debug() {}, info() {}, warn() {}, error() {} };

function withSecret(secret: string) {
  const vault: Vault = {
    mac: (purpose, message) => new Uint8Array(createHmac("sha256", secret).update(purpose).update(message).digest()),
    verify: verifyEd25519,
  };
  return { vault, seals: createRowSeals(vault, silent) };
}

const sealedHead = ({ seals }: ReturnType<typeof withSecret>, size: number): LedgerHead => ({
  ...headRow(size),
  seal: seals.sealHead(headRow(size)),
});

test("a store opens with another secret only if the operator accepts it, and its rows are then sealed with it", async () => {
  const storage = sqliteStorage({ path: join(temporaryFolder("assent-secret-"), "assent.db") });
  await storage.open();
  try {
    const [first, second] = [withSecret("one"), withSecret("two")];
    await pinSecret(storage, first, silent, { accept: false });
    await storage.write(async (tx) => {
      const seal = first.seals.seal;
      const document = documentRow("a");
      const idempotency = idempotencyRow("a");
      for (let n = 1; n <= 3; n++) {
        const { position: _, ...delivery } = deliveryRow(n);
        await tx.insertDelivery({ ...delivery, seal: seal("deliveries", delivery) });
      }
      await tx.putDocument({ ...document, seal: seal("documents", document) }, null);
      await tx.append([entryRow(0)], [], sealedHead(first, 1));
      await tx.putCheckpoint(1, "signed");
      await tx.insertIdempotency({ ...idempotency, seal: seal("idempotency", idempotency) });
    });
    await pinSecret(storage, first, silent, { accept: false });
    await assert.rejects(pinSecret(storage, second, silent, { accept: false }), {
      name: "VaultError",
      message: /not the one that this store was first used with.*--accept-secret/,
    });
    await pinSecret(storage, second, silent, { accept: true });
    for (const table of SEALED_TABLES)
      for (const row of (await storage.copying?.read(table, null, 10)) ?? [])
        assert.ok(second.seals.matches(table, row as never), table);
    assert.ok(second.seals.isOwnHead(await storage.head()));
    await pinSecret(storage, second, silent, { accept: false });
    await assert.rejects(pinSecret(storage, first, silent, { accept: false }), { name: "VaultError" });
  } finally {
    await storage.close();
  }
});

test("another secret is refused while entries are unsigned, unless the operator accepts them", async () => {
  const storage = sqliteStorage({ path: join(temporaryFolder("assent-secret-"), "assent.db") });
  await storage.open();
  try {
    const [first, second] = [withSecret("one"), withSecret("two")];
    await pinSecret(storage, first, silent, { accept: false });
    await storage.write((tx) => tx.append([entryRow(0), entryRow(1)], [], sealedHead(first, 2)));
    await storage.write((tx) => tx.putCheckpoint(1, "signed"));
    await assert.rejects(pinSecret(storage, second, silent, { accept: true }), {
      name: "VaultError",
      message: /entries are unsigned \(1 to 1\).*earlier secret/,
    });
    assert.ok(first.seals.isOwnHead(await storage.head()));
    await pinSecret(storage, second, silent, { accept: true, acceptUnsigned: true });
    assert.ok(second.seals.isOwnHead(await storage.head()));
  } finally {
    await storage.close();
  }
});

test("a storage that cannot rewrite its rows rejects another secret", async () => {
  const storage = memoryStorage();
  await storage.open();
  await pinSecret(storage, withSecret("one"), silent, { accept: false });
  await assert.rejects(
    pinSecret(storage, withSecret("two"), silent, { accept: true }),
    /cannot change to another secret/,
  );
  await storage.close();
});

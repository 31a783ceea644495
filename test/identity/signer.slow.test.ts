import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { test } from "node:test";
import { createSigner } from "../../src/identity/signer.ts";

const { privateKey } = generateKeyPairSync("ed25519");
const publicKey = createPublicKey(privateKey);
const message = (i: number): Uint8Array => new TextEncoder().encode(`message ${i}`);

test("one and many at once are signed, each its own message", async () => {
  const signer = createSigner(privateKey);
  try {
    for (const count of [1, 3, 4, 300]) {
      const signatures = await Promise.all(Array.from({ length: count }, (_, i) => signer.sign(message(i))));
      signatures.forEach((signature, i) =>
        assert.ok(verify(null, message(i), publicKey, signature), `${i} of ${count}`),
      );
    }
  } finally {
    await signer.close();
  }
});

test("when the thread is gone, what it was asked for is signed here", async () => {
  const signer = createSigner(privateKey);
  await Promise.all(Array.from({ length: 8 }, (_, i) => signer.sign(message(i))));
  const waiting = Array.from({ length: 50 }, (_, i) => signer.sign(message(i)));
  // After the group was sent, before it can have been answered.
  await new Promise((resolve) => setImmediate(resolve));
  await signer.close();
  (await Promise.all(waiting)).forEach((signature, i) => assert.ok(verify(null, message(i), publicKey, signature)));
  assert.ok(verify(null, message(1), publicKey, await signer.sign(message(1))));
  const again = await Promise.all(Array.from({ length: 8 }, (_, i) => signer.sign(message(i))));
  again.forEach((signature, i) => assert.ok(verify(null, message(i), publicKey, signature)));
  await signer.close();
});

test("closing ends, though the last answer of the thread arrives only now", async () => {
  const signer = createSigner(privateKey);
  await Promise.all(Array.from({ length: 8 }, (_, i) => signer.sign(message(i))));
  const waiting = Array.from({ length: 8 }, (_, i) => signer.sign(message(i)));
  await new Promise((resolve) => setImmediate(resolve));
  // The thread answers, and this one does not look.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  await signer.close();
  (await Promise.all(waiting)).forEach((signature, i) => assert.ok(verify(null, message(i), publicKey, signature)));
});

import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { test } from "node:test";
import { createSigner } from "../../src/identity/signer.ts";

const { privateKey } = generateKeyPairSync("ed25519");
const publicKey = createPublicKey(privateKey);
const message = (i: number): Uint8Array => new TextEncoder().encode(`message ${i}`);

test("one message and many concurrent ones are signed, each with its own signature", async () => {
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

test("messages are signed on the main thread after the signing thread has ended", async () => {
  const signer = createSigner(privateKey);
  await Promise.all(Array.from({ length: 8 }, (_, i) => signer.sign(message(i))));
  const waiting = Array.from({ length: 50 }, (_, i) => signer.sign(message(i)));
  // After the group was sent, before it can be answered.
  await new Promise((resolve) => setImmediate(resolve));
  await signer.close();
  (await Promise.all(waiting)).forEach((signature, i) => assert.ok(verify(null, message(i), publicKey, signature)));
  assert.ok(verify(null, message(1), publicKey, await signer.sign(message(1))));
  const again = await Promise.all(Array.from({ length: 8 }, (_, i) => signer.sign(message(i))));
  again.forEach((signature, i) => assert.ok(verify(null, message(i), publicKey, signature)));
  await signer.close();
});

test("closing completes even if the last response of the thread arrives late", async () => {
  const signer = createSigner(privateKey);
  await Promise.all(Array.from({ length: 8 }, (_, i) => signer.sign(message(i))));
  const waiting = Array.from({ length: 8 }, (_, i) => signer.sign(message(i)));
  await new Promise((resolve) => setImmediate(resolve));
  // The thread responds while the main thread is blocked.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  await signer.close();
  (await Promise.all(waiting)).forEach((signature, i) => assert.ok(verify(null, message(i), publicKey, signature)));
});

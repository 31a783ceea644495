import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { describeSecretWeakness } from "../../src/identity/secret-strength.ts";

test("secrets from documentation, words or keyboard patterns are too weak", () => {
  for (const secret of [
    "a-secret-of-at-least-32-characters",
    "a secret of 32 characters or more",
    "a secret that all replicas share, 32 or more",
    "this is a very long password that I will remember",
    "correct-horse-battery-staple-horse",
    "change-me-change-me-change-me-change-me",
    "changemechangemechangemechangeme",
    "ThisIsTheSecretOfOurStagingServer2026!",
    "a".repeat(64),
    "0123456789abcdef0123456789abcdef0123456789abcdef",
    "abcdefghijklmnopqrstuvwxyz0123456789",
    "12345678901234567890123456789012",
    "supersecretpasswordsupersecretpassword",
    "x7Gq".repeat(16),
    "",
  ])
    assert.notEqual(describeSecretWeakness(secret), null, secret);
});

test("random bytes are strong enough in every usual notation", () => {
  for (let i = 0; i < 2000; i++) {
    // A fixed seed, because one random text in some millions does contain words.
    const bytes = createHash("sha256").update(`secret ${i}`).digest();
    for (const secret of [
      bytes.toString("base64url"),
      bytes.toString("base64"),
      bytes.toString("hex"),
      bytes.subarray(0, 16).toString("hex").toUpperCase(),
      bytes.subarray(0, 24).toString("base64"),
      Array.from(bytes, (byte) => "abcdefghijklmnopqrstuvwxyz"[byte % 26]).join(""),
    ])
      assert.equal(describeSecretWeakness(secret), null, secret);
  }
});

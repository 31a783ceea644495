import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { toBase64Url, setSha256, utf8 } from "../../src/domain/hash.ts";
import { checkToken, makeToken, type TokenClaims } from "../../src/domain/tokens.ts";

setSha256((bytes) => new Uint8Array(createHash("sha256").update(bytes).digest()));

const macWith = (secret: string) => (message: Uint8Array) =>
  new Uint8Array(createHmac("sha256", secret).update(message).digest());
const mac = macWith("one");
const claims: TokenClaims = {
  action_id: "a-1",
  request_hash: "00".repeat(32),
  approver: "user:ada",
  expires_at: 1_800_000_000_000,
};
const token = makeToken("approval", claims, mac);
const [payload, signature] = token.slice("apt1_".length).split(".") as [string, string];
const carrying = (text: string) => `apt1_${toBase64Url(utf8(text))}.${signature}`;

describe("an approval token", () => {
  test("an approval token is valid only for its action, request, approver, expiry and secret", () => {
    assert.equal(checkToken("approval", token, claims, mac), "ok");
    assert.equal(checkToken("approval", token, { ...claims, action_id: "a-2" }, mac), "other_action");
    assert.equal(checkToken("approval", token, { ...claims, request_hash: "01".repeat(32) }, mac), "altered");
    assert.equal(checkToken("approval", token, { ...claims, approver: "user:bob" }, mac), "other_approver");
    assert.equal(checkToken("approval", token, { ...claims, expires_at: claims.expires_at + 1 }, mac), "altered");
    assert.equal(checkToken("approval", token, claims, macWith("two")), "altered");
  });

  test("is rejected as altered if its claims were rewritten, claim by claim", () => {
    const bob = { ...claims, approver: "user:bob" };
    assert.equal(checkToken("approval", carrying(`["a-1","user:bob",${claims.expires_at}]`), bob, mac), "altered");
    const later = { ...claims, expires_at: claims.expires_at + 1 };
    assert.equal(checkToken("approval", carrying(`["a-1","user:ada",${later.expires_at}]`), later, mac), "altered");
    const other = { ...claims, action_id: "a-2" };
    assert.equal(checkToken("approval", carrying(`["a-2","user:ada",${claims.expires_at}]`), other, mac), "altered");
  });

  test("of one kind cannot be derived from the other kind", () => {
    for (const [from, to, prefix] of [
      ["approval", "link", "apl1_"],
      ["link", "approval", "apt1_"],
    ] as const) {
      const made = makeToken(from, claims, mac);
      assert.equal(checkToken(to, made, claims, mac), "malformed");
      assert.equal(checkToken(to, prefix + made.slice(prefix.length), claims, mac), "altered");
      assert.equal(checkToken(from, made, claims, mac), "ok");
    }
  });

  test("that no service created is malformed, and never causes an exception", () => {
    for (const text of [
      '["a-1","\\ud800",1]',
      '["a-1","user:ada",1e400]',
      '["a-1","user:ada",-0]',
      ` ["a-1","user:ada",${claims.expires_at}]`,
      '["\\udc00","user:ada",1]',
      "null",
      "{}",
      '["a-1","user:ada"]',
      '["a-1",null,1]',
      '["a-1","user:ada","1"]',
      "[",
    ]) {
      assert.equal(checkToken("approval", carrying(text), claims, mac), "malformed", text);
    }
    for (const text of [
      "",
      "apt1_",
      `apt1_${payload}`,
      `apt1_${payload}.`,
      `apt1_.${signature}`,
      `${token}.${signature}`,
      `${token}=`,
      `${token}\n`,
      ` ${token}`,
      token.replace("apt1_", "apt2_"),
      token.slice(0, -2),
    ]) {
      assert.equal(checkToken("approval", text, claims, mac), "malformed", JSON.stringify(text));
    }
  });
});

import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { test } from "node:test";
import { checkPermit, makePermit, permitTimes, type PermitClaims } from "../../src/domain/permit.ts";
import { verifyEd25519 } from "../../src/identity/vault.ts";

function signer() {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const raw = new Uint8Array(publicKey.export({ type: "spki", format: "der" }).subarray(12));
  return { raw, sign: (message: Uint8Array) => Promise.resolve(new Uint8Array(sign(null, message, privateKey))) };
}

const log = signer();
const claims: PermitClaims = {
  issuer: "log.example",
  action_id: "a-1",
  agent_id: "bot",
  tool: "stripe",
  operation: "refund",
  request_hash: "00".repeat(32),
  decision_hash: "11".repeat(32),
  issued_at: 1_800_000_000_000,
  expires_at: 1_800_000_300_000,
};
const good = (permit: string, expected = claims, key = log.raw) => checkPermit(permit, expected, key, verifyEd25519);

test("a permit is good for exactly its claims", async () => {
  const permit = await makePermit(claims, log.raw, log.sign);
  assert.equal(good(permit), true);
  const others: { [name in keyof PermitClaims]: PermitClaims[name] } = {
    issuer: "other.example",
    action_id: "a-2",
    agent_id: "Bot",
    tool: "Stripe",
    operation: "refund ",
    request_hash: "01".repeat(32),
    decision_hash: "10".repeat(32),
    issued_at: 1_800_000_001_000,
    expires_at: 1_800_000_301_000,
  };
  for (const [name, value] of Object.entries(others))
    assert.equal(good(permit, { ...claims, [name]: value }), false, name);
});

test("a permit of another log, without its signature, or with another header or payload before it, is none", async () => {
  const permit = await makePermit(claims, log.raw, log.sign);
  const [header, payload, signature] = permit.split(".") as [string, string, string];
  const other = signer();
  assert.equal(good(await makePermit(claims, other.raw, other.sign)), false);
  assert.equal(good(await makePermit(claims, log.raw, other.sign)), false);
  const none = Buffer.from('{"alg":"none"}').toString("base64url");
  const later = Buffer.from(Buffer.from(payload, "base64url").toString().replace("1800000300", "1900000300")).toString(
    "base64url",
  );
  for (const wrong of [
    "",
    ".",
    "..",
    `${header}.${payload}`,
    `${header}.${payload}.`,
    `${none}.${payload}.`,
    `${none}.${payload}.${signature}`,
    `${header}.${later}.${signature}`,
    `${permit}.`,
    `${permit}=`,
    `${permit}A`,
  ]) {
    assert.equal(good(wrong), false, wrong);
  }
});

test("a permit's times are whole seconds and never longer than asked for", () => {
  assert.deepEqual(permitTimes(1_999, 300), { issued_at: 1_000, expires_at: 301_000 });
});

import assert from "node:assert/strict";
import { createHash, createHmac, generateKeyPairSync, sign, verify } from "node:crypto";
import { test } from "node:test";
import {
  checkPermit,
  signPermit,
  MAX_PERMIT_LENGTH,
  permitKeyId,
  readCheckedPermit,
  type PermitTerms,
  type PermitSubject,
} from "../../src/domain/permit.ts";
import { computeActionDigest, encodeRequest } from "../../src/domain/request.ts";
import { verifyEd25519 } from "../../src/identity/vault.ts";
import { computePermitTimes, shiftPermitTimes } from "../../plugins/actions/permit-times.ts";

function signer() {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const raw = new Uint8Array(publicKey.export({ type: "spki", format: "der" }).subarray(12));
  return {
    publicKey: raw,
    kid: permitKeyId(raw),
    key: publicKey,
    sign: (message: Uint8Array) => Promise.resolve(new Uint8Array(sign(null, message, privateKey))),
  };
}

const ours = signer();
const other = signer();
const subject: PermitSubject = {
  issuer: "log.example",
  action_id: "a-1",
  agent_id: "bot",
  tool: "stripe",
  operation: "refund",
  action_digest: "aa".repeat(32),
  request_hash: "00".repeat(32),
};
const grant: PermitTerms = {
  id: "q-M3PQ1gHnKX0pVf6kD2zA",
  decision_hash: "11".repeat(32),
  issued_at: 1_800_000_000_000,
  expires_at: 1_800_000_300_000,
};
const make = (about = subject, given = grant, by = ours) => signPermit(about, given, by.kid, by.sign);
const check = (permit: string, about = subject, keys = [ours]) => checkPermit(permit, about, keys, verifyEd25519);

const partsOf = (permit: string) => permit.split(".") as [string, string, string];
const textOf = (part: string) => Buffer.from(part, "base64url").toString();
const encode = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

/** Signed by our key, with any content: what the check must reject by its form. */
async function signed(header: unknown, payload: unknown): Promise<string> {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${Buffer.from(await ours.sign(Buffer.from(input))).toString("base64url")}`;
}

test("a permit consists of its header and claims, and the signature over both", async () => {
  const [header, payload, signature] = partsOf(await make());
  assert.deepEqual(JSON.parse(textOf(header)), { alg: "Ed25519", typ: "assent-permit+jwt", kid: ours.kid });
  assert.deepEqual(JSON.parse(textOf(payload)), {
    iss: "log.example",
    sub: "a-1",
    aud: "stripe",
    iat: 1_800_000_000,
    exp: 1_800_000_300,
    jti: grant.id,
    agent_id: "bot",
    operation: "refund",
    action_digest: subject.action_digest,
    request_hash: subject.request_hash,
    decision_hash: grant.decision_hash,
  });
  const input = Buffer.from(`${header}.${payload}`);
  assert.equal(verify(null, input, ours.key, Buffer.from(signature, "base64url")), true);
});

test("the key's id is its JWK thumbprint (RFC 8037 appendix A.3)", () => {
  const x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
  const raw = new Uint8Array(Buffer.from(x, "base64url"));
  assert.equal(permitKeyId(raw), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
});

test("a permit is valid only for its action", async () => {
  const permit = await make();
  assert.equal(check(permit), null);
  const others: PermitSubject = {
    issuer: "other.example",
    action_id: "a-2",
    agent_id: "Bot",
    tool: "Stripe",
    operation: "refund ",
    action_digest: "ab".repeat(32),
    request_hash: "01".repeat(32),
  };
  for (const [name, value] of Object.entries(others))
    assert.equal(check(permit, { ...subject, [name]: value }), "other_subject", name);
});

test("a checked permit states its entry and its validity, whatever its times are", async () => {
  const { decision_hash } = grant;
  assert.deepEqual(readCheckedPermit(await make()), { decision_hash, valid_ms: 300_000 });
  for (const shift of [-86_400_000, 86_400_000]) {
    const { issued_at, expires_at } = grant;
    const shifted = await make(subject, { ...grant, issued_at: issued_at + shift, expires_at: expires_at + shift });
    assert.equal(check(shifted), null);
    assert.deepEqual(readCheckedPermit(shifted), { decision_hash, valid_ms: 300_000 });
  }
});

test("times of the ledger's clock become earlier times of the machine's clock, and no validity becomes longer", () => {
  const times = { issued_at: 100_000, expires_at: 160_000 };
  assert.deepEqual(shiftPermitTimes(times, 0), times);
  assert.deepEqual(shiftPermitTimes(times, 1), { issued_at: 99_000, expires_at: 159_000 });
  assert.deepEqual(shiftPermitTimes(times, 50_500), { issued_at: 49_000, expires_at: 109_000 });
});

test("a permit is valid with any of the keys, but not with another key or another key's id", async () => {
  const byOther = await make(subject, grant, other);
  assert.equal(check(byOther), "unknown_key");
  assert.equal(check(byOther, subject, [ours, other]), null);
  assert.equal(check(await signPermit(subject, grant, ours.kid, other.sign)), "bad_signature");
  assert.equal(check(await signPermit(subject, grant, other.kid, ours.sign), subject, [ours, other]), "bad_signature");
  assert.equal(check(await make(), subject, []), "unknown_key");
});

test("hostile headers are rejected before any key is looked up", async () => {
  const [header, payload, signature] = partsOf(await make());
  const genuine = JSON.parse(textOf(header)) as Record<string, unknown>;
  const spki = ours.key.export({ type: "spki", format: "pem" });
  const hs256 = `${encode({ ...genuine, alg: "HS256" })}.${payload}`;
  for (const hostile of [
    `${encode({ ...genuine, alg: "none" })}.${payload}.`,
    `${encode({ ...genuine, alg: "none" })}.${payload}.${signature}`,
    ...[spki, ours.publicKey].map(
      (secret) => `${hs256}.${createHmac("sha256", secret).update(hs256).digest("base64url")}`,
    ),
    ...(await Promise.all(
      [
        { ...genuine, alg: "ES256" },
        { ...genuine, alg: "ed25519" },
        { ...genuine, alg: ["Ed25519"] },
        { ...genuine, typ: "JWT" },
        { alg: "Ed25519", kid: ours.kid },
        { alg: "Ed25519", typ: "assent-permit+jwt" },
        { ...genuine, kid: 1 },
        { ...genuine, crit: ["exp"] },
        { ...genuine, b64: false, crit: ["b64"] },
        { ...genuine, jwk: { kty: "OKP", crv: "Ed25519", x: "" } },
        { ...genuine, jku: "https://evil.example/jwks.json" },
        `{"alg":"none","alg":"Ed25519","typ":"assent-permit+jwt","kid":"${ours.kid}"}`,
        [genuine],
        "null",
        "",
      ].map((changed) => signed(changed, textOf(payload))),
    )),
  ])
    assert.equal(check(hostile), "malformed", textOf(partsOf(hostile)[0]));
  assert.equal(check(await signed({ ...genuine, alg: "EdDSA" }, textOf(payload))), null, "RFC 8037's name");
});

test("any other text than a permit's only encoding is rejected", async () => {
  const permit = await make();
  const [header, payload, signature] = partsOf(permit);
  const swapped = partsOf(await make({ ...subject, action_id: "a-2" }))[1];
  assert.equal(check(`${header}.${swapped}.${signature}`, { ...subject, action_id: "a-2" }), "bad_signature");
  assert.equal(check(`${header}.${encode({ ...subject, exp: 9e9 })}.${signature}`), "bad_signature");
  for (const wrong of [
    "",
    ".",
    "..",
    `${header}.${payload}`,
    `${header}.${payload}.`,
    `${permit}.`,
    `${permit}=`,
    `${permit}A`,
    ` ${permit}`,
    `${header}=.${payload}.${signature}`,
    `${header}.${payload}.${signature.slice(0, -1)}${signature.endsWith("A") ? "B" : "A"}x`,
    `${header}.${payload}.${Buffer.from(signature, "base64url").subarray(1).toString("base64url")}`,
    `${permit.slice(0, -1)}${String.fromCharCode(permit.charCodeAt(permit.length - 1) + 1)}`,
    `${header}.${payload.repeat(Math.ceil(MAX_PERMIT_LENGTH / payload.length))}.${signature}`,
  ])
    assert.equal(check(wrong), "malformed", wrong.slice(0, 100));
});

test("claims of another form are rejected although the signature is valid", async () => {
  const [header, payload] = partsOf(await make()).map(textOf) as [string, string];
  const claims = JSON.parse(payload) as Record<string, unknown>;
  for (const name of Object.keys(claims)) {
    const { [name]: _, ...without } = claims;
    assert.equal(check(await signed(header, without)), "malformed", `without ${name}`);
    assert.equal(check(await signed(header, { ...claims, [name]: [claims[name]] })), "malformed", `a list of ${name}`);
  }
  for (const [name, value] of [
    ["exp", "1800000300"],
    ["exp", 1_800_000_300.5],
    ["exp", -1],
    ["exp", 1e300],
    ["iat", null],
    ["nbf", "0"],
    ["action_digest", "AA".repeat(32)],
    ["decision_hash", "11"],
  ] as const)
    assert.equal(check(await signed(header, { ...claims, [name]: value })), "malformed", `${name} ${String(value)}`);
  assert.equal(check(await signed(header, payload.replace("{", '{"exp":9999999999,'))), "malformed", "exp twice");
  assert.equal(check(await signed(header, `\ufeff${payload}`)), "malformed", "a byte order mark");
  assert.equal(check(await signed(header, { ...claims, later_version: 1 })), null, "RFC 7519 section 4");
});

test("the longest names make a permit that is accepted", async () => {
  const name = "\u4e16".repeat(256);
  const longest = { ...subject, issuer: "\u4e16".repeat(255), agent_id: name, tool: name, operation: name };
  const permit = await make(longest);
  assert.ok(permit.length <= MAX_PERMIT_LENGTH, String(permit.length));
  assert.equal(check(permit, longest), null);
});

test("a permit's times are whole seconds and never longer than requested", async () => {
  assert.deepEqual(computePermitTimes(1_999, 300, 301_999), { issued_at: 1_000, expires_at: 301_000 });
  assert.deepEqual(
    computePermitTimes(1_999, 300, 61_500),
    { issued_at: 1_000, expires_at: 61_000 },
    "nor than the action may start",
  );
  const permit = await make(subject, { ...grant, issued_at: 1_999, expires_at: 4_999 });
  const { iat, exp } = JSON.parse(textOf(partsOf(permit)[1])) as { iat: number; exp: number };
  assert.deepEqual([iat, exp], [1, 4]);
});

test("the digest covers the request without its context", () => {
  const request = {
    agent_id: "bot",
    tool: "stripe",
    operation: "refund",
    params: { b: 1, a: 2 },
    context: { why: "x" },
  };
  const text = '{"agent_id":"bot","operation":"refund","params":{"a":2,"b":1},"tool":"stripe"}';
  assert.equal(computeActionDigest(request), createHash("sha256").update(text).digest("hex"));
  const changed = { ...request, context: { why: "y" } };
  assert.equal(computeActionDigest(changed), computeActionDigest(request));
  assert.notEqual(encodeRequest(changed).hash, encodeRequest(request).hash);
  for (const change of [{ agent_id: "b" }, { tool: "b" }, { operation: "b" }, { params: {} }])
    assert.notEqual(computeActionDigest({ ...request, ...change }), computeActionDigest(request));
});

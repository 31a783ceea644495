/** Checks `verifyPermit` and the test vectors against our code, and independently with only jose and SHA-256. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { calculateJwkThumbprint, createLocalJWKSet, jwtVerify, type JSONWebKeySet, type JWK } from "jose";
import {
  PermitRefused,
  verifyPermit,
  type PermittedRequest,
  type VerifyPermitOptions,
} from "../../../clients/typescript/index.ts";
import { checkPermit, PERMIT_TYPE } from "../../../src/domain/permit.ts";
import { fromBase64Url } from "../../../src/domain/hash.ts";
import { encodeRequest } from "../../../src/domain/request.ts";
import { verifyEd25519 } from "../../../src/identity/vault.ts";
import { AUDIENCE, ISSUER, NOW, permitVectors, type Refused } from "../../support/permit-vectors.ts";
import { ROOT } from "../../support/runtimes.ts";

const FOLDER = `${ROOT}docs/vectors/`;
const read = (name: string): string => readFileSync(`${FOLDER}${name}`, "utf8");
const vectors = await permitVectors();
if (process.env["ASSENT_UPDATE"] === "1")
  for (const [name, text] of Object.entries(vectors)) writeFileSync(`${FOLDER}${name}`, text);

const request = JSON.parse(read("request.json")) as PermittedRequest & { params: object };
const permit = read("permit.jwt").trim();
const jwks = JSON.parse(read("jwks.json")) as JSONWebKeySet;
const claims = JSON.parse(read("claims.json")) as Record<string, unknown>;
const refused = JSON.parse(read("refused.json")) as Refused[];
const OPTIONS = { jwks, audience: AUDIENCE, issuer: ISSUER, now: () => NOW };

const refusal = (reason: string) => (error: unknown) => {
  assert.ok(error instanceof PermitRefused, String(error));
  assert.equal(error.reason, reason, error.message);
  return true;
};
const verify = (changes: Partial<VerifyPermitOptions> = {}, about: PermittedRequest = request, text = permit) =>
  verifyPermit(about, text, { ...OPTIONS, ...changes });

describe("the test vectors", () => {
  test("equal the output of the code", () => {
    for (const [name, text] of Object.entries(vectors))
      assert.equal(read(name), text, "run this test with ASSENT_UPDATE=1 and commit the files");
  });

  test("verify with only jose and SHA-256", async () => {
    const { context: _, ...runs } = request as PermittedRequest & { context: object };
    assert.deepEqual(JSON.parse(read("canonical.json")), JSON.parse(JSON.stringify(runs)));
    const digest = createHash("sha256")
      .update(readFileSync(`${FOLDER}canonical.json`))
      .digest("hex");
    assert.equal(digest, read("digest.txt").trim());
    const options = {
      issuer: ISSUER,
      audience: AUDIENCE,
      typ: PERMIT_TYPE,
      algorithms: ["Ed25519"],
      currentDate: new Date(NOW),
    };
    const { payload, protectedHeader } = await jwtVerify(permit, createLocalJWKSet(jwks), options);
    assert.deepEqual(payload, claims);
    assert.equal(payload["action_digest"], digest);
    assert.equal(protectedHeader.kid, await calculateJwkThumbprint(jwks.keys[0] as JWK));
  });

  test("verify with the service's own check, which rejects all invalid ones", () => {
    const key = jwks.keys[0] as { kid: string; x: string };
    const keys = [{ kid: key.kid, publicKey: fromBase64Url(key.x) }];
    const { agent_id, operation, tool } = request;
    const subject = {
      issuer: ISSUER,
      action_id: String(claims["sub"]),
      agent_id,
      operation,
      tool,
      action_digest: read("digest.txt").trim(),
      request_hash: encodeRequest(request as Parameters<typeof encodeRequest>[0]).hash,
    };
    const check = (text: string) => checkPermit(text, subject, keys, verifyEd25519);
    assert.equal(check(permit), null);
    for (const { name, reason, permit: hostile } of refused)
      // The service checks a permit's age by the ledger's clock instead.
      if (reason !== "expired" && reason !== "not_yet_valid") assert.notEqual(check(hostile), null, name);
  });
});

describe("verifyPermit", () => {
  test("resolves to the claims; order and context of the request do not matter", async () => {
    assert.deepEqual(await verify(), claims);
    const { agent_id, tool, operation, params } = request;
    const turned = Object.fromEntries(Object.entries(params).toReversed());
    assert.deepEqual(await verify({}, { params: turned, operation, tool, agent_id }), claims);
  });

  test("rejects every invalid permit, with the reason", async () => {
    for (const { name, reason, permit: hostile } of refused)
      await assert.rejects(verify({}, request, hostile), refusal(reason), name);
  });

  test("rejects a permit for another request, whichever member differs", async () => {
    for (const change of [
      { agent_id: "Support-bot" },
      { operation: "refund " },
      { params: {} },
      { params: { ...request.params, amount: 50.6 } },
      { params: { ...request.params, amount: "50.5" } },
      { params: { ...request.params, extra: null } },
      { tool: "Stripe" },
    ])
      await assert.rejects(verify({}, { ...request, ...change }), refusal("wrong_request"), JSON.stringify(change));
    const { params: _, ...without } = request;
    await assert.rejects(verify({}, without), refusal("wrong_request"));
  });

  test("rejects a request without canonical JSON, and a text that is not a permit", async () => {
    const date = { params: { at: new Date(0) as unknown as string } };
    await assert.rejects(verify({}, { ...request, ...date }), refusal("unreadable_request"));
    await assert.rejects(verify({}, { ...request, params: { a: undefined } }), refusal("unreadable_request"));
    for (const text of ["", "a", "a.b.c", `${permit}.`, `${permit}=`, "a".repeat(8193), null as unknown as string])
      await assert.rejects(verify({}, request, text), refusal("malformed"), String(text).slice(0, 20));
  });

  test("accepts a permit until just before its end, and from shortly before its start if clocks differ", async () => {
    const iat = claims["iat"] as number;
    const exp = claims["exp"] as number;
    const at = (seconds: number, clockTolerance?: number) =>
      verify({ now: () => seconds * 1000, ...(clockTolerance === undefined ? {} : { clockTolerance }) });
    await at(exp - 1);
    await assert.rejects(at(exp), refusal("expired"));
    await assert.rejects(at(exp, 600), refusal("expired"));
    await at(iat - 5);
    await assert.rejects(at(iat - 6), refusal("not_yet_valid"));
    await assert.rejects(at(iat - 1, 0), refusal("not_yet_valid"));
    for (const wrong of [NaN, -1, Infinity]) await assert.rejects(at(iat, wrong), TypeError);
    await assert.rejects(at(NaN), TypeError);
  });

  test("needs the tool's name, and accepts a permit of any log only if none is named", async () => {
    for (const audience of ["", undefined, ["stripe"]])
      await assert.rejects(verify({ audience: audience as string }), TypeError);
    const { issuer: _, ...anyLog } = OPTIONS;
    const { permit: others } = refused.find(({ reason }) => reason === "wrong_issuer") as Refused;
    assert.equal((await verifyPermit(request, others, anyLog)).iss, "evil.example/log");
  });

  test("accepts a key set or a function that returns one, and distinguishes unreadable keys from a wrong key", async () => {
    assert.deepEqual(await verify({ jwks: () => Promise.resolve(jwks) }), claims);
    await assert.rejects(verify({ jwks: { keys: [] } }), refusal("unknown_key"));
    for (const broken of [{}, { keys: "a" }, null])
      await assert.rejects(verify({ jwks: broken as unknown as JSONWebKeySet }), refusal("keys_unavailable"));
    await assert.rejects(verify({ jwks: () => Promise.reject(new Error("no network")) }), refusal("keys_unavailable"));
    // Only the key's own type verifies it: not a secret with the same bytes.
    const [key] = jwks.keys as [JWK & { x: string; kid: string }];
    const secret = { kty: "oct", k: key.x, kid: key.kid };
    const { permit: mac } = refused.find(({ name }) => name.startsWith("an HMAC")) as Refused;
    await assert.rejects(verify({ jwks: { keys: [secret] } }, request, mac), refusal("wrong_algorithm"));
  });

  test("reads a set from its URL once for many permits, and rejects if it is unreachable", async () => {
    let asked = 0;
    let answer = JSON.stringify(jwks);
    const server = createServer((_, response) => {
      asked++;
      response.writeHead(answer === "" ? 503 : 200, { "content-type": "application/jwk-set+json" }).end(answer);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
      for (let i = 0; i < 3; i++) assert.deepEqual(await verify({ jwks: `${url}a` }), claims);
      assert.equal(asked, 1);
      answer = "<html>";
      await assert.rejects(verify({ jwks: new URL(`${url}b`) }), refusal("keys_unavailable"));
      answer = "";
      await assert.rejects(verify({ jwks: `${url}c` }), refusal("keys_unavailable"));
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});

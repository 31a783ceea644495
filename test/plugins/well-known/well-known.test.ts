/** Documents that a tool reads without a key, which are enough to verify a permit with another library. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify, type JSONWebKeySet } from "jose";
import { needs } from "../../support/features.ts";
import { ALLOWED, startService, type Service } from "../../support/service.ts";

describe("the published keys", () => {
  let service: Service;
  before(async () => {
    service = await startService({ change: (config) => (config.server.cors_origins = ["https://tool.example"]) });
  });
  after(() => service.close());
  const get = (path: string, headers: Record<string, string> = {}) => service.call("GET", path, { key: null, headers });

  it("verify the service's permits with another library, and reject other keys", async () => {
    const { permit } = (await service.call("POST", "/v1/actions", { body: ALLOWED, headers: { prefer: "permit" } }))
      .body as { permit: string };
    const { body } = await get("/.well-known/jwks.json");
    const { issuer } = (await get("/.well-known/assent-configuration")).body as { issuer: string };
    const keys = createLocalJWKSet(body as JSONWebKeySet);
    const options = { issuer, audience: ALLOWED.tool, algorithms: ["Ed25519"], typ: "assent-permit+jwt" };
    const { payload } = await jwtVerify(permit, keys, options);
    assert.equal(payload["operation"], ALLOWED.operation);
    assert.deepEqual(
      (body as JSONWebKeySet).keys.map(({ kid, alg, use }) => ({ kid, alg, use })),
      [{ kid: decodeProtectedHeader(permit).kid, alg: "Ed25519", use: "sig" }],
    );
    const { vkey } = (await get("/.well-known/assent-configuration")).body.log as { vkey: string };
    const log = Buffer.from(vkey.slice(vkey.indexOf("+", vkey.indexOf("+") + 1) + 1), "base64").subarray(1);
    assert.notEqual((body as JSONWebKeySet).keys[0]?.x, log.toString("base64url"), "it is not the log's key");
    const ofLog = { ...(body as JSONWebKeySet).keys[0], kty: "OKP", x: log.toString("base64url") };
    await assert.rejects(jwtVerify(permit, createLocalJWKSet({ keys: [ofLog] }), options), {
      code: "ERR_JWS_SIGNATURE_VERIFICATION_FAILED",
    });
  });

  it("need no key, can be cached for a minute, have an entity tag, and are available to listed origins", async () => {
    for (const [path, type] of [
      ["/.well-known/jwks.json", "application/jwk-set+json"],
      ["/.well-known/assent-configuration", "application/json"],
    ] as const) {
      const { status, headers } = await get(path, { origin: "https://tool.example" });
      const names = ["content-type", "cache-control", "access-control-allow-origin"];
      assert.deepEqual(
        [status, ...names.map((name) => headers.get(name))],
        [200, type, "public, max-age=60", "https://tool.example"],
      );
      const again = await get(path, { "if-none-match": headers.get("etag") ?? "" });
      assert.deepEqual([again.status, again.headers.get("cache-control")], [304, "public, max-age=60"]);
    }
  });

  it("contain no private key material", async () => {
    const { body } = await get("/.well-known/jwks.json");
    assert.deepEqual(Object.keys((body as JSONWebKeySet).keys[0] ?? {}).toSorted(), [
      "alg",
      "crv",
      "kid",
      "kty",
      "use",
      "x",
    ]);
  });
});

describe("the configuration", () => {
  it(
    "lists URLs under the public URL, or relative ones without it, whatever the request's Host header says",
    needs("provenance"),
    async () => {
      for (const [public_url, jwks_uri, api_base] of [
        [
          "https://assent.example/base/",
          "https://assent.example/base/.well-known/jwks.json",
          "https://assent.example/base/v1",
        ],
        [null, "jwks.json", "../v1"],
      ] as const) {
        const service = await startService({ change: (config) => (config.server.public_url = public_url) });
        try {
          const headers = { host: "evil.example", "x-forwarded-host": "evil.example" };
          const { body } = await service.call("GET", "/.well-known/assent-configuration", { key: null, headers });
          assert.deepEqual([body.jwks_uri, body.api_base], [jwks_uri, api_base]);
          const checkpoint = await service.call("GET", "/v1/provenance/keys", { key: service.admin });
          assert.deepEqual(body.log, { origin: checkpoint.body.origin, vkey: checkpoint.body.keys[0].vkey });
          assert.equal(body.issuer, checkpoint.body.origin);
          const here = "https://proxy.example/prefix/.well-known/assent-configuration";
          if (public_url === null)
            assert.equal(
              new URL(body.jwks_uri as string, here).href,
              "https://proxy.example/prefix/.well-known/jwks.json",
            );
        } finally {
          await service.close();
        }
      }
    },
  );
});

/** Public documents that a client reads first: the keys that verify permits, and the URLs of the API. */
import { Type } from "@sinclair/typebox";
import { type CoreHost, defineCorePlugin, PERMIT_ALGORITHMS, PERMIT_TYPE, toBase64Url } from "../../src/core.ts";
import { defineRoute } from "../../src/plugin.ts";

const TAG = "well-known";
/** Cache lifetime. During this time, a client may still trust a key that was withdrawn with --at-once. Seconds. */
const MAX_AGE = 60;

const Jwks = Type.Object(
  {
    keys: Type.Array(
      Type.Object(
        {
          kty: Type.Literal("OKP"),
          crv: Type.Literal("Ed25519"),
          x: Type.String({ description: "The public key, base64url." }),
          kid: Type.String({ description: "Its JWK thumbprint (RFC 7638)." }),
          use: Type.Literal("sig"),
          alg: Type.Literal("Ed25519"),
        },
        { additionalProperties: false },
      ),
      { description: "The key that signs permits, then the earlier keys whose permits are still valid." },
    ),
  },
  { additionalProperties: false },
);

const Configuration = Type.Object(
  {
    issuer: Type.String({ description: "`iss` of permits: the name of the log." }),
    jwks_uri: Type.String({
      description: "URL, or a reference relative to this document if no public URL is configured.",
    }),
    api_base: Type.String({
      description: "URL of the API, or a reference relative to this document if no public URL is configured.",
    }),
    api_version: Type.Literal("v1"),
    permit_type: Type.Literal(PERMIT_TYPE, { description: "`typ` of permits." }),
    permit_algorithms: Type.Array(Type.String(), {
      description: "`alg` of permits. The first is used to sign; all are accepted.",
    }),
    permit_valid_seconds: Type.Integer({ description: "Maximum lifetime of a permit." }),
    log: Type.Object(
      { origin: Type.String(), vkey: Type.String({ description: "Verifier key of checkpoints, as C2SP vkey." }) },
      { additionalProperties: false },
    ),
    digests: Type.Object(
      { action_digest: Type.String(), request_hash: Type.String() },
      { additionalProperties: false, description: "Description of what the digests of a permit cover." },
    ),
  },
  { additionalProperties: false },
);

const DIGESTS = {
  action_digest: "hex(SHA-256(JCS({agent_id, operation, params, tool})))",
  request_hash: "hex(SHA-256(JCS({agent_id, context, operation, params, tool})))",
};

export default defineCorePlugin({
  name: "well-known",
  setup: (host) => ({
    routes: [
      defineRoute({
        method: "GET",
        path: "/.well-known/jwks.json",
        tag: TAG,
        summary: "Public keys that verify permits",
        scope: null,
        responses: {
          200: { description: "JWK Set (RFC 7517).", schema: Jwks, contentType: "application/jwk-set+json" },
        },
        errors: ["STORAGE_UNAVAILABLE"],
        handle: async () => ({
          status: 200,
          json: {
            keys: (await host.permits.published()).map(({ kid, publicKey }) => ({
              kty: "OKP",
              crv: "Ed25519",
              x: toBase64Url(publicKey),
              kid,
              use: "sig",
              alg: "Ed25519",
            })),
          },
          headers: { "Content-Type": "application/jwk-set+json", "Cache-Control": `public, max-age=${MAX_AGE}` },
        }),
      }),
      defineRoute({
        method: "GET",
        path: "/.well-known/assent-configuration",
        tag: TAG,
        summary: "URLs of the service, and the format of permits",
        scope: null,
        responses: { 200: { description: "The configuration.", schema: Configuration } },
        errors: ["STORAGE_UNAVAILABLE"],
        handle: async () => ({
          status: 200,
          json: await configurationOf(host),
          headers: { "Cache-Control": `public, max-age=${MAX_AGE}` },
        }),
      }),
    ],
  }),
});

async function configurationOf(host: CoreHost): Promise<object> {
  const [present] = await host.ledger.logKeys();
  const base = host.config.server.public_url?.replace(/\/+$/, "") ?? null;
  return {
    issuer: host.ledger.origin,
    // Do not use the Host header: the client chooses it, and the response may be cached for other clients.
    jwks_uri: base === null ? "jwks.json" : `${base}/.well-known/jwks.json`,
    api_base: base === null ? "../v1" : `${base}/v1`,
    api_version: "v1",
    permit_type: PERMIT_TYPE,
    permit_algorithms: PERMIT_ALGORITHMS,
    permit_valid_seconds: host.config.permits.valid_seconds,
    log: { origin: host.ledger.origin, vkey: present?.vkey ?? host.ledger.vkey },
    digests: DIGESTS,
  };
}

/**
 * Generates docs/vectors: a permit with its request and keys, and permits that must be rejected. Keys and times are
 * fixed, so that every run generates the same files.
 */
import { createHmac } from "node:crypto";
import { canonicalText } from "../../src/domain/canonical.ts";
import { toBase64Url, utf8 } from "../../src/domain/hash.ts";
import { signPermit, permitKeyId, PERMIT_TYPE, type PermitSubject } from "../../src/domain/permit.ts";
import { computeActionDigest, encodeRequest } from "../../src/domain/request.ts";
import { signerOf } from "./signer.ts";

export const AUDIENCE = "stripe";
export const ISSUER = "log.example/assent";
/** A time at which the permit is valid. */
export const NOW = 1_800_000_100_000;

const REQUEST = {
  agent_id: "support-bot",
  tool: AUDIENCE,
  operation: "refund",
  params: {
    currency: "EUR",
    amount: 50.5,
    charge: "ch_1",
    note: "für Zoë \u2014 \ud83e\udd8a",
    lines: [1e21, -0, 0.1],
    "10": null,
  },
  context: { ticket: "T-7" },
};
const SUBJECT: PermitSubject = {
  issuer: ISSUER,
  action_id: "019aa000-0000-7000-8000-000000000001",
  agent_id: REQUEST.agent_id,
  tool: REQUEST.tool,
  operation: REQUEST.operation,
  action_digest: computeActionDigest(REQUEST),
  request_hash: encodeRequest(REQUEST).hash,
};
const GRANT = {
  id: "q-M3PQ1gHnKX0pVf6kD2zA",
  decision_hash: "5f".repeat(32),
  issued_at: 1_800_000_000_000,
  expires_at: 1_800_000_300_000,
};

const signer = signerOf("permits", 0);
const other = signerOf("permits", 100);
const jwkOf = ({ publicKey }: { publicKey: Uint8Array }) => ({
  kty: "OKP",
  crv: "Ed25519",
  x: toBase64Url(publicKey),
  kid: permitKeyId(publicKey),
  use: "sig",
  alg: "Ed25519",
});
const kid = permitKeyId(signer.publicKey);
const make = (subject = SUBJECT, grant = GRANT, by = signer, id = kid): Promise<string> =>
  signPermit(subject, grant, id, (message) => Promise.resolve(by.sign(message)));
const encode = (value: unknown): string => toBase64Url(utf8(JSON.stringify(value)));

export interface Refused {
  name: string;
  reason: string;
  permit: string;
}

/** Returns the content of each file, by file name. */
export async function permitVectors(): Promise<Record<string, string>> {
  const permit = await make();
  const [header, payload, signature] = permit.split(".") as [string, string, string];
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as Record<string, unknown>;
  const typed = { alg: "Ed25519", typ: PERMIT_TYPE, kid };
  const signed = (head: object, body: object = claims): string => {
    const input = `${encode(head)}.${encode(body)}`;
    return `${input}.${toBase64Url(signer.sign(utf8(input)))}`;
  };
  const signedText = (headText: string, bodyText: string): string =>
    `${headText}.${bodyText}.${toBase64Url(signer.sign(utf8(`${headText}.${bodyText}`)))}`;
  // Changes the last character so that only unused bits differ. Both strings decode to the same bytes.
  const loose = (text: string): string => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    return `${text.slice(0, -1)}${alphabet[alphabet.indexOf(text.at(-1) as string) + 1] as string}`;
  };
  const spaced = (json: string): string => {
    let text = json;
    while (utf8(text).length % 3 === 0) text += " ";
    return loose(toBase64Url(utf8(text)));
  };
  const hmacInput = `${encode({ ...typed, alg: "HS256" })}.${payload}`;
  const mac = createHmac("sha256", signer.publicKey).update(hmacInput).digest("base64url");
  const refused: Refused[] = [
    { name: "no signature", reason: "wrong_algorithm", permit: `${encode({ ...typed, alg: "none" })}.${payload}.` },
    { name: "an HMAC under the public key", reason: "wrong_algorithm", permit: `${hmacInput}.${mac}` },
    { name: "another algorithm's name", reason: "wrong_algorithm", permit: signed({ ...typed, alg: "ES256" }) },
    { name: "a JWT of another kind", reason: "wrong_type", permit: signed({ ...typed, typ: "JWT" }) },
    { name: "a JWT of no kind", reason: "wrong_type", permit: signed({ alg: "Ed25519", kid }) },
    {
      name: "a critical member that nobody knows",
      reason: "malformed",
      permit: signed({ ...typed, crit: ["x"], x: 1 }),
    },
    { name: "a header member that nobody knows", reason: "malformed", permit: signed({ ...typed, x: 1 }) },
    { name: "a header with a key of its own", reason: "malformed", permit: signed({ ...typed, jwk: jwkOf(signer) }) },
    {
      name: "an algorithm that is named twice",
      reason: "malformed",
      permit: signedText(toBase64Url(utf8(`{"alg":"none",${JSON.stringify(typed).slice(1)}`)), payload),
    },
    {
      name: "a claim that is named twice",
      reason: "malformed",
      permit: signedText(header, toBase64Url(utf8(`{"aud":"crm",${JSON.stringify(claims).slice(1)}`))),
    },
    {
      name: "a header in other base64url than its bytes have",
      reason: "malformed",
      permit: signedText(spaced(JSON.stringify(typed)), payload),
    },
    {
      name: "claims in other base64url than their bytes have",
      reason: "malformed",
      permit: signedText(header, spaced(JSON.stringify(claims))),
    },
    {
      name: "a signature in other base64url than its bytes have",
      reason: "malformed",
      permit: `${header}.${payload}.${loose(signature)}`,
    },
    {
      name: "another log's key",
      reason: "unknown_key",
      permit: await make(SUBJECT, GRANT, other, permitKeyId(other.publicKey)),
    },
    {
      name: "another log's key under our key's id",
      reason: "bad_signature",
      permit: await make(SUBJECT, GRANT, other),
    },
    {
      name: "a claim that was changed",
      reason: "bad_signature",
      permit: `${header}.${encode({ ...claims, exp: 1_900_000_000 })}.${signature}`,
    },
    {
      name: "another permit's signature",
      reason: "bad_signature",
      permit: `${header}.${payload}.${(await make(SUBJECT, { ...GRANT, id: "b" })).split(".")[2]}`,
    },
    { name: "over", reason: "expired", permit: await make(SUBJECT, { ...GRANT, expires_at: NOW }) },
    {
      name: "from the future",
      reason: "not_yet_valid",
      permit: await make(SUBJECT, { ...GRANT, issued_at: NOW + 60_000 }),
    },
    { name: "not before later", reason: "not_yet_valid", permit: signed(typed, { ...claims, nbf: 1_800_000_200 }) },
    { name: "another log's", reason: "wrong_issuer", permit: await make({ ...SUBJECT, issuer: "evil.example/log" }) },
    { name: "another tool's", reason: "wrong_audience", permit: await make({ ...SUBJECT, tool: "crm" }) },
    { name: "several tools'", reason: "malformed", permit: signed(typed, { ...claims, aud: [AUDIENCE, "crm"] }) },
    {
      name: "other parameters'",
      reason: "wrong_request",
      permit: await make({ ...SUBJECT, action_digest: computeActionDigest({ ...REQUEST, params: { amount: 5 } }) }),
    },
    { name: "without an end", reason: "malformed", permit: signed(typed, { ...claims, exp: undefined }) },
    {
      name: "an expiry that is not a number",
      reason: "malformed",
      permit: signed(typed, { ...claims, exp: "1900000000" }),
    },
  ];
  const { agent_id, operation, params, tool } = REQUEST;
  const pretty = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
  return {
    "request.json": pretty(REQUEST),
    "canonical.json": canonicalText({ agent_id, operation, params, tool }),
    "digest.txt": `${SUBJECT.action_digest}\n`,
    "permit.jwt": `${permit}\n`,
    "claims.json": pretty(claims),
    "jwks.json": pretty({ keys: [jwkOf(signer)] }),
    "refused.json": pretty(refused),
  };
}

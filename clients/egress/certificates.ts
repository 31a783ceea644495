/**
 * Creates the certificates that the proxy shows to the agent. Encodes DER without a library: two fixed certificate
 * profiles need only 60 lines and no parser, and the process that has the credentials gets no dependency. OpenSSL
 * checks the result in each handshake.
 */
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";
import { isIP } from "node:net";

/** Longer than a run. Short enough that a forgotten authority expires. */
const VALID_MS = 365 * 86_400_000;
/** The clock of the agent's container can be behind. */
const EARLY_MS = 3_600_000;

const ECDSA_SHA256 = "1.2.840.10045.4.3.2";
const COMMON_NAME = "2.5.4.3";
const SUBJECT_KEY_ID = "2.5.29.14";
const KEY_USAGE = "2.5.29.15";
const ALTERNATIVE_NAMES = "2.5.29.17";
const BASIC_CONSTRAINTS = "2.5.29.19";
const AUTHORITY_KEY_ID = "2.5.29.35";
const EXTENDED_KEY_USAGE = "2.5.29.37";
const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";

export interface Authority {
  /** The authority's certificate. Its private key exists only in the memory of this process. */
  readonly pem: string;
  /** Creates a key and a certificate for a host, signed by this authority. In PEM. */
  issue(host: string): { key: string; cert: string };
}

export function createAuthority(): Authority {
  const keys = newKeys();
  const name = `Assent egress ${randomBytes(4).toString("hex")}`;
  const issuer = { name, keys };
  const pem = certificate({ subject: name, publicKey: keys.publicKey, issuer }, [
    extension(BASIC_CONSTRAINTS, sequence(TRUE, der(0x02, Buffer.of(0))), true),
    // keyCertSign, cRLSign
    extension(KEY_USAGE, der(0x03, Buffer.of(1, 0x06)), true),
    extension(SUBJECT_KEY_ID, der(0x04, keyId(keys.publicKey))),
  ]);
  return {
    pem,
    issue(host) {
      const leaf = newKeys();
      const alternative =
        isIP(host) === 4 ? der(0x87, Buffer.from(host.split(".").map(Number))) : der(0x82, Buffer.from(host));
      const cert = certificate({ subject: host.slice(0, 64), publicKey: leaf.publicKey, issuer }, [
        extension(BASIC_CONSTRAINTS, sequence(), true),
        // digitalSignature
        extension(KEY_USAGE, der(0x03, Buffer.of(7, 0x80)), true),
        extension(EXTENDED_KEY_USAGE, sequence(objectId(SERVER_AUTH))),
        extension(ALTERNATIVE_NAMES, sequence(alternative)),
        extension(AUTHORITY_KEY_ID, sequence(der(0x80, keyId(keys.publicKey)))),
      ]);
      return { key: leaf.privateKey.export({ type: "pkcs8", format: "pem" }) as string, cert };
    },
  };
}

const newKeys = () => generateKeyPairSync("ec", { namedCurve: "P-256" });

interface Issuer {
  name: string;
  keys: { publicKey: KeyObject; privateKey: KeyObject };
}

function certificate(
  { subject, publicKey, issuer }: { subject: string; publicKey: KeyObject; issuer: Issuer },
  extensions: Buffer[],
): string {
  const serial = randomBytes(16);
  // Positive, and without a leading zero.
  serial[0] = ((serial[0] as number) & 0x3f) | 0x40;
  const algorithm = sequence(objectId(ECDSA_SHA256));
  const now = Date.now();
  const signed = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, serial),
    algorithm,
    distinguishedName(issuer.name),
    sequence(time(now - EARLY_MS), time(now + VALID_MS)),
    distinguishedName(subject),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...extensions)),
  );
  const signature = sign("sha256", signed, issuer.keys.privateKey);
  const bytes = sequence(signed, algorithm, der(0x03, Buffer.of(0), signature));
  const lines = bytes.toString("base64").match(/.{1,64}/g) as string[];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

/** Encodes a DER value: the tag, the total length of the parts, and the parts. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), value]);
}

const sequence = (...parts: Buffer[]): Buffer => der(0x30, ...parts);
const TRUE = der(0x01, Buffer.of(0xff));

function objectId(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const digits = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return der(0x06, Buffer.from(bytes));
}

const extension = (id: string, value: Buffer, critical = false): Buffer =>
  sequence(objectId(id), ...(critical ? [TRUE] : []), der(0x04, value));

const distinguishedName = (name: string): Buffer =>
  sequence(der(0x31, sequence(objectId(COMMON_NAME), der(0x0c, Buffer.from(name)))));

/** Returns a UTCTime, which X.509 requires for years before 2050. */
const time = (at: number): Buffer =>
  der(0x17, Buffer.from(`${new Date(at).toISOString().replace(/\D/g, "").slice(2, 14)}Z`));

const keyId = (key: KeyObject): Buffer =>
  createHash("sha1")
    .update(key.export({ type: "spki", format: "der" }))
    .digest();

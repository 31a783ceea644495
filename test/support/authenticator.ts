/**
 * A WebAuthn authenticator in software, for responses that no browser would produce. The browser tests use Chromium's
 * virtual authenticator.
 */
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";

export interface Authenticator {
  /** Signature counter; 0 for none. */
  counter: number;
  id: string;
  create(options: any, change?: Partial<Circumstances>): object;
  get(options: any, change?: Partial<Circumstances>): object;
}

/** The values that the browser and the authenticator put into a response. */
interface Circumstances {
  origin: string;
  rpId: string;
  challenge: string;
  /** User present, user verified. */
  flags: number;
  type: string;
  userHandle: string;
  /** The public key in COSE. */
  publicKey: Buffer;
}

const PRESENT_AND_VERIFIED = 0x05;
const ATTESTED = 0x40;

export function createAuthenticator(origin: string): Authenticator {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const id = randomBytes(32);
  let userHandle = "";
  const rpId = new URL(origin).hostname;
  const authenticator: Authenticator = {
    counter: 0,
    id: id.toString("base64url"),
    create(options, change = {}) {
      userHandle = options.user.id;
      const at = {
        origin,
        rpId,
        challenge: options.challenge,
        flags: PRESENT_AND_VERIFIED,
        type: "webauthn.create",
        publicKey: coseKey(publicKey),
        ...change,
      };
      const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, at.publicKey]);
      const authData = Buffer.concat([header(at, authenticator.counter, at.flags | ATTESTED), attested]);
      return {
        id: authenticator.id,
        rawId: authenticator.id,
        type: "public-key",
        response: {
          clientDataJSON: clientData(at).toString("base64url"),
          attestationObject: attestationObject(authData).toString("base64url"),
        },
        clientExtensionResults: {},
      };
    },
    get(options, change = {}) {
      if (authenticator.counter > 0) authenticator.counter++;
      const at = {
        origin,
        rpId,
        challenge: options.challenge,
        flags: PRESENT_AND_VERIFIED,
        type: "webauthn.get",
        userHandle,
        ...change,
      };
      const authData = header(at, authenticator.counter, at.flags);
      const client = clientData(at);
      return {
        id: authenticator.id,
        rawId: authenticator.id,
        type: "public-key",
        response: {
          clientDataJSON: client.toString("base64url"),
          authenticatorData: authData.toString("base64url"),
          signature: signature(privateKey, Buffer.concat([authData, hash(client)])).toString("base64url"),
          userHandle: at.userHandle,
        },
        clientExtensionResults: {},
      };
    },
  };
  return authenticator;
}

const hash = (bytes: Buffer | string): Buffer => createHash("sha256").update(bytes).digest();
const signature = (key: KeyObject, bytes: Buffer): Buffer => sign("sha256", bytes, key);

function clientData({ type, challenge, origin }: { type: string; challenge: string; origin: string }): Buffer {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
}

function header({ rpId }: { rpId: string }, counter: number, flags: number): Buffer {
  const count = Buffer.alloc(4);
  count.writeUInt32BE(counter);
  return Buffer.concat([hash(rpId), Buffer.from([flags]), count]);
}

/** {1: 2, 3: -7, -1: 1, -2: x, -3: y} in CBOR: an ES256 key. */
function coseKey(key: KeyObject): Buffer {
  const { x = "", y = "" } = key.export({ format: "jwk" });
  const coordinate = (text: string): Buffer => Buffer.concat([Buffer.from([0x58, 32]), Buffer.from(text, "base64url")]);
  return Buffer.concat([
    Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21]),
    coordinate(x),
    Buffer.from([0x22]),
    coordinate(y),
  ]);
}

/** {"fmt": "none", "attStmt": {}, "authData": …} in CBOR. */
function attestationObject(authData: Buffer): Buffer {
  const text = (value: string): Buffer => Buffer.concat([Buffer.from([0x60 + value.length]), Buffer.from(value)]);
  const length = Buffer.from([0x59, authData.length >> 8, authData.length & 0xff]);
  return Buffer.concat([
    Buffer.from([0xa3]),
    text("fmt"),
    text("none"),
    text("attStmt"),
    Buffer.from([0xa0]),
    text("authData"),
    length,
    authData,
  ]);
}

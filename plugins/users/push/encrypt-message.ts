/** Encrypts push messages (RFC 8291) with the content coding `aes128gcm` (RFC 8188), in one record. */
import { concatBytes, utf8 } from "../../../src/core.ts";

const { subtle } = globalThis.crypto;
const CURVE = { name: "ECDH", namedCurve: "P-256" };
const SALT_BYTES = 16;
const RECORD_BYTES = 4096;
/** Header: salt, record size, length of the key id, and the sender's public key as the key id. */
const HEADER_BYTES = SALT_BYTES + 4 + 1 + 65;
const TAG_BYTES = 16;
/** Marks the last record. */
const DELIMITER = Uint8Array.of(2);
/**
 * Maximum length of a message's text, in bytes. Push services do not have to accept more than one record of this size.
 */
export const MAX_PUSH_BYTES = RECORD_BYTES - HEADER_BYTES - TAG_BYTES - DELIMITER.length;

/** The keys of a browser's subscription. */
export interface SubscriptionKeys {
  /** Uncompressed point on P-256. */
  p256dh: Uint8Array;
  /** 16 random bytes. */
  auth: Uint8Array;
}

/**
 * Returns the body of the request to the push service. Rejects if `p256dh` is not a point on the curve.
 * @param chosen the sender's key pair and the salt, for test vectors. Default: newly generated
 * @example
 * const body = await encryptPushMessage(utf8(JSON.stringify(notice)), keys);
 */
export async function encryptPushMessage(
  text: Uint8Array,
  { p256dh, auth }: SubscriptionKeys,
  chosen?: { sender: CryptoKeyPair; salt: Uint8Array },
): Promise<Uint8Array> {
  if (text.length > MAX_PUSH_BYTES) throw new RangeError(`a push message has at most ${MAX_PUSH_BYTES} bytes`);
  const sender = chosen?.sender ?? (await subtle.generateKey(CURVE, false, ["deriveBits"]));
  const salt = chosen?.salt ?? globalThis.crypto.getRandomValues(new Uint8Array(SALT_BYTES));
  const receiver = await importReceiverKey(p256dh);
  const senderPublic = new Uint8Array(await subtle.exportKey("raw", sender.publicKey));
  const shared = await subtle.deriveBits({ name: "ECDH", public: receiver }, sender.privateKey, 256);
  const info = concatBytes(utf8("WebPush: info\0"), p256dh, senderPublic);
  const secret = await derive(new Uint8Array(shared), auth, info, 32);
  const key = await derive(secret, salt, utf8("Content-Encoding: aes128gcm\0"), 16);
  const nonce = await derive(secret, salt, utf8("Content-Encoding: nonce\0"), 12);
  const cipher = await subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
  const record = copyBytes(concatBytes(text, DELIMITER));
  const sealed = new Uint8Array(await subtle.encrypt({ name: "AES-GCM", iv: nonce }, cipher, record));
  const sizes = new DataView(new ArrayBuffer(5));
  sizes.setUint32(0, RECORD_BYTES);
  sizes.setUint8(4, senderPublic.length);
  return concatBytes(salt, new Uint8Array(sizes.buffer), senderPublic, sealed);
}

/** Imports a subscription's public key. Rejects unless it is an uncompressed point on the curve. */
export function importReceiverKey(p256dh: Uint8Array): Promise<CryptoKey> {
  return subtle.importKey("raw", copyBytes(p256dh), CURVE, false, []);
}

async function derive(
  secret: Uint8Array,
  salt: Uint8Array,
  info: Uint8Array,
  length: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const key = await subtle.importKey("raw", copyBytes(secret), "HKDF", false, ["deriveBits"]);
  const parameters = { name: "HKDF", hash: "SHA-256", salt: copyBytes(salt), info: copyBytes(info) };
  return new Uint8Array(await subtle.deriveBits(parameters, key, length * 8));
}

/** Copies the bytes, because the types of WebCrypto do not accept shared memory. */
function copyBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}

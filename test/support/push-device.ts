/** A device that decrypts push messages, written from RFC 8188 and RFC 8291 with node:crypto. */
import { createDecipheriv, createECDH, hkdfSync, randomBytes } from "node:crypto";

export interface PushDevice {
  /** Returns the result of `PushSubscription.toJSON()` with this endpoint. */
  subscription(endpoint: string): { endpoint: string; expirationTime: null; keys: { p256dh: string; auth: string } };
  /** Returns the text of a message. Throws if it was encrypted for another device or altered. */
  open(message: Buffer): string;
}

/** Creates a device. @param keys base64url keys of a test vector; new keys when absent */
export function createPushDevice(keys?: { secret: string; auth: string }): PushDevice {
  const pair = createECDH("prime256v1");
  if (keys === undefined) pair.generateKeys();
  else pair.setPrivateKey(Buffer.from(keys.secret, "base64url"));
  const auth = keys === undefined ? randomBytes(16) : Buffer.from(keys.auth, "base64url");
  return {
    subscription: (endpoint) => ({
      endpoint,
      expirationTime: null,
      keys: { p256dh: pair.getPublicKey("base64url"), auth: auth.toString("base64url") },
    }),
    open(message) {
      const salt = message.subarray(0, 16);
      const sender = message.subarray(21, 21 + (message[20] ?? 0));
      const sealed = message.subarray(21 + sender.length);
      const shared = pair.computeSecret(sender);
      const info = Buffer.concat([Buffer.from("WebPush: info\0"), pair.getPublicKey(), sender]);
      const secret = hkdf(auth, shared, info, 32);
      const key = hkdf(salt, secret, Buffer.from("Content-Encoding: aes128gcm\0"), 16);
      const nonce = hkdf(salt, secret, Buffer.from("Content-Encoding: nonce\0"), 12);
      const cipher = createDecipheriv("aes-128-gcm", key, nonce);
      cipher.setAuthTag(sealed.subarray(-16));
      const record = Buffer.concat([cipher.update(sealed.subarray(0, -16)), cipher.final()]);
      if (record.at(-1) !== 2) throw new Error("the last record does not end with its delimiter");
      return record.subarray(0, -1).toString();
    },
  };
}

function hkdf(salt: Buffer, secret: Buffer, info: Buffer, length: number): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, salt, info, length));
}

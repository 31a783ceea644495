/** Importing this file replaces the portable SHA-256 with the implementation in `node:crypto`. */
import * as crypto from "node:crypto";
import { createHash } from "node:crypto";
import { setSha256 } from "../domain/hash.ts";

// All three runtimes have node:crypto. Its `hash` function exists since Node 20.12 and is twice as fast as
// `createHash`.
const oneShot = (crypto as { hash?: (algorithm: "sha256", bytes: Uint8Array, encoding: "hex") => string }).hash;
setSha256(
  oneShot === undefined
    ? (bytes) => new Uint8Array(createHash("sha256").update(bytes).digest())
    : (bytes) => new Uint8Array(Buffer.from(oneShot("sha256", bytes, "hex"), "hex")),
);

import { randomBytes } from "node:crypto";

const POOL_BYTES = 4096;
let pool = Buffer.alloc(0);

/** 32 random bytes, hex. Drawn from the system a page at a time: a draw costs the same for 32 bytes and for 4,096. */
export function newSalt(): string {
  if (pool.length < 32) pool = randomBytes(POOL_BYTES);
  const salt = pool.toString("hex", 0, 32);
  pool = pool.subarray(32);
  return salt;
}

import { randomBytes } from "node:crypto";

const POOL_BYTES = 4096;
let pool = Buffer.alloc(0);

/**
 * Returns 32 random bytes, hex. Reads 4,096 bytes from the system at a time, because a large read takes as long as a
 * small read.
 */
export function newSalt(): string {
  if (pool.length < 32) pool = randomBytes(POOL_BYTES);
  const salt = pool.toString("hex", 0, 32);
  pool = pool.subarray(32);
  return salt;
}

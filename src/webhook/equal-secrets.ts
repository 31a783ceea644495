/** Compares secrets and signatures. */
import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Compares two secrets in constant time, whatever their lengths.
 * @example
 * const isValid = equalSecrets(headers.get("x-token") ?? "", secret);
 */
export function equalSecrets(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/**
 * Computes a SCRAM-SHA-256 verifier in the form that Postgres stores (RFC 5803, RFC 7677), so that the password does
 * not reach the server or its log.
 */
import { createHash, createHmac, pbkdf2, randomBytes } from "node:crypto";
import { promisify } from "node:util";

const ITERATIONS = 4096;
const SALT_BYTES = 16;

/**
 * Returns the verifier of a password.
 * @param password ASCII only, so that it does not need normalization
 * @example
 * await scramVerifier("secret"); // "SCRAM-SHA-256$4096:…$…:…"
 */
export async function scramVerifier(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const salted = await promisify(pbkdf2)(password, salt, ITERATIONS, 32, "sha256");
  const clientKey = createHmac("sha256", salted).update("Client Key").digest();
  const storedKey = createHash("sha256").update(clientKey).digest("base64");
  const serverKey = createHmac("sha256", salted).update("Server Key").digest("base64");
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString("base64")}$${storedKey}:${serverKey}`;
}

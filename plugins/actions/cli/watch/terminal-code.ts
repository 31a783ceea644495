/**
 * Codes for the sign-in of a terminal. The terminal stores a random verifier, and prints the code and a link that
 * contains the verifier's challenge. The person who confirms the sign-in types the code, so that opening a link is not
 * enough. The code can be computed from the link, so it does not prove that the person sees the terminal. Someone who
 * sends a person a code and a link can therefore trick that person into confirming the sender's sign-in.
 */
import { createHash } from "node:crypto";

/** Omits 0, 1, I, L, O and U, which are easily misread. */
const ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ";
const DIGITS = 8;

/**
 * Returns the challenge of a verifier: its SHA-256, base64url.
 * @example
 * terminalChallenge("a".repeat(43)).length; // 43
 */
export function terminalChallenge(verifier: string): string {
  return createHash("sha256").update(verifier).digest("base64url");
}

/**
 * Returns the code of a challenge, which the terminal displays and the person types.
 * @example
 * terminalCode(challenge); // "K7QF-2M9D"
 */
export function terminalCode(challenge: string): string {
  const digits = [...createHash("sha256").update(`assent-terminal-code/1\n${challenge}`).digest().subarray(0, DIGITS)]
    .map((byte) => ALPHABET.charAt(byte % ALPHABET.length))
    .join("");
  return `${digits.slice(0, DIGITS / 2)}-${digits.slice(DIGITS / 2)}`;
}

/** Returns true if a person typed the challenge's code. Ignores case, spaces and hyphens. */
export function matchesTerminalCode(typed: string, challenge: string): boolean {
  return typed.toUpperCase().replaceAll(/[\s-]/g, "") === terminalCode(challenge).replace("-", "");
}

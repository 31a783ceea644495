/**
 * Codes for the sign-in of a terminal. The terminal keeps a random verifier and prints a link with its challenge, and the
 * code. Whoever confirms the sign-in types the code, so that nobody confirms by opening a link alone. The code follows from the
 * link, so it does not prove that the person sees the terminal: someone who sends both can be confirmed by mistake.
 */
import { sha256, toBase64Url, utf8 } from "./hash.ts";

/** Without letters and digits that look alike. */
const ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ";
const DIGITS = 8;

/**
 * Returns the challenge of a verifier: its SHA-256, base64url.
 * @example
 * terminalChallenge("a".repeat(43)).length; // 43
 */
export function terminalChallenge(verifier: string): string {
  return toBase64Url(sha256(utf8(verifier)));
}

/**
 * Returns the code of a challenge, which the terminal shows and the person types.
 * @example
 * terminalCode(challenge); // "K7QF-2M9D"
 */
export function terminalCode(challenge: string): string {
  const digits = [...sha256(utf8(`assent-terminal-code/1\n${challenge}`)).subarray(0, DIGITS)]
    .map((byte) => ALPHABET.charAt(byte % ALPHABET.length))
    .join("");
  return `${digits.slice(0, DIGITS / 2)}-${digits.slice(DIGITS / 2)}`;
}

/** Whether a person typed this code: case, spaces and hyphens do not matter. */
export function isTerminalCode(typed: string, challenge: string): boolean {
  return typed.toUpperCase().replaceAll(/[\s-]/g, "") === terminalCode(challenge).replace("-", "");
}

/** Asks a yes-or-no question on the terminal. */
import { createInterface } from "node:readline/promises";
import type { Output } from "./command.ts";

/**
 * Returns true if a person can answer: standard input and standard error must be terminals.
 * @example
 * if (canAsk(io) && !(await askYesOrNo("approve this request?"))) return EXIT_CODES.failure;
 */
export function canAsk(io: Output): boolean {
  return process.stdin.isTTY === true && io.watched;
}

/**
 * Resolves to true only if the answer is `y` or `yes`.
 * @example
 * const confirmed = await askYesOrNo("approve this request?");
 */
export async function askYesOrNo(question: string): Promise<boolean> {
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return isYes(await asking.question(`${question} [y/N] `));
  } finally {
    asking.close();
  }
}

/**
 * Returns true if the answer is `y` or `yes`.
 * @example
 * isYes(" Y"); // true
 */
export function isYes(answer: string): boolean {
  return /^y(?:es)?$/i.test(answer.trim());
}

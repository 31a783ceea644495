/** Reads a secret from the terminal without displaying it. */
import { CommandError } from "./command.ts";

/** The members of `process.stdin` that this module uses. */
export interface SecretInput {
  setRawMode(on: boolean): unknown;
  on(event: "data" | "end", listener: (chunk?: Buffer | string) => void): unknown;
  off(event: "data" | "end", listener: (chunk?: Buffer | string) => void): unknown;
  resume(): unknown;
  pause(): unknown;
}

const ENTER = new Set(["\r", "\n"]);
const CANCEL = new Set(["\u0003", "\u0004"]);
const ERASE = new Set(["\u007f", "\b"]);

/** Reads one line. Rejects with CommandError on Ctrl+C, Ctrl+D, or the end of the input. */
export function readSecret(
  prompt: string,
  input: SecretInput = process.stdin as SecretInput,
  write: (text: string) => void = (text) => void process.stderr.write(text),
): Promise<string> {
  return new Promise((resolve, reject) => {
    let line = "";
    const finish = (settle: () => void): void => {
      input.off("data", onData);
      input.off("end", onEnd);
      input.setRawMode(false);
      input.pause();
      write("\n");
      settle();
    };
    const onEnd = (): void => finish(() => reject(new CommandError("no key was entered")));
    const onData = (chunk?: Buffer | string): void => {
      for (const character of String(chunk)) {
        if (ENTER.has(character)) return finish(() => resolve(line));
        if (CANCEL.has(character)) return onEnd();
        line = ERASE.has(character) ? line.slice(0, -1) : line + character;
      }
    };
    write(prompt);
    // In raw mode, the terminal does not display typed text.
    input.setRawMode(true);
    input.on("data", onData);
    input.on("end", onEnd);
    input.resume();
  });
}

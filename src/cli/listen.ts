import type { Listening } from "../serve/index.ts";
import { CommandError } from "./command.ts";

/** Listens, or says in one line why not, and by which option of the command another port is chosen. */
export async function listen(beginning: Promise<Listening>, choice: string): Promise<Listening> {
  try {
    return await beginning;
  } catch (error) {
    const { message, cause } = error as Error & { cause?: { code?: string } };
    const hint = cause?.code === "EADDRINUSE" ? `; choose another with ${choice} (0 picks a free one)` : "";
    throw new CommandError(`${message}${hint}`);
  }
}

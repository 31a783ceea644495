import type { RunningServer } from "../serve/index.ts";
import { CommandError } from "./command.ts";

/**
 * Resolves when the server listens. Throws CommandError with the cause, and the option that selects another port.
 * @param portOption name of that option, such as `--port`
 */
export async function listen(starting: Promise<RunningServer>, portOption: string): Promise<RunningServer> {
  try {
    return await starting;
  } catch (error) {
    const { message, cause } = error as Error & { cause?: { code?: string } };
    const hint = cause?.code === "EADDRINUSE" ? `; choose another with ${portOption} (0 picks a free one)` : "";
    throw new CommandError(`${message}${hint}`);
  }
}

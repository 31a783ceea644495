/** Which Assent this is. */
import { readFileSync } from "node:fs";

function read(path: string): string | null {
  try {
    return (JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as { version: string }).version;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** As package.json has it, which is one folder further up from the built code. */
export const VERSION: string = read("../package.json") ?? read("../../package.json") ?? "unknown";

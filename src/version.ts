/** Reads the version of Assent from package.json. */
import { readFileSync } from "node:fs";

function read(path: string): string | null {
  try {
    return (JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as { version: string }).version;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Version of Assent, or "unknown". For the built code, package.json is one folder higher than for the source. */
export const VERSION: string = read("../package.json") ?? read("../../package.json") ?? "unknown";

/** The version of Assent. */
import { readFileSync } from "node:fs";

function read(path: string): string | null {
  try {
    return (JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as { version: string }).version;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** The version in package.json, which is one more folder up for the built code. */
export const VERSION: string = read("../package.json") ?? read("../../package.json") ?? "unknown";

/** Tells whether the configuration can name plugins, without loading the code that reads a configuration. */
import { readFileSync } from "node:fs";

/** Returns false if there is no configuration file, or if it does not contain the word `plugins`. */
export function namesPlugins(file: string = process.env["ASSENT_CONFIG"] || "assent.yaml"): boolean {
  try {
    return readFileSync(file, "utf8").includes("plugins");
  } catch (error) {
    // `loadConfig` reports other errors, and a missing file that the environment names.
    return (error as NodeJS.ErrnoException).code !== "ENOENT" || Boolean(process.env["ASSENT_CONFIG"]);
  }
}

/** Reads the file of `--config` for the verbs of `assent egress`. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { usageError } from "../../../src/command.ts";
import { EgressConfigError, readEgressConfig, type EgressConfig } from "../egress-config.ts";
import { decodeUtf8 } from "../../../src/domain/json.ts";

/** Throws a usage error that names the file and each invalid member. */
export function loadEgressConfig(path = "egress.yaml"): EgressConfig {
  let text: string | null;
  try {
    text = decodeUtf8(readFileSync(path));
  } catch (error) {
    throw usageError(
      `${path} cannot be read (${(error as NodeJS.ErrnoException).code}); give --config FILE. docs/egress.md has an example`,
    );
  }
  if (text === null) throw usageError(`${path} is not UTF-8`);
  try {
    return readEgressConfig(text, { env: process.env, folder: dirname(resolve(path)) });
  } catch (error) {
    if (error instanceof EgressConfigError) throw usageError(`${path}: ${error.message}`);
    throw error;
  }
}

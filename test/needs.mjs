/** The features that a file of tests needs besides its own, as the first comment of the file declares: `@needs users`. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** Folders of features. Their tests are in the folder of `test` with the same name. */
export const FOLDERS = ["plugins", "clients"];
/** Features that cannot be deleted: an action is submitted with a key, decided by a policy and stored. */
export const BASE = [
  "actions",
  "api-keys",
  "health",
  "policies",
  "policy-files",
  "settings",
  "storage-postgres",
  "storage-sql",
  "storage-sqlite",
  "typescript",
];

/** Returns the names of the features. A feature is a folder of `plugins` or `clients`. */
export function readNeeds(path) {
  const [, names = ""] = /^(?:\/\*\*| \*) @needs ([a-z0-9-]+(?:, [a-z0-9-]+)*)(?: \*\/)?$/m.exec(
    readFileSync(path, "utf8").slice(0, 2000),
  ) ?? [""];
  return names.split(", ").filter(Boolean);
}

/** Returns the features that a file needs and that are deleted. */
export const missingNeeds = (path) =>
  readNeeds(path).filter((name) => !FOLDERS.some((folder) => existsSync(join(ROOT, folder, name))));

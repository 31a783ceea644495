/** Creates folders for tests. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Creates an empty folder and returns its path. The test runner deletes it after the run.
 * @param name beginning of the folder's name, such as `assent-audit-`
 * @param parent folder to create it in; the runner's folder for temporary files when absent
 */
export function temporaryFolder(name: string, parent: string = tmpdir()): string {
  return mkdtempSync(join(parent, name));
}

/** Imported by modules that install packages. */
import { tmpdir } from "node:os";

/**
 * Folder for installed packages. It outlives the test file, unlike `tmpdir()`, which the runner deletes after the file.
 */
export const CACHE: string = process.env["ASSENT_TEST_CACHE"] ?? tmpdir();

// The runner hides this variable from child processes, because every Node process would spend 46 ms on reading the
// certificates.
const { ASSENT_TEST_CERTIFICATES: certificates } = process.env;
if (certificates !== undefined) process.env["NODE_EXTRA_CA_CERTS"] = certificates;

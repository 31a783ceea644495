/** Imported by what installs packages. */
import { tmpdir } from "node:os";

/** Where tests keep what they install: `tmpdir()` is a file's own, and goes with it. */
export const CACHE: string = process.env["ASSENT_TEST_CACHE"] ?? tmpdir();

// The runner withholds them from programs, because every Node would spend 46 ms on reading them.
const { ASSENT_TEST_CERTIFICATES: certificates } = process.env;
if (certificates !== undefined) process.env["NODE_EXTRA_CA_CERTS"] = certificates;

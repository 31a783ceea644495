import { tmpdir } from "node:os";

/** Where tests keep what they install: `tmpdir()` is a file's own, and goes with it. */
export const CACHE: string = process.env["ASSENT_TEST_CACHE"] ?? tmpdir();

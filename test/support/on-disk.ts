/**
 * Imported first by tests that need a disk instead of a folder in memory: tests of disks, tests that install many
 * packages, and tests that start Deno, which grants programs no access below /dev.
 */
const { ASSENT_TEST_DISK: folder, ASSENT_TEST_DISK_CACHE: cache } = process.env;
if (folder !== undefined) process.env["TMPDIR"] = folder;
if (cache !== undefined) process.env["ASSENT_TEST_CACHE"] = cache;

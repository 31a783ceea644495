#!/usr/bin/env node
// The command line of a clone, on Node, Deno and Bun. Builds dist/ if a source has changed, and runs it.

// Import the program only after this check, because older versions of Node cannot load its modules.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 14)) {
  process.stderr.write(`assent needs Node 20.14 or later; this is Node ${process.versions.node}\n`);
  process.exit(1);
}
const { BuildError, ensureBuilt } = await import("../../.ci/build.mjs");
try {
  await ensureBuilt();
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  process.stderr.write(`assent: ${error.message}\n`);
  process.exit(1);
}
await import("../../dist/src/cli/bin.js");

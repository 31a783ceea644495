#!/usr/bin/env node
// The command line of a clone, on Node, Deno and Bun. Builds dist/ if a source has changed, and runs it.
import { BuildError, ensureBuilt } from "../../.ci/build.mjs";

try {
  ensureBuilt();
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  process.stderr.write(`assent: ${error.message}\n`);
  process.exit(1);
}
await import("../../dist/src/cli/bin.js");

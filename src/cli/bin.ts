#!/usr/bin/env node
/** Entry point of the `assent` command. */

// Import the program only after this check, because older versions of Node cannot load its modules.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 14)) {
  process.stderr.write(`assent needs Node 20.14 or later; this is Node ${process.versions.node}\n`);
  process.exit(1);
}
const { main } = await import("./main.ts");
await main(process.argv.slice(2));

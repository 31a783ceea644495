#!/usr/bin/env node
// The sources are TypeScript. Deno and Bun read them themselves; on Node tsx does.
if (process.versions.bun === undefined && process.versions.deno === undefined) {
  const { register } = await import("tsx/esm/api");
  register();
}
const { main } = await import("./main.ts");
await main(process.argv.slice(2));

#!/usr/bin/env node
/** What `assent` starts. */
const args = process.argv.slice(2);
// A coding agent waits for its hook at each call: nothing else is loaded for it.
if (args[0] === "hook" && args[1]?.startsWith("--") === true && !args.includes("--help"))
  await (await import("../hook/launcher.ts")).runHook(args.slice(1));
else await (await import("./main.ts")).main(args);

#!/usr/bin/env node
/** Entry point of the `assent` command. */
const args = process.argv.slice(2);
// A coding agent waits for its hook on each call, so start the hook without loading the rest of the command line.
if (args[0] === "hook" && args[1]?.startsWith("--") === true && !args.includes("--help"))
  await (await import("../../clients/hook/launcher.ts")).runHook(args.slice(1));
else await (await import("./main.ts")).main(args);

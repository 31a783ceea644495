#!/usr/bin/env node
/** `assent-hook`, the program that hosts start. If it cannot start, exit code 2 stops the call in every host. */

// Set the exit code for the case that the process ends without an answer.
process.exitCode = 2;
try {
  const { runHook: start } = await import("./launcher.ts");
  await start(process.argv.slice(2));
} catch (error) {
  process.stderr.write(
    `Not run: assent-hook cannot start: ${error instanceof Error ? error.message : String(error)}\n`,
  );
  // Read the rest of the input. A host that cannot write all of it considers the hook failed, and may run the call.
  process.stdin.on("error", () => {}).resume();
  setTimeout(() => process.exit(2), 5_000).unref();
}

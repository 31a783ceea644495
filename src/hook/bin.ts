#!/usr/bin/env node
/** `assent-hook`: what hosts are told to run. Where it cannot even start, 2 stops the call in every host. */

// For an end that nothing has answered.
process.exitCode = 2;
try {
  const { runHook: start } = await import("./launcher.ts");
  await start(process.argv.slice(2));
} catch (error) {
  process.stderr.write(
    `Not run: assent-hook cannot start: ${error instanceof Error ? error.message : String(error)}\n`,
  );
  // A host that cannot write the whole call takes the hook for failed, and may run the call.
  process.stdin.on("error", () => {}).resume();
  setTimeout(() => process.exit(2), 5_000).unref();
}

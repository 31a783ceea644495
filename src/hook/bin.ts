#!/usr/bin/env node
/** `assent-hook`: what hosts are told to run. Where it cannot even start, 2 stops the call in every host. */
try {
  const { start } = await import("./starter.ts");
  await start(process.argv.slice(2));
} catch (error) {
  process.stderr.write(
    `Not run: assent-hook cannot start: ${error instanceof Error ? error.message : String(error)}\n`,
  );
  process.exitCode = 2;
}

import { StorageError } from "../contract/storage.ts";
import { parseDuration, toRfc3339 } from "../domain/time.ts";
import { VaultError } from "../identity/key-files.ts";
import { createRuntime } from "../runtime/runtime.ts";
import { CommandError, EXIT_CODES, parseArguments, usageError, printJson, type Output } from "./command.ts";
import { loadServeConfig } from "./load-config.ts";
import { startRuntime } from "./serve.ts";

const DAY = 86_400_000;
/**
 * Default overlap of the two keys. Everyone who pinned the old key must get the new key before the overlap ends.
 * Milliseconds.
 */
const OVERLAP = 30 * DAY;

/** Rotates the key directly in the store. The lock of an embedded store ensures that no service is running. */
export async function rotateLog(args: string[], io: Output): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    overlap: { type: "string" },
    "at-once": { type: "boolean" },
    again: { type: "boolean" },
    config: { type: "string" },
    json: { type: "boolean" },
  });
  if (positionals.length > 0) throw usageError("assent keys rotate-log takes no arguments");
  const atOnce = values["at-once"] === true;
  if (atOnce && values.overlap !== undefined) throw usageError("give either --overlap or --at-once");
  const overlap = values.overlap === undefined ? OVERLAP : parseDuration(values.overlap);
  if (overlap === null || overlap > 366 * DAY)
    throw usageError(`--overlap must be a duration of up to 366d, such as 30d; got "${values.overlap}"`);
  const config = loadServeConfig(process.env, values.config);
  if (config.ledger.key !== null && config.ledger.next_key === null)
    throw usageError(
      "ledger.key is configured: give the new key to every process as ledger.next_key (ASSENT_LOG_NEXT_KEY), restart each of them, and run this command with it, too",
    );
  const runtime = await startRuntime(() => createRuntime({ ...config, log: { level: "error" } }));
  try {
    const { vkey, previous, seq, previous_until, recorded } = await runtime.rotateLogKey({
      overlap: atOnce ? 0 : overlap,
      again: atOnce || values.again === true,
    });
    const view = { vkey, previous, index: seq, previous_until: toRfc3339(previous_until), recorded };
    if (values.json === true) printJson(io, view);
    else {
      if (!recorded) io.out("nothing was recorded: the log already has a new key (--again rotates again)");
      io.out(`checkpoints are signed with ${vkey}, from entry ${seq} on`);
      io.out(`${previous} also signs until ${view.previous_until}`);
    }
    io.err("tell everyone who pinned the old key, and give the new key to the witnesses");
    return EXIT_CODES.ok;
  } catch (error) {
    if (error instanceof VaultError || error instanceof StorageError) throw new CommandError(error.message);
    throw error;
  } finally {
    await runtime.stop();
  }
}

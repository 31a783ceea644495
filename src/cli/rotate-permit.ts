import { MAX_PERMIT_SECONDS } from "../domain/permit.ts";
import { VaultError } from "../identity/key-files.ts";
import { toRfc3339 } from "../domain/time.ts";
import { createRuntime } from "../runtime/runtime.ts";
import { CommandError, EXIT_CODES, parseArguments, usageError, printJson, type Output } from "./command.ts";
import { loadServeConfig } from "./load-config.ts";
import { startRuntime } from "./serve.ts";

/** Rotates the key directly in the store. The lock of an embedded store ensures that no service is running. */
export async function rotatePermit(args: string[], io: Output): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    key: { type: "string" },
    "at-once": { type: "boolean" },
    config: { type: "string" },
    json: { type: "boolean" },
  });
  if (positionals.length > 0)
    throw usageError("assent keys rotate-permit takes no arguments; --key names the new key's file");
  const config = loadServeConfig(process.env, values.config);
  if (config.permits.key !== null && values.key === undefined)
    throw usageError(
      "permits.key is configured: --key must name the file of the new key, which you then configure in the service",
    );
  const runtime = await startRuntime(() =>
    createRuntime({ ...config, log: { level: "error" } }, { anyPermitKey: true }),
  );
  try {
    const { kid, previous, until } = await runtime.rotatePermitKey({
      key: values.key ?? null,
      overlap: values["at-once"] === true ? 0 : MAX_PERMIT_SECONDS,
    });
    const view = { kid, previous, previous_until: toRfc3339(until) };
    if (values.json === true) printJson(io, view);
    else {
      io.out(`permits are signed with ${kid}`);
      io.out(`permits of ${previous} are valid until ${view.previous_until}`);
    }
    if (values.key !== undefined)
      io.err("give the new key to every process with permits.key or ASSENT_PERMIT_KEY, and restart it");
    else if (config.database_url !== null) io.err("restart every process that uses this data folder");
    return EXIT_CODES.ok;
  } catch (error) {
    if (error instanceof VaultError) throw new CommandError(error.message);
    throw error;
  } finally {
    await runtime.stop();
  }
}

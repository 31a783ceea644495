import { readFileSync } from "node:fs";
import { equalBytes } from "../domain/hash.ts";
import { currentVkey, openLogCheckpoint } from "../domain/log-keys.ts";
import { toRfc3339 } from "../domain/time.ts";
import { verifyEd25519 } from "../identity/vault.ts";
import { auditStore } from "../ledger/audit-store.ts";
import { createProofReader } from "../ledger/reader.ts";
import { EXIT, parse, usage, CommandError, type Command } from "./command.ts";
import { configFrom } from "./serve.ts";
import { repairsOf, repairStore, said } from "./repair.ts";
import { assertCurrent, progress, withStore } from "./store.ts";

export const audit: Command = {
  summary: "check a whole store against its ledger",
  help: `usage: assent audit [--config FILE] [--key VKEY] [--checkpoint FILE] [--json] [--repair [--copy FILE]]

Hashes every entry again, builds the tree anew, and holds tiles, head, newest checkpoint, actions, votes and
policy sets against it. Only reads; the service may be running meanwhile. Exits with 6 when anything does not hold.

  --config FILE       configuration file that names the store
  --key VKEY          the log's key as you know it, the present one or an earlier, instead of the one that the store names
  --checkpoint FILE   a checkpoint of this log that you kept: the store must contain what was signed
  --json              the report as JSON
  --repair            first cuts back entries that no head ever covered, which an earlier version could leave on
                      Postgres when a connection was lost; what is cut is copied first, and the store says so from then
                      on. Stop the service first
  --copy FILE         where the copy goes; else into the data folder

examples:
  assent audit
  DATABASE_URL=postgres://... assent audit --checkpoint kept.txt --key "$VKEY"
`,
  async run(args, io) {
    const { values, positionals } = parse(args, {
      config: { type: "string" },
      key: { type: "string" },
      checkpoint: { type: "string" },
      json: { type: "boolean" },
      repair: { type: "boolean" },
      copy: { type: "string" },
    });
    if (positionals.length > 0) throw usage("assent audit takes no further words");
    const note = values.checkpoint === undefined ? null : read(values.checkpoint);
    if (values.copy !== undefined && values.repair !== true) throw usage("--copy goes with --repair");
    const config = configFrom(process.env, values.config);
    if (values.repair === true) {
      const output = values.json === true ? { ...io, out: io.err } : io;
      if ((await repairStore(config, values.copy, output)) === null)
        output.out("nothing stands behind the head; nothing was cut");
    }
    const report = await withStore(config, { readOnly: true }, async (storage) => {
      await assertCurrent(storage);
      const vkey = values.key ?? (await storage.meta("log_vkey"));
      const done = await auditStore(storage, {
        verify: verifyEd25519,
        progress: progress(io),
        ...(vkey === null ? {} : { vkey }),
      });
      if (note !== null) {
        try {
          if (vkey === null) throw new Error("the store names no key; give it with --key");
          const kept = openLogCheckpoint(note, done.logKeys, verifyEd25519);
          if (kept.size > done.size)
            done.faults.push(
              `the kept checkpoint was signed over ${kept.size} entries, and the store holds ${done.size}: entries were lost, or an older copy was put back`,
            );
          else if (!equalBytes(await createProofReader(storage).rootAt(kept.size), kept.root))
            done.faults.push(
              `the store does not contain what the kept checkpoint was signed over (size ${kept.size}): it is another history`,
            );
        } catch (error) {
          done.faults.push(
            `the kept checkpoint cannot be used: ${error instanceof Error ? error.message : String(error)}`,
          );
        }
      }
      const present = vkey === null ? null : currentVkey(done.logKeys);
      return { ...done, vkey: present, repairs: await repairsOf(storage) };
    });
    if (values.json === true) io.out(JSON.stringify(report));
    else if (report.faults.length === 0) {
      io.out(`${report.entries} entries, ${report.actions} actions and ${report.policySets} policy sets hold`);
      if (report.erased > 0)
        io.out(
          `${report.erased} of the actions were erased, and an entry says by whom; what they asked for is not there to be compared`,
        );
      io.out(report.vkey === null ? "the log has no key yet" : `the newest checkpoint is signed by ${report.vkey}`);
      for (const { seq, vkey, previous, previous_until } of report.logKeys.changes)
        io.out(
          `entry ${seq} gave the log the key ${vkey}, by the word of ${previous}, which signs along until ${toRfc3339(previous_until)}`,
        );
      for (const repair of report.repairs) io.out(said(repair));
      for (const warning of report.warnings) io.err(`warning: ${warning}`);
    } else for (const fault of report.faults) io.out(fault);
    return report.faults.length === 0 ? EXIT.ok : EXIT.unverified;
  },
};

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CommandError(
      `the checkpoint "${path}" cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

import { readFileSync } from "node:fs";
import type { Config } from "../config/index.ts";
import type { Storage } from "../contract/storage.ts";
import { vkeyAt } from "../domain/log-keys.ts";
import { toRfc3339 } from "../domain/time.ts";
import { verifyEd25519 } from "../identity/vault.ts";
import { auditStore, type StoreAuditReport } from "../audit/store.ts";
import {
  checkKept,
  checkpointFile,
  isForbidden,
  readCheckpointFile,
  stateCheckpointPath,
} from "../ledger/sign/kept-checkpoint.ts";
import { createProofReader } from "../ledger/reader.ts";
import { LedgerTampered } from "../ledger/tampered.ts";
import { EXIT, parse, usage, CommandError, type Command } from "./command.ts";
import { configFrom } from "./serve.ts";
import { repairsOf, repairStore, said } from "./repair.ts";
import { assertCurrent, progress, withStore } from "./store.ts";

export const audit: Command = {
  summary: "check a whole store against its ledger",
  help: `usage: assent audit [--config FILE] [--key VKEY] [--checkpoint FILE] [--json] [--repair [--copy FILE]]

Hashes every entry again, builds the tree from the hashes, and compares tiles, head, newest checkpoint and every table
with it. Also compares the store with the checkpoint files that the service reads at its start. Only reads; the
service may be running meanwhile. Exits with 6 when it finds a fault.

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
      const storedKey = await storage.meta("log_vkey");
      const vkey = values.key ?? storedKey;
      // Read before the store, which a running service adds to: it must contain them by then.
      const kept = keptCheckpoints(config, [storedKey, vkey]);
      if (values.checkpoint !== undefined && note !== null) kept.notes.push({ path: values.checkpoint, note });
      const done = await auditStore(storage, {
        verify: verifyEd25519,
        progress: progress(io),
        ...(vkey === null ? {} : { vkey }),
      });
      if (storedKey === null && done.size > 0)
        done.faults.push(
          `the store holds ${done.size} entries and does not name the log's key: the key was removed${vkey === null ? ", and no signature was verified; give the key with --key" : ""}`,
        );
      done.faults.push(...kept.faults);
      done.warnings.push(...kept.warnings);
      const contained = await compareKept(storage, done, kept.notes);
      const signer = done.signedSize === null ? null : vkeyAt(done.logKeys, done.signedSize);
      return { ...done, vkey: signer, contained, repairs: await repairsOf(storage) };
    });
    if (values.json === true) io.out(JSON.stringify(report));
    else if (report.faults.length === 0) {
      io.out(`${report.entries} entries, ${report.actions} actions and ${report.policySets} policy sets hold`);
      if (report.erased > 0)
        io.out(
          `${report.erased} of the actions were erased, and an entry says by whom; what they asked for is not there to be compared`,
        );
      if (report.vkey === null) io.out("nothing is recorded or signed yet");
      else {
        io.out(
          `the newest checkpoint covers ${report.signedSize} of ${report.size} entries and is signed by ${report.vkey}`,
        );
        if (values.key === undefined)
          io.out(
            "that is the key that the store itself names; compare it with the one you know, or give that with --key",
          );
      }
      for (const { path, size } of report.contained)
        io.out(`the store contains what ${path} was signed over (${size})`);
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

interface KeptNotes {
  notes: { path: string; note: string }[];
  faults: string[];
  warnings: string[];
}

/** The checkpoints that the service compares with the store when it starts. */
function keptCheckpoints(config: Config, vkeys: readonly (string | null)[]): KeptNotes {
  const paths = [checkpointFile(config)];
  for (const vkey of new Set(vkeys))
    if (vkey !== null && config.state !== null) paths.push(stateCheckpointPath(config.state, vkey));
  const kept: KeptNotes = { notes: [], faults: [], warnings: [] };
  for (const path of paths) {
    try {
      const note = readCheckpointFile(path);
      if (note !== null) kept.notes.push({ path, note });
    } catch (error) {
      const message = `the checkpoint kept in ${path} cannot be read: ${(error as Error).message}`;
      // The service does without the state folder where it may not read it.
      (path !== paths[0] && isForbidden(error) ? kept.warnings : kept.faults).push(message);
    }
  }
  return kept;
}

/** Adds a fault for each that the store contradicts, and returns the others. */
async function compareKept(
  storage: Storage,
  report: StoreAuditReport,
  notes: KeptNotes["notes"],
): Promise<{ path: string; size: number }[]> {
  const contained: { path: string; size: number }[] = [];
  const history = {
    size: report.size,
    keys: report.logKeys,
    verify: verifyEd25519,
    rootAt: (size: number) => createProofReader(storage).rootAt(size),
  };
  for (const { path, note } of notes) {
    try {
      const { size, fault } = await checkKept({ path, note }, history);
      if (fault === null) contained.push({ path, size });
      else report.faults.push(fault);
    } catch (error) {
      if (!(error instanceof LedgerTampered)) throw error;
      report.faults.push(...error.faults);
    }
  }
  return contained;
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CommandError(
      `the checkpoint "${path}" cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

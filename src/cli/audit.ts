import type { Config } from "../config/index.ts";
import { nullIfCorrupt, type Storage } from "../contract/storage.ts";
import { vkeyAtSize } from "../domain/log-keys.ts";
import { toRfc3339 } from "../domain/time.ts";
import type { RowSeals } from "../contract/row-seals.ts";
import { hasOtherSecret } from "../identity/pin-secret.ts";
import { createRowSeals } from "../identity/row-seals.ts";
import { openExistingVault, verifyEd25519 } from "../identity/vault.ts";
import { createLogger } from "../serve/log.ts";
import { auditStore, type StoreAuditReport } from "../audit/audit-store.ts";
import {
  verifyCheckpointFile,
  checkpointFilePath,
  isPermissionDenied,
  readCheckpointFile,
  stateCheckpointPath,
} from "../ledger/sign/checkpoint-file.ts";
import { createProofReader } from "../ledger/reader.ts";
import { LedgerTampered } from "../ledger/tampered.ts";
import {
  EXIT_CODES,
  parseArguments,
  usageError,
  printJson,
  type Command,
  createProgressReporter,
  readCheckpointFlag,
} from "./command.ts";
import { readDeclarations } from "./plugin-commands.ts";
import { loadServeConfig } from "./load-config.ts";
import { readRepairs, repairStore, formatRepair } from "./repair.ts";
import { assertCurrentSchema, withStore } from "./with-store.ts";

export const audit: Command = {
  help: `usage: assent audit [--config FILE] [--key VKEY] [--checkpoint FILE] [--json] [--repair [--copy FILE]]

Recomputes the hash of every entry and the tree, and compares tiles, head, newest checkpoint and every table with them.
Also compares the store with the checkpoint files that the service reads at startup. Only reads; the service may be
running. Exits with 6 if it finds a fault.

  --config FILE       configuration file that names the store
  --key VKEY          current or earlier verifier key of the log, to use instead of the key in the store
  --checkpoint FILE   checkpoint of this log that you saved: the store must contain everything it covers
  --json              the report as JSON
  --repair            first deletes entries that no head ever covered, which an earlier version could leave on
                      Postgres when a connection was lost. Copies the rows before it deletes them, and records the
                      repair in the store. Stop the service first
  --copy FILE         file for the copy; default: a new file in the data folder

examples:
  assent audit
  DATABASE_URL=postgres://... assent audit --checkpoint kept.txt --key "$VKEY"
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      config: { type: "string" },
      key: { type: "string" },
      checkpoint: { type: "string" },
      json: { type: "boolean" },
      repair: { type: "boolean" },
      copy: { type: "string" },
    });
    if (positionals.length > 0) throw usageError("assent audit takes no arguments");
    const note = values.checkpoint === undefined ? null : readCheckpointFlag(values.checkpoint);
    if (values.copy !== undefined && values.repair !== true) throw usageError("--copy needs --repair");
    const config = loadServeConfig(process.env, values.config);
    const features = await readDeclarations(config);
    if (values.repair === true) {
      const output = values.json === true ? { ...io, out: io.err } : io;
      if ((await repairStore(config, values.copy, output)) === null)
        output.out("there are no rows after the head; nothing was deleted");
    }
    const report = await withStore(config, { readOnly: true }, async (storage) => {
      await assertCurrentSchema(storage);
      const storedKey = await storage.meta("log_vkey");
      const vkey = values.key ?? storedKey;
      // Read the saved checkpoints before the store. In the other order, a running service could save a checkpoint that
      // is newer than the entries that were read.
      const savedCheckpoints = readSavedCheckpoints(config, [storedKey, vkey]);
      if (values.checkpoint !== undefined && note !== null)
        savedCheckpoints.notes.push({ path: values.checkpoint, note });
      const secret = await readSeals(config, storage);
      const done = await auditStore(storage, {
        features,
        verify: verifyEd25519,
        progress: createProgressReporter(io),
        ...(vkey === null ? {} : { vkey }),
        ...(secret.seals === null ? {} : { seals: secret.seals }),
      });
      if (secret.fault !== null) done.faults.push(secret.fault);
      if (secret.warning !== null) done.warnings.push(secret.warning);
      if (storedKey === null && done.size > 0)
        done.faults.push(
          `the store has ${done.size} entries and does not name the log's key: it was removed${vkey === null ? ", and no signature was verified; give the key with --key" : ""}`,
        );
      done.faults.push(...savedCheckpoints.faults);
      done.warnings.push(...savedCheckpoints.warnings);
      done.warnings.push(...(await unsignedWarning(storage, done)));
      const contained = await compareSavedCheckpoints(storage, done, savedCheckpoints.notes);
      const signer = done.signedSize === null ? null : vkeyAtSize(done.logKeys, done.signedSize);
      return { ...done, vkey: signer, contained, repairs: await readRepairs(storage) };
    });
    if (values.json === true) printJson(io, report);
    else if (report.faults.length === 0) {
      io.out(`${report.entries} entries, ${report.actions} actions and ${report.policySets} policy sets verified`);
      if (report.erased > 0)
        io.out(
          `${report.erased} of the actions were erased, as their entries record; their requests cannot be compared`,
        );
      if (report.vkey === null) io.out("nothing is recorded or signed yet");
      else {
        io.out(
          `the newest checkpoint covers ${report.signedSize} of ${report.size} entries and is signed by ${report.vkey}`,
        );
        if (values.key === undefined)
          io.out("this key comes from the store itself; compare it with the key you know, or pass that with --key");
      }
      for (const { path, size } of report.contained)
        io.out(`the store contains the checkpoint in ${path} (size ${size})`);
      for (const { seq, vkey, previous, previous_until } of report.logKeys.changes)
        io.out(
          `entry ${seq}: the key ${previous} authorized the new key ${vkey} and also signs until ${toRfc3339(previous_until)}`,
        );
      for (const repair of report.repairs) io.out(formatRepair(repair));
      for (const warning of report.warnings) io.err(`warning: ${warning}`);
    } else for (const fault of report.faults) io.out(fault);
    return report.faults.length === 0 ? EXIT_CODES.ok : EXIT_CODES.unverified;
  },
};

interface SealsOfStore {
  /** Null if the secret is not known, or is not the secret of the store. */
  seals: RowSeals | null;
  fault: string | null;
  warning: string | null;
}

/** Returns the seals under the service's secret, which the audit needs to verify rows that no entry describes. */
async function readSeals(config: Config, storage: Storage): Promise<SealsOfStore> {
  const log = createLogger("silent");
  const vault = openExistingVault(config, log);
  if (vault === null)
    return {
      seals: null,
      fault: null,
      warning:
        "the seals of documents, deliveries and idempotency keys were not verified, because the service's secret is not here; set ASSENT_SECRET, or audit with the service's data folder",
    };
  if (await hasOtherSecret(storage, vault))
    return {
      seals: null,
      fault:
        "the secret is not the one that the store was first used with, so the seals of its rows were not verified; audit with the service's ASSENT_SECRET or data folder",
      warning: null,
    };
  return { seals: createRowSeals(vault, log), fault: null, warning: null };
}

/**
 * An unsigned entry that is older than this causes a warning, because a running service signs entries within a second.
 * Milliseconds.
 */
const UNSIGNED_AFTER_MS = 60_000;

/** Returns a warning if entries have been unsigned for longer than `UNSIGNED_AFTER_MS`; otherwise an empty list. */
async function unsignedWarning(storage: Storage, { signedSize, size }: StoreAuditReport): Promise<string[]> {
  if (signedSize === null || signedSize >= size) return [];
  const [first] = (await nullIfCorrupt(storage.entries(signedSize, signedSize + 1))) ?? [];
  if (first === undefined || Date.now() - first.created_at < UNSIGNED_AFTER_MS) return [];
  return [
    `the newest ${size - signedSize} entries, from entry ${signedSize} on, have been unsigned since ${toRfc3339(first.created_at)}: anyone who can write to the store can change them. The service signs them when it starts; compare them with checkpoints that you saved, with --checkpoint`,
  ];
}

interface SavedCheckpoints {
  notes: { path: string; note: string }[];
  faults: string[];
  warnings: string[];
}

/** Reads the checkpoints that the service compares with the store when it starts. */
function readSavedCheckpoints(config: Config, vkeys: readonly (string | null)[]): SavedCheckpoints {
  const paths = [checkpointFilePath(config)];
  for (const vkey of new Set(vkeys))
    if (vkey !== null && config.state !== null) paths.push(stateCheckpointPath(config.state, vkey));
  const saved: SavedCheckpoints = { notes: [], faults: [], warnings: [] };
  for (const path of paths) {
    try {
      const note = readCheckpointFile(path);
      if (note !== null) saved.notes.push({ path, note });
    } catch (error) {
      const message = `the stored checkpoint ${path} cannot be read: ${(error as Error).message}`;
      // Only warn about a state folder without read permission, because the service ignores such a folder, too.
      (path !== paths[0] && isPermissionDenied(error) ? saved.warnings : saved.faults).push(message);
    }
  }
  return saved;
}

/** Returns the checkpoints that match the store. Adds a fault to the report for each checkpoint that does not match. */
async function compareSavedCheckpoints(
  storage: Storage,
  report: StoreAuditReport,
  notes: SavedCheckpoints["notes"],
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
      const { size, fault } = await verifyCheckpointFile({ path, note }, history);
      if (fault === null) contained.push({ path, size });
      else report.faults.push(fault);
    } catch (error) {
      if (!(error instanceof LedgerTampered)) throw error;
      report.faults.push(...error.faults);
    }
  }
  return contained;
}

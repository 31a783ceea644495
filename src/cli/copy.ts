import { COPIED_TABLES, type CopiedTable, type Storage, type StorageCopying } from "../contract/storage.ts";
import { equalBytes, toHex } from "../domain/hash.ts";
import { verifyEd25519 } from "../identity/vault.ts";
import { auditLedger } from "../audit/ledger.ts";
import { readLogKeys } from "../ledger/sign/log-key-book.ts";
import { UNFINISHED_COPY_KEY } from "../runtime/open-store.ts";
import {
  CommandError,
  EXIT_CODES,
  parseArguments,
  printJson,
  usageError,
  type Command,
  type Output,
  createProgressReporter,
} from "./command.ts";
import { loadServeConfig } from "./load-config.ts";
import { withStore } from "./with-store.ts";

const PAGE_SIZE = 500;
/** Tables whose rows never change. A resumed copy skips their rows that the target already contains. */
const APPEND_ONLY: readonly CopiedTable[] = ["entries", "tiles", "policy_versions", "policy_sets"];

export const copy: Command = {
  help: `usage: assent copy --to URL [--config FILE] [--json]

Copies the store that the configuration names into an empty Postgres database (postgres://...), or into a new
SQLite store (a folder). Entries are copied byte for byte, so all proofs and permits stay valid. Stop the
service first. Run the same command again to continue an interrupted copy; until the copy is complete,
no service starts on the target.

  --to URL        where to: postgres://user:password@host:port/database, or a folder
  --config FILE   configuration file that names the store to copy
  --json          print the number of entries as JSON

examples:
  assent copy --to postgres://assent:secret@db.example/assent
  DATABASE_URL=postgres://... assent copy --to ./data
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      to: { type: "string" },
      config: { type: "string" },
      json: { type: "boolean" },
    });
    if (values.to === undefined || positionals.length > 0)
      throw usageError("assent copy needs --to with a postgres:// URL or a folder");
    const from = loadServeConfig(process.env, values.config);
    const isUrl = /^postgres(ql)?:\/\//.test(values.to);
    if (!isUrl && values.to.includes("://")) throw usageError("--to must be a postgres:// URL or a folder");
    // Ignore the configured plugins, because they include the storage of the source.
    const to = loadServeConfig(
      { ...process.env, DATABASE_URL: isUrl ? values.to : "", ...(isUrl ? {} : { ASSENT_DATA: values.to }) },
      values.config,
    );
    to.plugins = null;
    if (!isUrl) to.database_url = null;
    const size = await withStore(from, {}, (source) => withStore(to, {}, (target) => copyStore(source, target, io)));
    if (values.json === true) {
      printJson(io, { entries: size, verified: true });
      return EXIT_CODES.ok;
    }
    io.out(`copied ${size} entries and verified the copy`);
    io.out(
      `start the service on it with ${isUrl ? "DATABASE_URL, ASSENT_SECRET, ASSENT_LOG_KEY and ASSENT_PERMIT_KEY (from the data folder: secret, log-key.pem, permit-key.pem)" : "ASSENT_DATA"}`,
    );
    return EXIT_CODES.ok;
  },
};

/** Copies every table and verifies the copy. Resolves to the number of entries. Rejects with CommandError. */
async function copyStore(source: Storage, target: Storage, io: Output): Promise<number> {
  const [read, write] = [requireCopying(source), requireCopying(target)];
  const head = await source.head();
  const state = JSON.stringify({
    vkey: await source.meta("log_vkey"),
    size: head.size,
    root: toHex(head.root),
    epoch: head.epoch,
  });
  const begun = await target.meta(UNFINISHED_COPY_KEY);
  if (begun === null || begun === "") await assertEmpty(target);
  else if (vkeyOf(begun) !== vkeyOf(state))
    throw new CommandError("the target contains an unfinished copy of another log; give an empty database");
  await target.write((tx) => tx.putMeta(UNFINISHED_COPY_KEY, state));
  const reportProgress = createProgressReporter(io);
  for (const table of COPIED_TABLES) {
    // If the source has changed since the copy began, copy tables again unless they are append-only.
    const resume = begun === state || APPEND_ONLY.includes(table);
    await copyTable(table, read, write, resume, reportProgress);
  }
  await write.finish(head, await source.checkpoint());
  await assertSame(source, target, reportProgress);
  await target.write((tx) => tx.putMeta(UNFINISHED_COPY_KEY, ""));
  return head.size;
}

async function copyTable(
  table: CopiedTable,
  read: StorageCopying,
  write: StorageCopying,
  resume: boolean,
  reportProgress: ReturnType<typeof createProgressReporter>,
): Promise<void> {
  const total = await read.count(table);
  let last = resume && table !== "meta" ? await write.last(table) : null;
  let done = last === null ? 0 : Math.min(total, await write.count(table));
  for (;;) {
    const rows = await read.read(table, last, PAGE_SIZE);
    if (rows.length === 0) break;
    last = rows.at(-1) ?? null;
    await write.write(table, table === "meta" ? rows.filter((row) => row["name"] !== UNFINISHED_COPY_KEY) : rows);
    done += rows.length;
    reportProgress(table, Math.min(done, total), total);
  }
}

async function assertEmpty(target: Storage): Promise<void> {
  const used =
    (await target.head()).size > 0 || (await target.keys()).length > 0 || (await target.meta("log_vkey")) !== null;
  if (used)
    throw new CommandError("the target already contains a store; give an empty database, or a folder without a store");
}

async function assertSame(
  source: Storage,
  target: Storage,
  reportProgress: ReturnType<typeof createProgressReporter>,
): Promise<void> {
  const [from, to] = [await source.head(), await target.head()];
  const first = await target.meta("log_vkey");
  const keys = first === null ? null : await readLogKeys(target, { first, changes: [] }, verifyEd25519);
  const { faults } = await auditLedger(target, {
    from: 0,
    verify: verifyEd25519,
    ...(keys === null ? {} : { keys: () => keys }),
    progress: (done, total) => reportProgress("entries verified", done, total),
  });
  if (from.size !== to.size || !equalBytes(from.root, to.root)) faults.push("the heads differ");
  for (const table of COPIED_TABLES) {
    const [sourceRows, copiedRows] = [
      await requireCopying(source).count(table),
      await requireCopying(target).count(table),
    ];
    // The target has one additional row in `meta`, which marks the copy as unfinished.
    if (
      copiedRows - (table === "meta" ? 1 : 0) !==
      sourceRows - (table === "meta" && (await source.meta(UNFINISHED_COPY_KEY)) !== null ? 1 : 0)
    )
      faults.push(`${table}: ${sourceRows} rows in the source, ${copiedRows} in the copy`);
  }
  if (faults.length > 0) throw new CommandError(`the copy differs from the source: ${faults.join("; ")}`);
}

function requireCopying(storage: Storage): StorageCopying {
  if (storage.copying === undefined) throw new CommandError(`${storage.name} cannot be copied`);
  return storage.copying;
}

function vkeyOf(state: string): unknown {
  return (JSON.parse(state) as { vkey: unknown }).vkey;
}

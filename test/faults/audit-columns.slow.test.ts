/**
 * The audit reports a change of any column, except the columns in `UNRECORDED_COLUMNS`.
 * @needs agents, authority, grants, plans, questions, reviewers, retention, stop, sub-agents, suggestions, tasks, users
 */
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { UNRECORDED_META_NAMES } from "../../src/audit/audit-rows.ts";
import { UNRECORDED_COLUMNS } from "../support/unrecorded-columns.ts";
import { faultsOf, flipColumns, removeAndRepeatRows, type Audited } from "../support/audit-flips.ts";
import { fillStore } from "../support/every-row.ts";
import { rawSqlite } from "../support/raw-store.ts";
import { ROOT } from "../support/runtimes.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
let audited: Audited;

before(async () => {
  folder = temporaryFolder("assent-audit-");
  const path = join(folder, "assent.db");
  const filled = await fillStore(
    (own) => sqliteStorage({ path: join(own, "assent.db") }),
    async ({ storage }) => storage.backup?.(path),
  );
  const raw = await rawSqlite(path);
  const storage = sqliteStorage({ path });
  await storage.open({ readOnly: true });
  audited = { raw, storage, ...filled };
});
after(async () => {
  await audited.storage.close();
  await audited.raw.close();
  rmSync(folder, { recursive: true });
});

test("the audit reports a change of any column, except the listed ones", async () => {
  assert.ok((await flipColumns(audited)) > 500);
});

test("the audit reports a missing row and an additional row", async () => {
  assert.ok((await removeAndRepeatRows(audited)) > 50);
});

test("unreadable data is reported as a fault, without a stack trace", async () => {
  const table = (name: string) => {
    const found = audited.raw.tables.find((known) => known.name === name);
    assert.ok(found !== undefined);
    return found;
  };
  const utf8 = (text: string) => new TextEncoder().encode(text);
  const cases: [string, string, (row: Record<string, unknown>) => boolean, string | Uint8Array | number, RegExp][] = [
    ["entries", "bytes", ({ type }) => type === "decision", utf8("{"), /entry \d+ was altered/],
    ["entries", "bytes", ({ type }) => type === "api_key", new Uint8Array(0), /entry \d+ was altered/],
    ["entries", "bytes", ({ type }) => type === "agent", Uint8Array.of(0xff, 0xfe), /entry \d+ was altered/],
    ["entries", "bytes", ({ type }) => type === "approval", new Uint8Array(1 << 20), /entry \d+ was altered/],
    ["entries", "leaf_hash", () => true, utf8("short"), /entry \d+ was altered/],
    ["entries", "created_at", () => true, Number.MAX_SAFE_INTEGER, /different time/],
    ["actions", "request", () => true, "{", /its request cannot be read/],
    ["actions", "request", () => true, "null", /cannot be read/],
    ["actions", "request", () => true, "[".repeat(100_000), /cannot be read/],
    ["actions", "salt", () => true, "zz", /request hash and salt/],
    ["actions", "request_hash", () => true, "\u0000", /request hash/],
    ["actions", "past", ({ past }) => past !== null, "{", /the history that its decisions read/],
    ["actions", "result", ({ result }) => result !== null, "{}", /its result/],
    ["api_keys", "scopes", () => true, "{", /the API key .* cannot be read/],
    ["agents", "allowed_tools", () => true, "{", /the agent .* cannot be read/],
    ["policy_sets", "document", () => true, "{", /was altered/],
    ["policy_versions", "definition", () => true, "\ud83d\ude00", /different digest/],
    ["ledger_head", "size", () => true, -1, /invalid size -1/],
    ["ledger_head", "size", () => true, 2 ** 50, /entry \d+ is missing/],
    ["ledger_head", "edge", () => true, utf8("x"), /right edge/],
    ["ledger_head", "policy_set", () => true, "nothing", /policy set nothing/],
    ["checkpoint", "note", () => true, "no note", /checkpoint cannot be used/],
  ];
  for (const [name, column, which, value, words] of cases) {
    const row = (await audited.raw.rows(table(name))).find(which);
    assert.ok(row !== undefined, name);
    await audited.raw.set(table(name), row, column, value);
    const faults = await faultsOf(audited);
    await audited.raw.set(table(name), row, column, row[column] ?? null);
    assert.match(faults.join("\n"), words, `${name}.${column}`);
  }
  assert.deepEqual(await faultsOf(audited), []);
});

test("the documentation lists what is not compared, and why, as the code does", () => {
  const text = readFileSync(join(ROOT, "docs/operations.md"), "utf8");
  const listed = [...text.matchAll(/^\| `([a-z_]+)\.([a-z_*]+)` \| (.+) \|$/gm)].map(([, table, column, why]) => ({
    table,
    column,
    why,
  }));
  assert.deepEqual(listed, UNRECORDED_COLUMNS);
  const [, rows] = /\n\| row of `meta` \|[^\n]*\n[^\n]*\n([^]*?)\n\n/.exec(text) as RegExpExecArray;
  const names = [...(rows as string).matchAll(/^\| `([a-z_:]+)…?` \|/gm)].map(([, name]) => name);
  assert.deepEqual(names, UNRECORDED_META_NAMES);
});

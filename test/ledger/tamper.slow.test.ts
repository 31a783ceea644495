/** Everything that mattered is in the hash, the service does not start on a changed store, and replay is exact. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import { encodeEntry, type EntryBody } from "../../src/domain/entries.ts";
import { toHex } from "../../src/domain/hash.ts";
import { needs } from "../support/features.ts";
import { ALLOWED, ASKED, FEW_POLICIES, startService, type Service } from "../support/service.ts";
import { startProcess, stopProcess } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const { DatabaseSync } = await loadSqlite();

let service: Service;
let entries: { seq: number; hash: string; entry: EntryBody & { seq: number } }[] = [];
let allowedId = "";

before(async () => {
  service = await startService();
  const pending = (await service.call("POST", "/v1/actions", { body: ASKED })).body;
  const token = (await service.call("GET", `/v1/actions/${pending.id}`, { key: service.admin })).body
    .approval_token as string;
  const approved = (
    await service.call("POST", `/v1/actions/${pending.id}/approval`, {
      key: service.admin,
      body: { token, approve: true, reason: "fine" },
    })
  ).body;
  const { permit } = (await service.call("POST", `/v1/actions/${approved.id}/permit`, { body: {} })).body;
  await service.call("POST", `/v1/actions/${approved.id}/start`, { body: { permit } });
  await service.call("POST", `/v1/actions/${approved.id}/result`, {
    body: { success: true, meta: { refund: "re_1" } },
  });
  allowedId = (await service.call("POST", "/v1/actions", { body: ALLOWED })).body.id as string;
  const rows = await service.storage.entries(0, 100);
  entries = rows.map((row) => ({
    seq: row.seq,
    hash: toHex(row.leaf_hash),
    entry: JSON.parse(new TextDecoder().decode(row.bytes)) as EntryBody & { seq: number },
  }));
});
after(() => service.close());

/** Every path in an entry that has a value. */
function places(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== "object" || value === null) return [path];
  const inner = Object.entries(value).flatMap(([key, item]) =>
    places(item, [...path, Array.isArray(value) ? Number(key) : key]),
  );
  return inner.length === 0 ? [path] : inner;
}

function changed(value: unknown, path: (string | number)[]): unknown {
  const [first, ...rest] = path;
  if (first === undefined) {
    if (typeof value === "string") return `${value}x`;
    if (typeof value === "number") return value + 1;
    if (typeof value === "boolean") return !value;
    return value === null ? "was null" : [...((value as unknown[]) ?? []), "was empty"];
  }
  if (Array.isArray(value)) return value.map((item, i) => (i === first ? changed(item, rest) : (item as unknown)));
  return { ...(value as object), [first]: changed((value as Record<string, unknown>)[first], rest) };
}

describe("the hash of an entry", () => {
  test("a change of any field of any kind of entry changes its hash", () => {
    const kinds = new Set<string>();
    for (const { seq, hash, entry } of entries) {
      kinds.add(entry.type);
      const { seq: _, ...body } = entry;
      assert.equal(toHex(encodeEntry(body as EntryBody, seq).leafHash), hash, "an entry must seal to its own hash");
      for (const path of places(body)) {
        assert.notEqual(
          toHex(encodeEntry(changed(body, path) as EntryBody, seq).leafHash),
          hash,
          `${entry.type}: ${path.join(".")} is not in the hash`,
        );
      }
      assert.notEqual(toHex(encodeEntry(body as EntryBody, seq + 1).leafHash), hash, "the position is not in the hash");
    }
    assert.deepEqual([...kinds].sort(), ["api_key", "approval", "decision", "execution", "policy_set", "redecision"]);
  });

  test("the entry of a decision names arguments, agent, principal, policy set, rule, reason, facts and clock", () => {
    const decision = entries.find(({ entry }) => entry.type === "decision")?.entry as unknown as Record<
      string,
      unknown
    > & { decision: Record<string, unknown> };
    for (const field of [
      "commitment",
      "agent_id",
      "tool",
      "operation",
      "submitted_by",
      "policy_set",
      "facts",
      "at",
      "status",
      "expires_at",
    ])
      assert.ok(field in decision, field);
    for (const field of [
      "effect",
      "reason",
      "reason_code",
      "policy",
      "policy_version",
      "rule",
      "risk_level",
      "approval",
      "shadow",
    ])
      assert.ok(field in decision.decision, field);
    const approval = entries.find(({ entry }) => entry.type === "approval")?.entry as unknown as Record<
      string,
      unknown
    >;
    assert.deepEqual(
      [
        approval["verdict"],
        approval["comment"],
        (approval["by"] as { principal: string }).principal.startsWith("key:"),
      ],
      ["approve", "fine", true],
    );
  });
});

describe("replay", () => {
  test("a replay equals the decision in every field, for every decision", needs("replay"), async () => {
    for (const { hash, entry } of entries.filter(({ entry: e }) => e.type === "decision")) {
      const answer = await service.call("POST", "/v1/replay", { key: service.admin, body: { hash } });
      assert.equal(answer.status, 200);
      assert.equal(answer.body.equal, true);
      assert.deepEqual(
        answer.body.fields.filter((f: { equal: boolean }) => !f.equal),
        [],
      );
      assert.ok(answer.body.fields.some((f: { field: string }) => f.field === "entry_hash"));
      assert.equal(answer.body.at, (entry as { at: string }).at);
      assert.equal(answer.body.now, null);
    }
  });

  test("a candidate policy and the current set report what they would decide now", needs("replay"), async () => {
    const policy = { policy: "payments", rules: [{ name: "no refunds today", operation: "refund", effect: "deny" }] };
    const what = await service.call("POST", "/v1/replay", {
      key: service.admin,
      body: { action_id: allowedId, policy },
    });
    assert.equal(what.body.equal, true, "the recorded decision is still equal");
    assert.deepEqual(
      [what.body.now.changed, what.body.now.decision.effect, what.body.now.decision.rule],
      [true, "deny", "no refunds today"],
    );
    const current = await service.call("POST", "/v1/replay", {
      key: service.admin,
      body: { action_id: allowedId, policy_set: "current" },
    });
    assert.equal(current.body.now.changed, false);
  });

  test("invalid replays are rejected", needs("replay"), async () => {
    const approval = entries.find(({ entry }) => entry.type === "approval")?.hash;
    for (const [body, status, code] of [
      [{}, 422, "VALIDATION_FAILED"],
      [{ hash: "0".repeat(64), action_id: allowedId }, 422, "VALIDATION_FAILED"],
      [{ hash: "0".repeat(64) }, 404, "ENTRY_NOT_FOUND"],
      [{ action_id: "00000000-0000-7000-8000-000000000000" }, 404, "ACTION_NOT_FOUND"],
      [{ hash: approval }, 409, "NOT_REPLAYABLE"],
      [
        { action_id: allowedId, policy: { policy: "x", rules: [{ name: "a", effect: "allow", when: "1 +" }] } },
        422,
        "POLICY_INVALID",
      ],
    ] as const) {
      const answer = await service.call("POST", "/v1/replay", { key: service.admin, body });
      assert.deepEqual([answer.status, answer.body.code], [status, code], JSON.stringify(body));
    }
  });

  test("a replay stays exact after the policies have changed", needs("replay"), async () => {
    const folder = temporaryFolder("assent-policies-");
    const write = (effect: string) =>
      writeFileSync(join(folder, "p.yaml"), `policy: p\nrules:\n  - name: r\n    effect: ${effect}\n`);
    write("allow");
    const changing = await startService({ policies: folder });
    try {
      const id = (await changing.call("POST", "/v1/actions", { body: ALLOWED })).body.id as string;
      write("deny");
      await changing.restart();
      assert.equal((await changing.call("POST", "/v1/actions", { body: ALLOWED })).body.status, "denied");
      const answer = await changing.call("POST", "/v1/replay", {
        key: changing.admin,
        body: { action_id: id, policy_set: "current" },
      });
      assert.deepEqual(
        [
          answer.body.equal,
          answer.body.replayed.decision.effect,
          answer.body.now.changed,
          answer.body.now.decision.effect,
        ],
        [true, "allow", true, "deny"],
      );
      assert.notEqual(answer.body.replayed.policy_set, answer.body.now.policy_set);
    } finally {
      await changing.close();
      rmSync(folder, { recursive: true });
    }
  });
});

describe("a tampered store refuses to start", () => {
  /** Changes a stopped copy of the store by raw SQL without triggers, as an operator with the file could. */
  async function tampered(sql: string[]): Promise<string> {
    const folder = temporaryFolder("assent-tamper-");
    for (const name of ["assent.db", "secret", "log-key.pem", "permit-key.pem"])
      copyFileSync(join(stopped, name), join(folder, name));
    const db = new DatabaseSync(join(folder, "assent.db"));
    for (const { name } of db.prepare("select name from sqlite_master where type = 'trigger'").all() as {
      name: string;
    }[])
      db.exec(`drop trigger "${name}"`);
    for (const statement of sql) db.exec(statement);
    db.close();
    return folder;
  }
  let stopped = "";
  before(async () => {
    stopped = temporaryFolder("assent-stopped-");
    const whole = await startService();
    for (let i = 0; i < 300; i++) await whole.call("POST", "/v1/actions", { body: ALLOWED });
    await whole.runtime.stop();
    mkdirSync(stopped, { recursive: true });
    for (const name of ["assent.db", "assent.db-wal", "secret", "log-key.pem", "permit-key.pem"]) {
      if (existsSync(join(whole.folder, name))) copyFileSync(join(whole.folder, name), join(stopped, name));
    }
    rmSync(whole.folder, { recursive: true });
  });
  after(() => rmSync(stopped, { recursive: true, force: true }));

  async function startOn(folder: string): Promise<string> {
    const process = await startProcess({ ASSENT_DATA: folder, ASSENT_POLICIES: FEW_POLICIES }).catch(
      (error: Error) => error,
    );
    try {
      if (process instanceof Error) return process.message;
      await stopProcess(process);
      return "it started";
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  const cases: [string, string[], RegExp][] = [
    [
      "an entry's bytes",
      [
        'update entries set bytes = cast(replace(cast(bytes as text), \'"effect":"allow"\', \'"effect":"deny"\') as blob) where seq = 10',
      ],
      /entry 10 was altered/,
    ],
    [
      "an entry's bytes and hash",
      ["update entries set bytes = x'7b7d', leaf_hash = zeroblob(32) where seq = 20"],
      /tile 0\/0 does not match the hashes below it/,
    ],
    [
      "an entry in the partial tile, with its hash",
      ["update entries set leaf_hash = zeroblob(32) where seq = 290"],
      /right edge|altered/,
    ],
    ["a removed entry", ["delete from entries where seq = 15"], /entry 15 is missing/],
    ["the last entry removed", ["delete from entries where seq = (select max(seq) from entries)"], /is missing/],
    ["a tile", ["update tiles set hashes = zeroblob(8192)"], /tile 0\/0/],
    ["a tile's root", ["update tiles set root = zeroblob(32)"], /tile 0\/0/],
    ["a tile's level", ["update tiles set level = 1"], /tile 0\/0 is missing/],
    ["a tile's index", ['update tiles set "index" = 1'], /tile 0\/0 is missing/],
    ["the head's root", ["update ledger_head set root = zeroblob(32)"], /root/],
    [
      "the head's policy set",
      [
        "insert into policy_sets select 'another', created_at, document from policy_sets limit 1",
        "update ledger_head set policy_set = 'another'",
      ],
      /policy set another differs from the one/,
    ],
    [
      "the head's policy set, to none",
      ["update ledger_head set policy_set = null"],
      /policy set \(none\) differs from the one/,
    ],
    [
      "a ledger cut back together with its head",
      ["delete from entries where seq >= 200", "update ledger_head set size = 200"],
      /behind the newest signed checkpoint|right edge/,
    ],
    ["the checkpoint", ["update checkpoint set note = replace(note, char(10) || '3', char(10) || '2')"], /checkpoint/],
  ];
  for (const [what, sql, words] of cases) {
    test(what, async () => {
      const said = await startOn(await tampered(sql));
      assert.match(said, words);
      assert.match(said, /does not start/);
      assert.ok(!said.includes("    at "), "an operator gets words, not a stack");
    });
  }

  test("an untouched copy starts, and another log key is rejected", async () => {
    assert.equal(await startOn(await tampered([])), "it started");
    const folder = await tampered([]);
    rmSync(join(folder, "log-key.pem"));
    assert.match(await startOn(folder), /belongs to the log with the key/);
  });
});

test("secrets are files of mode 0600, and the log contains no secret", () => {
  for (const name of ["secret", "log-key.pem", "permit-key.pem", "assent.db"])
    assert.equal(statSync(join(service.folder, name)).mode & 0o777, 0o600, name);
  const secret = readFileSync(join(service.folder, "secret"), "utf8").trim();
  const log = service.logged.join("\n");
  for (const value of [secret, service.admin, service.agent]) assert.ok(!log.includes(value));
});

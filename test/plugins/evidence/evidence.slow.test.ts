/**
 * `assent evidence`: the pack verifies offline, is the same each time, and any change of it is found.
 * @needs edits, questions, retention, stop, users
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { eraseActionParts } from "../../../plugins/retention/erase.ts";
import { CommandError, EXIT_CODES } from "../../../src/cli/command.ts";
import type { PackFile } from "../../../plugins/evidence/app/read-lines.ts";
import { verifyEntries } from "../../../plugins/evidence/app/verify-entries.ts";
import { type PackReport, verifyPack } from "../../../plugins/evidence/app/verify-pack.ts";
import { verifyProofText } from "../../../src/cli/verify.ts";
import { formatCosignature, formatCosignerVkey } from "../../../src/domain/cosignature.ts";
import { ENTRY_TYPES } from "../../../src/domain/entries.ts";
import { sha256Hex, utf8 } from "../../../src/domain/hash.ts";
import { needs } from "../../support/features.ts";
import { assentInProcess } from "../../support/cli.ts";
import { documentedCommands } from "../../support/documented.ts";
import { addUser, invite, startPeople } from "../../support/people.ts";
import { approve, makeKey, plainVotes, waitForSignature } from "../../support/service.ts";
import { signerOf } from "../../support/signer.ts";
import { signVotes } from "../../support/signed-votes.ts";

const POLICY = `
policy: refunds
rules:
  - name: signed
    tool: stripe
    effect: require_approval
    reason: Refunds need a person
    approval: { signature: passkey, preview: "Refund {params.amount} to {params.customer}" }
  - { name: asked, tool: mail, effect: require_approval, obligations: { set: { params.to: desk@example.com } } }
  - { name: twice, tool: pay, effect: require_approval, approval: { quorum: 2, editable: [params.amount] } }
  - { name: rest, tool: "*", effect: allow }
`;

type People = Awaited<ReturnType<typeof startPeople>>;
let service: People;
let packs = 0;
const ids = { signed: "", asked: "", erased: "", allowed: "", changed: "", kept: "" };
let agentKey = "";
let window: string[] = [];

before(async () => {
  service = await startPeople({ policy: POLICY, change: plainVotes });
  await addUser(service, { name: "ada" });
  ({ key: agentKey } = await makeKey(service, { name: "adas agent", owner: "ada", preset: "agent", agent_id: "bot" }));
  const key = agentKey;
  const grace = await invite(service, { name: "Grace", roles: ["approver"] });
  const desk = await makeKey(service, { name: "graces key", owner: "Grace", preset: "approver" });
  const submit = async (tool: string, params: object, more: object = {}): Promise<string> =>
    (
      await service.call("POST", "/v1/actions", {
        key,
        body: { agent_id: "bot", tool, operation: "run", params, ...more },
      })
    ).body.id;
  // Before the window: decided, and approved in it.
  ids.asked = await submit("mail", { to: "ben@example.com" });
  service.clock.now += 60_000;
  const from = new Date(Date.now() + service.clock.now - 1000).toISOString();
  ids.signed = await submit("stripe", { amount: 500, customer: "cus_1" }, { context: { ticket: "T-1" } });
  await grace.call("POST", `/v1/actions/${ids.signed}/questions`, { question: "Why so much?" });
  const vote = await signVotes(grace, [{ action_id: ids.signed, approve: true, reason: "Checked the ticket" }]);
  assert.equal(vote.status, 200, JSON.stringify(vote.body));
  await approve(service, ids.asked, desk.key);
  ids.allowed = await submit("search", { q: "shoes" }, { meta: { session: "s-1" } });
  await service.call("POST", `/v1/actions/${ids.allowed}/start`, { key, body: {} });
  await service.call("POST", `/v1/actions/${ids.allowed}/result`, { key, body: { success: true } });
  ids.erased = await submit("search", { q: "a secret" });
  await service.call("POST", `/v1/actions/${ids.erased}/start`, { key, body: {} });
  await service.call("POST", `/v1/actions/${ids.erased}/result`, { key, body: { success: true } });
  const trimmed = await submit("search", { q: "hats" });
  await service.call("POST", `/v1/actions/${trimmed}/start`, { key, body: {} });
  await service.call("POST", `/v1/actions/${trimmed}/result`, { key, body: { success: true } });
  await service.runtime.host.ledger.transact((tx) =>
    eraseActionParts(service.runtime.host, tx, [trimmed], "result", "the configuration keeps results for 1 days"),
  );
  ids.kept = await submit("search", { q: "coats" });
  await service.call("POST", `/v1/actions/${ids.kept}/start`, { key, body: {} });
  await service.call("POST", `/v1/actions/${ids.kept}/result`, { key, body: { success: true } });
  const erasure = { key: service.admin, body: { reason: "request 7" } };
  assert.equal((await service.call("POST", `/v1/actions/${ids.erased}/erase`, erasure)).status, 200);
  // Approved in the window, and changed after it.
  ids.changed = await submit("pay", { amount: 700 });
  const change = async (amount: number, by: string): Promise<void> => {
    const { body } = await service.call("GET", `/v1/actions/${ids.changed}`, { key: by });
    const edit = { token: body.approval_token, changes: { "params.amount": amount }, reason: "less" };
    const changed = await service.call("POST", `/v1/actions/${ids.changed}/edit`, { key: by, body: edit });
    assert.equal(changed.status, 200, JSON.stringify(changed.body));
  };
  await addUser(service, { name: "Ivy" });
  const ivy = await makeKey(service, { name: "ivys key", owner: "Ivy", preset: "approver" });
  await approve(service, ids.changed, desk.key);
  await service.call("POST", "/v1/stop", { key: service.admin, body: { reason: "drill", tool: "nothing" } });
  service.clock.now += 60_000;
  window = ["--from", from, "--to", new Date(Date.now() + service.clock.now - 1000).toISOString()];
  // After the window.
  await change(600, ivy.key);
  await submit("search", { q: "later" });
  await waitForSignature(service);
  writeFileSync(join(service.folder, "evidence.yaml"), `data: ${service.folder}\n`);
});
after(() => service.close());

async function write(...flags: string[]): Promise<{ folder: string; out: string; err: string; code: number | null }> {
  const folder = join(service.folder, `pack-${packs++}`);
  const config = flags.includes("--config") ? [] : ["--config", join(service.folder, "evidence.yaml")];
  return { folder, ...(await assentInProcess("evidence", ...window, "--out", folder, ...config, ...flags)) };
}

type Files = Map<string, Buffer>;

function read(folder: string): Files {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))] as const));
}

function verify(files: Files, pinned = "") {
  return verifyPack(
    new Map(
      [...files].map(([name, bytes]): [string, PackFile] => [
        name,
        {
          async *stream() {
            // In small pieces, so that lines are split between them.
            for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
          },
        },
      ]),
    ),
    pinned,
  );
}

/** Writes the digests again, as a forger would. */
function restate(files: Files): Files {
  const manifest = JSON.parse(String(files.get("manifest.json")));
  for (const file of manifest.files) {
    const bytes = files.get(file.name) as Buffer;
    Object.assign(file, { sha256: sha256Hex(bytes), bytes: bytes.length });
  }
  const text = `${JSON.stringify(manifest)}\n`;
  files.set("manifest.json", Buffer.from(text));
  files.set("manifest.sha256", Buffer.from(`${sha256Hex(utf8(text))}  manifest.json\n`));
  return files;
}

test("says who approved, on what grounds, and what they saw", async () => {
  const { folder, code, err } = await write();
  assert.equal(code, EXIT_CODES.ok, err);
  const report = await verify(read(folder));
  assert.deepEqual(report.faults, []);
  assert.equal(report.isWindowOpen, false);
  assert.deepEqual(report.counts, { ...report.counts, actions: 7, erased: 1, signedVotes: 1 });
  const vote = report.votes.find(({ action }) => action.id === ids.signed);
  assert.deepEqual(
    [vote?.name?.text, vote?.verdict, vote?.comment, vote?.isSigned, vote?.decision?.reason, vote?.decision?.rule],
    ["Grace", "approve", "Checked the ticket", true, "Refunds need a person", "signed"],
  );
  assert.deepEqual(vote?.seen, {
    preview: 'Refund 500 to "cus_1"',
    isPreviewMissing: false,
    params: { amount: 500, customer: "cus_1" },
    context: { ticket: "T-1" },
    questions: [{ question: "Why so much?", answer: null }],
    isQuestionErased: false,
  });
  const earlier = report.votes.find(({ action }) => action.id === ids.asked);
  assert.deepEqual([earlier?.isSigned, earlier?.seen?.params], [false, { to: "desk@example.com" }]);
  const { vkey } = report;
  assert.deepEqual((await verify(read(folder), vkey)).faults, []);
  assert.match((await verify(read(folder), "other+00000000+AAAA")).faults.join(), /is not a key of this log/);
});

test("a request that was changed after the window is the one that approvers saw in it", async () => {
  const { faults, votes } = await verify(read((await write()).folder));
  assert.deepEqual(faults, []);
  const vote = votes.find(({ action }) => action.id === ids.changed);
  assert.deepEqual([vote?.seen?.params, vote?.action.outcome], [{ amount: 700 }, "pending_approval"]);
});

test("has policies with their digests, people, controls and erased actions", async () => {
  const { folder } = await write();
  const files = read(folder);
  const action = String(files.get("actions.jsonl"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
    .find(({ id }) => id === ids.erased);
  assert.equal(action.request, null);
  assert.match(action.erased_at, /^20/);
  assert.ok(![...files.values()].some((bytes) => bytes.includes("a secret")));
  assert.match(String(files.get("people.csv")), /user,[^,]+,Grace,approver/);
  assert.match(
    String(files.get("approvals.csv")),
    /,approve,user:[^,]+,Grace,bot,stripe,run,refunds,signed,Refunds need a person,Checked the ticket,passkey,/,
  );
  const controls = JSON.parse(String(files.get("controls.json")));
  assert.deepEqual(
    [...new Set(controls.map(({ standard, compared_with: basis }: Record<string, string>) => `${standard}: ${basis}`))],
    [
      "SOC 2 (2017 Trust Services Criteria): summaries",
      "ISO/IEC 42001:2023: summaries",
      "OWASP AISVS 1.0: text",
      "EU AI Act (Regulation 2024/1689): summaries",
    ],
  );
  const known = new Set<string>([
    ...ENTRY_TYPES,
    "coverage:statement",
    "break_glass",
    "grant",
    "legal_hold",
    "plan",
    "stop",
    "throttle",
  ]);
  for (const { control, url, entries, files: named } of controls) {
    assert.match(url, /^https:\/\//, control);
    assert.deepEqual(
      entries.filter((type: string) => !known.has(type)),
      [],
      control,
    );
    assert.deepEqual(
      named.filter((name: string) => !files.has(name)),
      [],
      control,
    );
  }
  const stops = controls.find(({ control }: { control: string }) => control === "Article 14(4)(e)");
  assert.deepEqual([stops.entries, stops.count], [["stop"], 1]);
  assert.match(String(files.get("policies.jsonl")), /"name":"signed"/);
});

test("is the same byte for byte, also from a longer log with the same checkpoint", async () => {
  const first = await write();
  const second = await write();
  assert.deepEqual(read(second.folder), read(first.folder));
  // A later decision about an action of the window.
  const freeze = { policy: "freeze", rules: [{ name: "frozen", tool: "stripe", effect: "deny", reason: "Closed" }] };
  const added = await service.call("POST", "/v1/policies?activate=true", { key: service.admin, body: freeze });
  assert.equal(added.status, 201, JSON.stringify(added.body));
  await service.call("POST", `/v1/actions/${ids.signed}/start`, { key: agentKey, body: {} });
  assert.equal((await service.storage.action(ids.signed))?.reason, "Closed");
  await waitForSignature(service);
  const longer = await write("--checkpoint", join(first.folder, "checkpoint.txt"));
  assert.deepEqual(read(longer.folder), read(first.folder));
  const newest = await write();
  assert.notDeepEqual(read(newest.folder).get("checkpoint.txt"), read(first.folder).get("checkpoint.txt"));
  assert.deepEqual((await verify(read(newest.folder))).faults, []);
});

test("one altered byte in any file is found", async () => {
  const { folder } = await write();
  const files = read(folder);
  for (const [name, bytes] of files)
    for (const at of [0, bytes.length >> 1, bytes.length - 1]) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] as number) ^ 1;
      const { faults } = await verify(new Map([...files, [name, changed]]));
      assert.notDeepEqual(faults, [], `byte ${at} of ${name}`);
    }
});

test("a forgery that states its own digests is found", async () => {
  const { folder } = await write();
  const original = read(folder);
  const change = async (name: string, alter: (text: string) => string): Promise<string> => {
    const before = String(original.get(name));
    const altered = alter(before);
    assert.notEqual(altered, before, `${name} was not changed`);
    return (await verify(restate(new Map([...original, [name, Buffer.from(altered)]])))).faults.join("\n");
  };
  const lines = (alter: (lines: string[]) => string[]) => (text: string) =>
    `${alter(text.trimEnd().split("\n")).join("\n")}\n`;
  const isVote = (line: string): boolean => line.includes('"type":"approval"');
  const unsigned = /the entries are not the ones that were signed|lacks what is at/;
  assert.match(
    await change("entries.jsonl", (text) => text.replace("Checked the ticket", "Checked nothing")),
    unsigned,
  );
  assert.match(
    await change(
      "entries.jsonl",
      lines((all) => all.filter((line) => !isVote(line))),
    ),
    /lacks what is at/,
  );
  assert.match(
    await change("actions.jsonl", (text) => text.replace('"amount":500', '"amount":5')),
    /its request was changed/,
  );
  assert.match(
    await change(
      "actions.jsonl",
      lines((all) => all.slice(1)),
    ),
    /is missing/,
  );
  assert.match(await change("actions.jsonl", (text) => text.replace("Why so much?", "Fine?")), /question or an answer/);
  assert.match(
    await change("actions.jsonl", (text) => text.replace('"session":"s-1"', '"session":"s-2"')),
    /its metadata/,
  );
  assert.match(
    await change("actions.jsonl", (text) => text.replace('"success":true', '"success":false')),
    /its result/,
  );
  assert.match(
    await change("policies.jsonl", (text) => text.replace("require_approval", "allow")),
    /policy set .* was changed/,
  );
  assert.match(await change("policies.jsonl", () => ""), /policy set .* is missing/);
  const key = JSON.parse(String(original.get("manifest.json"))).vkey as string;
  const other = restate(new Map(original));
  other.set(
    "manifest.json",
    Buffer.from(String(other.get("manifest.json")).replace(key, key.replace(/^[^+]+/, "forged"))),
  );
  assert.notDeepEqual((await verify(restate(other))).faults, []);
  // A hash instead of an entry in the window hides the entry.
  const hidden = await change(
    "entries.jsonl",
    lines((all) => {
      const at = all.findIndex(isVote);
      const { seq } = JSON.parse(all[at] as string);
      const hash = sha256Hex(Buffer.concat([Buffer.of(0), Buffer.from(all[at] as string)]));
      return all.with(at, JSON.stringify({ hash, level: 0, start: seq }));
    }),
  );
  assert.match(hidden, /entry \d+ of the window is missing/);
});

test("a forged window, an invented policy set and contents that no entry commits to are found", async () => {
  const { folder } = await write();
  const original = read(folder);
  const linesOf = (name: string): string[] => String(original.get(name)).trimEnd().split("\n");
  const forge = async (name: string, lines: readonly string[], window: object = {}) => {
    const manifest = { ...JSON.parse(String(original.get("manifest.json"))), ...window };
    const files = new Map([...original, ["manifest.json", Buffer.from(JSON.stringify(manifest))] as const]);
    return verify(restate(files.set(name, Buffer.from(`${lines.join("\n")}\n`))));
  };
  const { first, end } = JSON.parse(String(original.get("manifest.json")));
  const hide = (line: string, seq: number, more: object = {}): string =>
    JSON.stringify({
      hash: sha256Hex(Buffer.concat([Buffer.of(0), Buffer.from(line)])),
      level: 0,
      start: seq,
      ...more,
    });
  const entries = linesOf("entries.jsonl");
  // A stop in the window and its end moved before it, as if it had happened after the window.
  const stop = entries.findIndex((line) => line.includes('"type":"stop"') && JSON.parse(line).seq === end - 1);
  const stopLine = entries[stop] as string;
  for (const more of [{}, { at: "2099-01-01T00:00:00.000Z" }]) {
    const { faults } = await forge("entries.jsonl", entries.with(stop, hide(stopLine, end - 1, more)), {
      end: end - 1,
    });
    assert.match(faults.join(), /does not show that the window ends before it/);
  }
  const boundary = JSON.stringify({ boundary: stopLine, start: end - 1 });
  const shorter = await forge("entries.jsonl", entries.with(stop, boundary), { end: end - 1 });
  assert.match(shorter.faults.join(), /does not show that the window ends before it/);
  const begin = entries.findIndex((line) => JSON.parse(line).seq === first);
  const later = entries.with(begin, JSON.stringify({ boundary: entries[begin], start: first }));
  const stream = async function* () {
    yield await Promise.resolve(Buffer.from(`${later.join("\n")}\n`));
  };
  const manifest = JSON.parse(String(original.get("manifest.json")));
  // Directly, because the entries after it also lack their decision.
  await assert.rejects(
    verifyEntries({ stream }, { ...manifest, first: first + 1 }, () => undefined),
    /does not show that the window begins after it/,
  );
  for (const window of [{ first: null }, { end: -1 }, { to: "2099" }])
    assert.match((await forge("entries.jsonl", entries, window)).faults.join(), /the manifest/);
  assert.match(
    (await forge("entries.jsonl", entries, { origin: "log.example.com/other" })).faults.join(),
    /the checkpoint is of the log/,
  );

  const document = { format: "invented", policies: [] };
  const invented = JSON.stringify({ digest: sha256Hex(utf8(JSON.stringify(document))), document, changes: [] });
  const sets = await forge("policies.jsonl", [...linesOf("policies.jsonl"), invented]);
  assert.match(sets.faults.join(), /no entry refers to the policy set/);

  const actions = linesOf("actions.jsonl");
  const alter = (id: string, change: object): string[] =>
    actions.map((line) => (line.includes(`"id":"${id}"`) ? JSON.stringify({ ...JSON.parse(line), ...change }) : line));
  const request = { agent_id: "bot", tool: "search", operation: "run", params: { q: "nothing bad" }, context: {} };
  for (const [change, message] of [
    [{ request }, /it was erased, and has contents/],
    [{ tool: "other" }, /its name was changed/],
    [{ erased_at: "2020-01-01T00:00:00.000Z" }, /the time of its erasure/],
  ] as const)
    assert.match((await forge("actions.jsonl", alter(ids.erased, change))).faults.join(), message);
  const trimmed = actions.map((line) => JSON.parse(line)).find((one) => one.request?.params.q === "hats");
  assert.match(
    (
      await forge("actions.jsonl", alter(trimmed.id, { result: { error: null, meta: {}, success: false } }))
    ).faults.join(),
    /its result was erased/,
  );
  const { faults } = await forge("actions.jsonl", alter(ids.asked, { effective: null }));
  assert.match(faults.join(), /its changed request is missing/);
});

test("contents that were erased and put back, doubled controls and a byte order mark are found", async () => {
  const before = read((await write()).folder);
  const { body } = await service.call("GET", `/v1/actions/${ids.kept}`, { key: service.admin });
  assert.equal(body.result.success, true);
  const opened = (files: Files): Record<string, Json>[] =>
    String(files.get("actions.jsonl"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
  const original = opened(before).find(({ id }) => id === ids.kept) ?? assert.fail();
  const putBack = async (files: Files, change: object): Promise<string> => {
    const lines = opened(files).map((action) =>
      JSON.stringify(action["id"] === ids.kept ? { ...action, ...change } : action),
    );
    const forged = new Map([...files, ["actions.jsonl", Buffer.from(`${lines.join("\n")}\n`)] as const]);
    return (await verify(restate(forged))).faults.join();
  };
  const { host } = service.runtime;
  await host.ledger.transact((tx) => eraseActionParts(host, tx, [ids.kept], "result", "results are kept for 1 day"));
  await waitForSignature(service);
  const partly = read((await write()).folder);
  assert.equal(await putBack(partly, {}), "");
  assert.match(await putBack(partly, { result: original["result"] }), /its result was erased, and the pack has it/);
  const erasure = { key: service.admin, body: { reason: "request 9" } };
  assert.equal((await service.call("POST", `/v1/actions/${ids.kept}/erase`, erasure)).status, 200);
  await waitForSignature(service);
  const erased = read((await write()).folder);
  assert.equal(await putBack(erased, {}), "");
  assert.match(await putBack(erased, { ...original, result: null }), /it was erased, and the pack does not say so/);

  const alter = (name: string, text: string) => verify(restate(new Map([...before, [name, Buffer.from(text)]])));
  const controls = String(before.get("controls.json"));
  const doubled = await alter("controls.json", controls.replaceAll('["stop"]', '["stop","stop"]'));
  assert.ok(doubled.controls.every(({ entries }) => new Set(entries).size === entries.length));
  const manifest = `\ufeff${String(before.get("manifest.json"))}`;
  const marked = new Map([...before, ["manifest.json", Buffer.from(manifest)] as const]);
  marked.set("manifest.sha256", Buffer.from(`${sha256Hex(utf8(manifest.slice(1)))}  manifest.json\n`));
  assert.match((await verify(marked)).faults.join(), /manifest.json was changed/);
});

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Yields copies of a JSON value, each with one value changed, one member removed, or one member added. */
function* mutate(value: Json): Generator<{ at: string; changed: Json }> {
  if (value !== null) yield { at: " null", changed: null };
  if (typeof value !== "object" || value === null) {
    const other = { string: `${String(value)}x`, number: Number(value) + 1, boolean: value !== true };
    yield { at: " changed", changed: other[typeof value as keyof typeof other] ?? "x" };
    return;
  }
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) {
      yield { at: `.${i} removed`, changed: value.toSpliced(i, 1) };
      for (const { at, changed } of mutate(item)) yield { at: `.${i}${at}`, changed: value.with(i, changed) };
    }
    if (value.length > 0) yield { at: " doubled", changed: [...value, value.at(-1) as Json] };
    return;
  }
  for (const [name, item] of Object.entries(value)) {
    const { [name]: _, ...rest } = value;
    yield { at: `.${name} removed`, changed: rest };
    for (const { at, changed } of mutate(item)) yield { at: `.${name}${at}`, changed: { ...value, [name]: changed } };
  }
  yield { at: " with a member", changed: { ...value, added: "x" } };
}

/** Returns what the page displays as checked. */
function displayed({
  manifest,
  counts,
  vkey,
  votes,
  policySets,
  byType,
  isWindowOpen,
  witnesses,
}: PackReport): unknown {
  return {
    window: [manifest?.origin, manifest?.from, manifest?.to],
    counts,
    vkey,
    isWindowOpen,
    witnesses: witnesses.filter(({ isKnown }) => isKnown),
    votes: votes.map((vote) => ({
      ...vote,
      name: null,
      decision: vote.decision?.isChecked === true ? vote.decision : null,
    })),
    policySets: policySets
      .map(({ digest, document }) => ({ digest, document }))
      .sort((a, b) => (a.digest < b.digest ? -1 : 1)),
    byType: [...byType].sort(),
  };
}

test("changing, removing or adding any displayed member is found, or the page marks the member as not checked", async () => {
  const { folder } = await write();
  const original = read(folder);
  const expected = displayed(await verify(original));
  const isDisplayedAlike = async (what: string, name: string, text: string): Promise<void> => {
    const files = new Map([...original, [name, Buffer.from(text)]]);
    const report = await verify(restate(files));
    if (report.faults.length === 0) assert.deepEqual(displayed(report), expected, `${what} is not found`);
  };
  for (const name of ["actions.jsonl", "policies.jsonl"]) {
    const lines = String(original.get(name)).trimEnd().split("\n");
    for (const [i, line] of lines.entries())
      for (const { at, changed } of mutate(JSON.parse(line) as Json))
        await isDisplayedAlike(`${name} ${i}${at}`, name, `${lines.with(i, JSON.stringify(changed)).join("\n")}\n`);
  }
  const {
    from,
    to,
    files: listed,
    ...manifest
  } = JSON.parse(String(original.get("manifest.json"))) as Record<string, Json>;
  for (const { at, changed } of mutate(manifest))
    await isDisplayedAlike(
      `manifest.json${at}`,
      "manifest.json",
      JSON.stringify({ ...(changed as object), from, to, files: listed }),
    );
  const note = String(original.get("checkpoint.txt"));
  for (const [i, line] of note.split("\n").entries())
    await isDisplayedAlike(`line ${i} of the checkpoint`, "checkpoint.txt", note.replace(line, `${line}x`));
  // Entries outside the window can be replaced by their hashes.
  const entries = String(original.get("entries.jsonl")).trimEnd().split("\n");
  for (const [i, line] of entries.entries()) {
    const { seq } = JSON.parse(line) as { seq?: number };
    if (seq === undefined) continue;
    const hash = sha256Hex(Buffer.concat([Buffer.of(0), Buffer.from(line)]));
    const hidden = entries.with(i, JSON.stringify({ hash, level: 0, start: seq }));
    await isDisplayedAlike(`the hidden entry ${seq}`, "entries.jsonl", `${hidden.join("\n")}\n`);
    const body = JSON.parse(line) as { comment?: string };
    const altered = entries.with(i, JSON.stringify({ ...body, comment: "x" }));
    await isDisplayedAlike(`the altered entry ${seq}`, "entries.jsonl", `${altered.join("\n")}\n`);
  }
});

test("assent verify finds any change of a member that it displays", needs("provenance"), async () => {
  const { body } = await service.call("GET", `/v1/actions/${ids.signed}`, { key: service.admin });
  const { body: proof } = await service.call("GET", `/v1/provenance/${body.decision_hash}/proof`, {
    key: service.admin,
  });
  const { vkey } = service.runtime.host.ledger;
  const expected = verifyProofText(JSON.stringify(proof), vkey, null);
  assert.equal(expected.request?.params["amount"], 500);
  for (const { at, changed } of mutate(proof as Json)) {
    let verified: typeof expected;
    try {
      verified = verifyProofText(JSON.stringify(changed), vkey, null);
    } catch (error) {
      assert.ok(error instanceof CommandError, `${at}: ${String(error)}`);
      continue;
    }
    // Without the request, the command displays none.
    assert.deepEqual({ ...verified, request: verified.request ?? expected.request }, expected, at);
  }
});

test(
  "has the newest checkpoint that a witness cosigned; another signature in its place is found",
  needs("stop"),
  async () => {
    const witness = signerOf("witness.example.com/w1", 40);
    const vkey = formatCosignerVkey(witness.name, witness.publicKey);
    const seconds = 1_790_000_000;
    const { note } = (await service.storage.checkpoint()) ?? assert.fail();
    const text = note.slice(0, note.indexOf("\n\n") + 1);
    const cosigned = note + formatCosignature(text, seconds, witness);
    await service.storage.write((tx) => tx.putMeta("cosigned_checkpoint", cosigned));
    await service.call("POST", "/v1/stop", { key: service.admin, body: { reason: "newer", tool: "nothing" } });
    await waitForSignature(service);
    const config = join(service.folder, "witness.yaml");
    writeFileSync(
      config,
      `data: ${service.folder}\nwitness: { witnesses: [{ url: "https://witness.example.com", vkey: "${vkey}" }] }\n`,
    );
    const { folder, code, err } = await write("--config", config);
    assert.equal(code, EXIT_CODES.ok, err);
    const files = read(folder);
    assert.equal(String(files.get("checkpoint.txt")), cosigned);
    const { faults, witnesses } = await verify(files);
    assert.deepEqual(faults, []);
    const at = new Date(seconds * 1000).toISOString();
    assert.deepEqual(witnesses, [{ name: witness.name, at, vkey, isKnown: false }]);
    const known = await verify(files, `${vkey} ${service.runtime.host.ledger.vkey}`);
    assert.deepEqual([known.faults, known.witnesses[0]?.isKnown, known.isVkeyKnown], [[], true, true]);
    assert.match((await verify(files, vkey.replace("w1", "w2"))).faults.join(), /nor of a witness that cosigned/);
    const forged = note + formatCosignature(text, seconds, { ...witness, sign: signerOf("other", 80).sign });
    const forgery = restate(new Map([...files, ["checkpoint.txt", Buffer.from(forged)]]));
    assert.match((await verify(forgery)).faults.join(), /a witness/);
    // Node and browsers accept this signature of a key of small order for every message.
    const nobody = { name: "nobody.example.com", publicKey: Uint8Array.of(1, ...new Uint8Array(31)) };
    const signature = Uint8Array.of(1, ...new Uint8Array(63));
    const invented = restate(
      new Map([
        ...files,
        ["checkpoint.txt", Buffer.from(note + formatCosignature(text, seconds, { ...nobody, sign: () => signature }))],
        [
          "manifest.json",
          Buffer.from(
            String(files.get("manifest.json")).replace(vkey, formatCosignerVkey(nobody.name, nobody.publicKey)),
          ),
        ],
      ]),
    );
    assert.match((await verify(invented)).faults.join(), /anyone can sign for its key/);
    // A witness that the operator does not name counts only if the reader knows it.
    const unnamed = read((await write()).folder);
    assert.deepEqual((await verify(unnamed)).witnesses, []);
    assert.deepEqual((await verify(unnamed, vkey)).witnesses, [{ name: witness.name, at, vkey, isKnown: true }]);
  },
);

test("a folder with files, a window that is not signed and times that are none are refused", async () => {
  const { folder } = await write();
  const again = await assentInProcess(
    "evidence",
    ...window,
    "--out",
    folder,
    "--config",
    join(service.folder, "evidence.yaml"),
  );
  assert.match(again.err, /is not empty; name another folder/);
  const old = join(service.folder, "old.txt");
  writeFileSync(old, String(read(folder).get("checkpoint.txt")).replace(/\n\d+\n/, "\n1\n"));
  assert.match((await write("--checkpoint", old)).err, /the checkpoint covers 1 entries, and the window ends at entry/);
  const erasure = { key: service.admin, body: { reason: "request 8" } };
  assert.equal((await service.call("POST", `/v1/actions/${ids.allowed}/erase`, erasure)).status, 200);
  assert.match((await write("--checkpoint", join(folder, "checkpoint.txt"))).err, /was erased in entry \d+, and the/);
  const wrong = await assentInProcess("evidence", "--from", "today", "--to", "2026-01-31", "--out", "x");
  assert.equal(wrong.code, EXIT_CODES.usage);
});

test("the commands of docs/evidence.md make the same pack twice", async () => {
  const [first, again] = ["documented", "documented-again"].map((name) => join(service.folder, name)) as [
    string,
    string,
  ];
  const commands = documentedCommands("evidence.md", "evidence", {
    "evidence-2026-q1": first,
    again,
    "evidence-2026-q1/checkpoint.txt": join(first, "checkpoint.txt"),
  });
  assert.equal(commands.length, 2);
  for (const command of commands) {
    const { out, code, err } = await assentInProcess(...command, "--config", join(service.folder, "evidence.yaml"));
    assert.equal(code, EXIT_CODES.ok, err);
    assert.match(out, /^\d+ entries and \d+ actions are in .*\ndigest of the pack: [0-9a-f]{64}\nopen verify.html/);
  }
  assert.deepEqual(read(again), read(first));
  assert.deepEqual((await verify(read(first))).faults, []);
});

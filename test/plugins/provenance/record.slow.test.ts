/**
 * docs/record.md: its examples are recomputed with SHA-256 and another library's JCS, its tables are compared with the
 * schemas, and the schemas with real entries.
 * @needs agents, authority, break-glass, grants, plans, questions, reviewers, retention, stop, sub-agents, suggestions, tasks, users
 */
import { listBuiltIn } from "../../../src/config/built-in-plugins.ts";
import type { Plugin } from "../../../src/plugin.ts";
import assert from "node:assert/strict";
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { TObject } from "@sinclair/typebox";
import canonicalize from "canonicalize";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { ENTRY_SCHEMAS, PluginEntrySchema } from "../../../plugins/actions/entry-schemas.ts";
import type { ActionRequest } from "../../../src/domain/actions.ts";
import { ENTRY_TYPES, encodeEntry, type EntryBody, type LogKeyEntry } from "../../../src/domain/entries.ts";
import { toHex } from "../../../src/domain/hash.ts";
import { appendLogKey } from "../../../src/domain/log-keys.ts";
import { policySetDigest } from "../../../src/domain/policy/compile/compile.ts";
import type { PolicySetDocument } from "../../../src/domain/policy/policy-types.ts";
import { computeActionDigest, commitDigest, encodeRequest } from "../../../src/domain/request.ts";
import { verifyEd25519 } from "../../../src/identity/vault.ts";
import { needs } from "../../support/features.ts";
import { fillStore } from "../../support/every-row.ts";
import { createResponseValidator } from "../../support/openapi.ts";
import { invite } from "../../support/people.ts";
import { ROOT } from "../../support/process.ts";
import { type Answer, makeKey, type Service } from "../../support/service.ts";

const PAGE = readFileSync(join(ROOT, "docs", "record.md"), "utf8");

function example(name: string): string {
  const [, text] = new RegExp(`<!-- example: ${name} -->\\s*\`\`\`[a-z]+\n([^]*?)\n\`\`\``).exec(PAGE) ?? [];
  assert.ok(text !== undefined, `the page has no example "${name}"`);
  return text;
}
// Each example is looked into freely.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
const json = (name: string): any => JSON.parse(example(name));
/** The digest in a row of a table. */
function shown(label: string): string {
  const row = PAGE.split("\n").find((line) => line.startsWith(`| ${label} |`) && /`[0-9a-f]{64}`/.test(line));
  return /`([0-9a-f]{64})`/.exec(row ?? "")?.[1] ?? assert.fail(`no digest of ${label}`);
}
const sha256 = (...parts: (string | Buffer)[]): string => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
};
const hex = (text: string): Buffer => Buffer.from(text, "hex");
const jcs = (value: unknown): string => canonicalize(value) ?? assert.fail("no JSON");

describe("docs/record.md", () => {
  const request = json("request") as ActionRequest;
  const salt = json("salt") as string;

  test("another library computes the same digests of a request, of commitments and of a policy set", () => {
    const { context: _, ...action } = request;
    const hash = sha256(jcs(request));
    const commitment = (value: unknown): string => sha256(hex(salt), hex(sha256(jcs(value))));
    for (const [label, digest, ours] of [
      ["`request_hash`", hash, encodeRequest(request).hash],
      ["`action_digest`", sha256(jcs(action)), computeActionDigest(request)],
      ["`commitment` of the request above", sha256(hex(salt), hex(hash)), commitDigest(salt, hash)],
      ["`result`", commitment(json("result")), commitDigest(salt, sha256(jcs(json("result"))))],
      ["`meta`", commitment(json("meta")), commitDigest(salt, sha256(jcs(json("meta"))))],
      ["`facts.past`", commitment(json("past")), commitDigest(salt, sha256(jcs(json("past"))))],
      ["`policy_set`", sha256(jcs(json("policy-set"))), policySetDigest(json("policy-set") as PolicySetDocument)],
    ] as const)
      assert.deepEqual([digest, ours], [shown(label), shown(label)], label);
  });

  test("another library computes the same other digests from the vectors", () => {
    const vectors = JSON.parse(readFileSync(join(ROOT, "docs", "vectors", "digests.json"), "utf8")) as {
      name: string;
      form: "text" | "json" | "salted json";
      input: unknown;
      salt?: string;
      digits?: number;
      digest: string;
    }[];
    for (const { name, form, input, salt = "", digits = 64, digest } of vectors) {
      const plain = sha256(form === "text" ? (input as string) : jcs(input));
      assert.equal((form === "salted json" ? sha256(hex(salt), hex(plain)) : plain).slice(0, digits), digest, name);
      assert.ok(PAGE.includes(`\`${name}\``) || PAGE.includes(`| \`${name}\` |`), `the page does not define ${name}`);
    }
  });

  test("another library computes the same leaf, root, checkpoint and tile", () => {
    const { seq, ...body } = json("entry") as EntryBody & { seq: number };
    const leaf = sha256(Buffer.of(0), jcs({ ...body, seq }));
    assert.deepEqual([leaf, toHex(encodeEntry(body, seq).leafHash)], [shown("leaf hash"), shown("leaf hash")]);
    assert.equal((body as { commitment: string }).commitment, shown("`commitment` of the request above"));
    const first = shown("leaf hash of entry 0");
    const root = sha256(Buffer.of(1), hex(first), hex(leaf));
    assert.equal(root, shown("root of size 2"));
    const [, size, base64] = example("checkpoint").split("\n");
    assert.deepEqual([size, Buffer.from(base64 ?? "", "base64").toString("hex")], ["2", root]);
    assert.deepEqual(example("tile").split("\n"), [first, leaf]);
  });

  test("both keys sign the entry of a key rotation, which Ed25519 alone verifies", () => {
    const entry = json("log-key") as LogKeyEntry & { seq: number };
    assert.equal(sha256(Buffer.of(0), jcs(entry)), shown("leaf hash of entry 2"));
    const split = entry.handover.indexOf("\n\n") + 1;
    const [text, lines] = [
      entry.handover.slice(0, split),
      entry.handover
        .slice(split + 1)
        .trimEnd()
        .split("\n"),
    ];
    assert.equal(text, `${example("checkpoint")}\nlog-key ${entry.previous} ${entry.vkey}\n`);
    for (const [i, vkey] of [entry.previous, entry.vkey].entries()) {
      const [name = "", id, encoded = ""] = vkey.split("+", 2).concat(vkey.split("+").slice(2).join("+"));
      const key = Buffer.from(encoded, "base64");
      assert.equal(sha256(name, Buffer.of(0x0a), key).slice(0, 8), id);
      const signature = Buffer.from(lines[i]?.split(" ")[2] ?? "", "base64");
      assert.equal(signature.subarray(0, 4).toString("hex"), id);
      const spki = Buffer.concat([hex("302a300506032b6570032100"), key.subarray(1)]);
      const publicKey = createPublicKey({ key: spki, format: "der", type: "spki" });
      assert.ok(verify(null, Buffer.from(text), publicKey, signature.subarray(4)), vkey);
    }
    const ours = appendLogKey({ first: entry.previous, changes: [] }, entry, verifyEd25519);
    assert.equal(ours.changes[0]?.vkey, entry.vkey);
  });

  test("the page lists every type of entry with every field and version, and no other", () => {
    const sections = PAGE.split(/^### /m).slice(1);
    assert.deepEqual(
      sections.map((section) => section.split("\n")[0]),
      [...ENTRY_TYPES, "Entries of plugins"],
    );
    for (const [at, schema] of [...Object.values(ENTRY_SCHEMAS), PluginEntrySchema].entries()) {
      const section = (sections[at] as string).split(/^## /m)[0] as string;
      const fields = [...section.matchAll(/^\| `([a-z_]+)` +\| /gm)].map(([, field]) => field);
      assert.deepEqual(fields, Object.keys(schema.properties), section.split("\n")[0]);
      if (schema !== PluginEntrySchema) assert.match(section, /^\| `v` +\| 1 /m);
    }
    for (const part of ["facts", "decision"]) {
      const { properties } = ENTRY_SCHEMAS.decision.properties[part] as TObject;
      for (const member of Object.keys(properties)) assert.ok(PAGE.includes(`\`${member}\``), `${part}.${member}`);
    }
  });
});

/** Schemas of the entries that features declare. */
const FEATURE_SCHEMAS: Record<string, TObject> = Object.assign(
  {},
  ...(await Promise.all(
    Object.values(listBuiltIn()).map(async (load) => ((await load()).default as Plugin).records ?? {}),
  )),
);

test("the schemas of the document accept every real entry, and each only its own type", needs("events"), async () => {
  const types = new Set<string>();
  await fillStore(
    (folder) => sqliteStorage({ path: join(folder, "assent.db") }),
    async (service) => {
      const body = { agent_id: "bot", tool: "pay", operation: "do", params: { amount: 1, customer: "c" } };
      const { id } = (await service.call("POST", "/v1/actions", { body })).body;
      assert.equal((await service.call("POST", `/v1/actions/${id}/permit`)).status, 200, "decided again");
      await recordPeople(service);
      if (Object.hasOwn(listBuiltIn(), "throttle")) await recordThrottling(service);
      await service.runtime.rotatePermitKey({ key: null, overlap: 60 });
      await service.runtime.rotateLogKey({ overlap: 60_000, again: false });
      const judge = createResponseValidator((await service.call("GET", "/openapi.json", { key: null })).body);
      const page = await service.call("GET", "/v1/events/page?after=-1&limit=1000", { key: service.admin });
      for (const { type, entry } of page.body.events) {
        types.add(type as string);
        if (type === "agent" && entry.change === "updated" && entry.agent.id === "bot")
          assert.equal(entry.agent.metadata, sha256(jcs({ team: "b" })));
        if (type === "api_key" && entry.change === "created" && entry.key.name === "admin")
          assert.equal(entry.key.hash, sha256(service.admin));
        const schemas: Record<string, TObject> = { ...ENTRY_SCHEMAS, ...FEATURE_SCHEMAS };
        const title = (type.includes(":") ? PluginEntrySchema : schemas[type])?.title as string;
        const faults = (value: unknown): string[] =>
          judge.valueFaults({ $ref: `#/components/schemas/${title}` }, value);
        assert.deepEqual(faults(entry), [], JSON.stringify(entry));
        assert.notDeepEqual(faults({ ...entry, unheard_of: 1 }), [], type);
      }
    },
  );
  const coreTypes = [...types].filter((type) => !type.includes(":"));
  assert.deepEqual(coreTypes.sort(), [...ENTRY_TYPES, ...Object.keys(FEATURE_SCHEMAS)].sort());
});

/** Records users, a delegation, and an emergency approval with its review. */
async function recordPeople(service: Service): Promise<void> {
  const ann = await invite(service, { name: "Ann", roles: ["approver"] });
  const bo = await invite(service, { name: "Bo", roles: ["break_glass"] });
  const rex = await invite(service, { name: "Rex", roles: ["approver"] });
  const until = new Date(service.runtime.host.clock() + 86_400_000).toISOString();
  const delegated = await rex.call("POST", `/v1/users/${rex.id}/delegations`, { to: ann.id, until });
  assert.equal(delegated.status, 201, JSON.stringify(delegated.body));
  const body = { agent_id: "bot", tool: "two", operation: "do", params: { amount: 2, customer: "d" } };
  const { id } = (await service.call("POST", "/v1/actions", { body })).body;
  const { approval_token: token } = (await bo.call("GET", `/v1/actions/${id}`)).body;
  const vote = { token, approve: true, break_glass: true, reason: "the shop is down" };
  const approved = await bo.call("POST", `/v1/actions/${id}/approval`, vote);
  assert.equal(approved.body.status, "approved", JSON.stringify(approved.body));
  const open = await service.call("GET", "/v1/break-glass?status=open", { key: service.admin });
  const [{ id: opened }] = open.body.break_glass;
  assert.equal((await rex.call("POST", `/v1/break-glass/${opened}/review`, { comment: "it was" })).status, 200);
}

/** Records a key that requests approval 60 times in an hour, after one request in each of three hours. */
async function recordThrottling(service: Service): Promise<void> {
  const { key } = await makeKey(service, { name: "many", preset: "agent", agent_id: "many" });
  let n = 0;
  const submit = (): Promise<Answer> =>
    service.call("POST", "/v1/actions", {
      key,
      body: { agent_id: "many", tool: "two", operation: "do", params: { amount: 2, customer: `c${++n}` } },
    });
  for (const requests of [1, 1, 1, 60]) {
    service.clock.now += 3_600_000 - ((Date.now() + service.clock.now) % 3_600_000);
    const answers = await Promise.all(Array.from({ length: requests }, submit));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([202]));
  }
  assert.equal((await submit()).body.code, "AGENT_THROTTLED");
}

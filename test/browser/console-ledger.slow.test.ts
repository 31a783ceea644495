/**
 * The ledger in the console: verified with a pinned key, followed as it grows; and the system's state.
 * @needs console, evidence
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, describe, it } from "node:test";
import { renderVerificationPage } from "../../plugins/evidence/page.ts";
import { createPackWriter } from "../../plugins/evidence/pack-writer.ts";
import { writePack } from "../../plugins/evidence/write-pack.ts";
import { definePlugin } from "../../src/plugin.ts";
import { serve } from "../../src/serve/index.ts";
import { until } from "../support/wait.ts";
import { withoutBrowser } from "../support/browser.ts";
import { startConsole, type Console } from "../support/console.ts";
import { needs } from "../support/features.ts";
import { ALLOWED, ASKED, DENIED, waitForSignature } from "../support/service.ts";
import { signerOf } from "../support/signer.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Issues credentials for refunds. */
const VAULT = definePlugin({
  name: "vault",
  setup: (host) => ({
    credentialIssuers: [
      {
        name: "vault",
        tools: ["stripe"],
        operations: ["*"],
        issue: async ({ id }) => ({
          secret: { password: `secret of ${id}` },
          expires_at: host.clock() + 600_000,
          revocation: id,
        }),
        revoke: async () => undefined,
      },
    ],
  }),
});

describe("the ledger in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  let hash: string;
  let vkey: string;
  before(async () => {
    console_ = await startConsole({ plugins: [{ plugin: VAULT, options: {}, origin: "vault" }] });
    for (const body of [ALLOWED, DENIED, ASKED])
      hash = (await console_.service.call("POST", "/v1/actions", { body })).body.decision_hash;
    vkey = (await console_.service.call("GET", "/v1/provenance/keys", { key: console_.service.admin })).body.keys[0]
      .vkey;
    await waitForSignature(console_.service);
  });
  after(() => console_.close());

  it("verifies the checkpoint with the pinned key, and at the next visit that the log extends it", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/provenance");
    await page.getByText("no key is pinned in this browser").waitFor();
    await page.getByLabel("Verifier key").fill("nonsense");
    await page.getByRole("button", { name: "Pin this key" }).click();
    await page.getByText(/is not a verifier key/).waitFor();
    await page.getByLabel("Verifier key").fill(vkey);
    await page.getByRole("button", { name: "Pin this key" }).click();
    await page.getByText("for the first time").waitFor();
    await console_.service.call("POST", "/v1/actions", { body: ALLOWED });
    await waitForSignature(console_.service);
    await page.getByRole("button", { name: "Check again" }).click();
    await page.getByText(/The log continues from the \d+ entries that this browser has seen/).waitFor();
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("warns if the log differs from the one that this browser saw before", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/system");
    const { body } = await console_.service.call("GET", "/v1/provenance/checkpoint", { key: console_.service.admin });
    const size = Number((body as string).split("\n")[1]);
    await page.evaluate(
      ([key, n]) => {
        localStorage.setItem("assent.pinned", key as string);
        localStorage.setItem(
          "assent.checkpoint",
          JSON.stringify({ vkey: key, size: (n as number) - 1, root: "ab".repeat(32) }),
        );
      },
      [vkey, size] as const,
    );
    await page.getByRole("link", { name: "Provenance" }).click();
    await page.getByText("earlier entries were changed").waitFor();
    await page.evaluate(
      (key) =>
        localStorage.setItem("assent.checkpoint", JSON.stringify({ vkey: key, size: 10_000, root: "ab".repeat(32) })),
      vkey,
    );
    await page.getByRole("button", { name: "Check again" }).click();
    await page.getByText("The log has shrunk").waitFor();
    const impostor = signerOf(vkey.split("+")[0] as string);
    await page.evaluate((key) => localStorage.setItem("assent.pinned", key), impostor.vkey);
    await page.reload();
    await page.getByText("Not signed by the pinned key").waitFor();
    await page.getByText("The service reports a different key").waitFor();
  });

  it("verifies a proof from the service and from a file, and not one of another entry", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, `#/provenance`);
    await page.evaluate((key) => localStorage.setItem("assent.pinned", key), vkey);
    await page.reload();
    await page.getByLabel("Leaf hash").fill(hash);
    await page.getByRole("button", { name: "Verify in this browser" }).click();
    await page.getByText("Verified in this browser.", { exact: true }).waitFor();
    const file = (
      await console_.service.call("GET", `/v1/provenance/${hash}/proof.tlog-proof`, { key: console_.service.admin })
    ).body as string;
    const give = (text: string) =>
      page
        .getByLabel(/Proof file/)
        .setInputFiles({ name: "decision.tlog-proof", mimeType: "text/plain", buffer: Buffer.from(text) });
    await page.getByLabel("Leaf hash").fill("ab".repeat(32));
    await give(file);
    await page.getByRole("button", { name: "Verify in this browser" }).click();
    await page.getByText("does not lead from this entry").waitFor();
    await page.getByLabel("Leaf hash").fill(hash);
    await page.getByRole("button", { name: "Verify in this browser" }).click();
    await page.getByText("Verified in this browser.", { exact: true }).waitFor();
    await give(file.replace(/\n(\d+)\n/, (_, n: string) => `\n${Number(n) + 1}\n`));
    await page.getByRole("button", { name: "Verify in this browser" }).click();
    await page.getByText(/does not match the checkpoint/).waitFor();
    await page.getByLabel("Leaf hash").fill("abc");
    await page.getByRole("button", { name: "Verify in this browser" }).click();
    await page.getByText("a leaf hash has 64 hex digits").waitFor();
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("verifies an action's decision where it is shown, and saves its proof", async () => {
    const { page } = await console_.visit(console_.service.admin, `#/provenance/${hash}`);
    await page.evaluate((key) => localStorage.setItem("assent.pinned", key), vkey);
    await page.reload();
    await page.getByRole("button", { name: "Verify in this browser" }).click();
    await page.getByText("Verified in this browser.", { exact: true }).waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save the proof" }).click(),
    ]);
    assert.equal(download.suggestedFilename(), `${hash.slice(0, 16)}.tlog-proof`);
    assert.match(
      await download.createReadStream().then(async (stream) => (await stream.toArray()).join("")),
      /^c2sp\.org\/tlog-proof@v1\n/,
    );
  });

  it("follows events by filter, and misses none while the service is away", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/events?type=decision&agent_id=tail-bot");
    await page.getByText("Waiting for events.").waitFor();
    const submit = (operation: string, agent_id = "tail-bot") =>
      console_.service.call("POST", "/v1/actions", { body: { ...ALLOWED, agent_id, operation } });
    await submit("before");
    await submit("unseen", "other-bot");
    await page.getByText("stripe before").waitFor();
    const { port } = new URL(console_.server.url);
    await console_.server.stop(100);
    await page.getByText(/reconnecting/).waitFor();
    await submit("meanwhile one");
    await submit("meanwhile two");
    console_.server = await serve((request, info) => console_.service.runtime.fetch(request, info), {
      host: "127.0.0.1",
      port: Number(port),
    });
    await page.getByText("stripe meanwhile two").waitFor();
    await page.locator(".stream-status.live").waitFor();
    await submit("after");
    await page.getByText("stripe after").waitFor();
    const seen = (await page.locator(".events li").allTextContents()).map((text) => /stripe (.*) by/.exec(text)?.[1]);
    assert.deepEqual(seen, ["after", "meanwhile two", "meanwhile one", "before"]);
    await page.getByRole("button", { name: "Pause" }).click();
    await submit("paused");
    await page.getByRole("button", { name: "Resume (1 new)" }).click();
    await page.getByText("stripe paused").waitFor();
  });

  it("draws at most once in 500 ms, however many events come", async () => {
    const page = await console_.browser.newPage();
    await page.clock.install();
    await page.goto(`${console_.server.url}/#/events?type=decision&agent_id=burst-bot`);
    await page.getByLabel("API key").fill(console_.service.admin);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".stream-status.live").waitFor();
    await page.clock.pauseAt(new Date(Date.now() + 60_000));
    await page.evaluate(() => {
      const list = document.querySelector("ol.events") as Element;
      const counted = globalThis as unknown as { draws: number };
      counted.draws = 0;
      new MutationObserver(() => counted.draws++).observe(list, { childList: true });
    });
    // The page's clock stands still, except here.
    let elapsed = 0;
    const advance = async (ms: number) => {
      await page.clock.runFor(ms);
      elapsed += ms;
    };
    for (let i = 0; i < 40; i++) {
      await console_.service.call("POST", "/v1/actions", {
        body: { ...ALLOWED, agent_id: "burst-bot", operation: `burst ${i}` },
      });
      await advance(25);
    }
    let listed = 0;
    await until(
      () => `all events are listed, not only ${listed}`,
      async () => {
        await advance(100);
        listed = await page.locator("ol.events > li").count();
        return listed === 40;
      },
    );
    const draws = await page.evaluate(() => (globalThis as unknown as { draws: number }).draws);
    assert.ok(draws <= elapsed / 500 + 1, `${draws} draws in ${elapsed} ms`);
    await page.close();
  });

  it("reads from the beginning when asked, without a gap in the newest hundred", async () => {
    for (let i = 0; i < 200; i += 20)
      await Promise.all(
        Array.from({ length: 20 }, () => console_.service.call("POST", "/v1/actions", { body: ALLOWED })),
      );
    const { size } = await console_.service.storage.head();
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/events");
    await page.getByLabel("From").selectOption("-1");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByRole("link", { name: `#${size - 1}`, exact: true }).waitFor();
    const seen = await page
      .locator(".events li")
      .evaluateAll((items) => items.map((item) => Number(/#(\d+)/.exec(item.textContent ?? "")?.[1])));
    assert.deepEqual(
      seen,
      Array.from({ length: 100 }, (_, i) => size - 1 - i),
    );
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("makes an evidence pack with a progress bar, which verifies after it was unpacked", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/evidence");
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Make the pack" }).click(),
    ]);
    await page.getByText("The pack is saved.").waitFor();
    const digest = await page.locator(".facts code.hash").textContent();
    const folder = temporaryFolder("assent-evidence-");
    const file = join(folder, "pack.zip");
    await saved.saveAs(file);
    for (const [name, content] of readStoredZip(readFileSync(file))) writeFileSync(join(folder, name), content);
    rmSync(file);
    const context = await console_.browser.newContext({ offline: true });
    const verifier = await context.newPage();
    await verifier.goto(pathToFileURL(join(folder, "verify.html")).href);
    await verifier.getByLabel("Files of the pack").setInputFiles(readdirSync(folder).map((name) => join(folder, name)));
    await verifier.getByRole("heading", { name: "Verified", exact: true }).waitFor();
    await verifier
      .getByText(digest ?? "no digest")
      .first()
      .waitFor();
    await context.close();
    await page.getByLabel("Until").fill("2020-01-01");
    await page.getByRole("button", { name: "Make the pack" }).click();
    await page.getByRole("alert").getByText("must be after").first().waitFor();
    assert.deepEqual([complaints.filter((line) => !/422/.test(line)), strayed], [[], []]);
    await page.close();
  });

  it("an evidence pack verifies in a browser without a network, and not with one altered byte", async () => {
    const { service, browser } = console_;
    const folder = join(service.folder, "pack");
    const { digest } = await writePack(service.storage, {
      writer: createPackWriter(folder),
      from: 0,
      to: Date.now() + 3_600_000,
      checkpoint: null,
      witnesses: [],
      page: renderVerificationPage(),
      progress: () => undefined,
    });
    const context = await browser.newContext({ offline: true });
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    await page.goto(pathToFileURL(join(folder, "verify.html")).href);
    const files = readdirSync(folder).map((name) => join(folder, name));
    const selectFiles = async (): Promise<void> => {
      const chooser = page.waitForEvent("filechooser");
      await page.getByLabel("Files of the pack").click();
      await (await chooser).setFiles(files);
    };
    await selectFiles();
    await page.getByRole("heading", { name: "Verified", exact: true }).waitFor();
    await page.getByText(digest).waitFor();
    await page.getByText("Article 14(4)(e)").waitFor();
    await page.getByText("compared with public summaries only").first().waitFor();
    const entries = join(folder, "entries.jsonl");
    const bytes = readFileSync(entries);
    const at = bytes.length >> 1;
    bytes[at] = (bytes[at] as number) ^ 1;
    writeFileSync(entries, bytes);
    await selectFiles();
    await page.getByRole("heading", { name: "Not verified" }).waitFor();
    await page.getByText("entries.jsonl was changed").waitFor();
    assert.deepEqual(complaints, []);
    await context.close();
  });

  it("lists coverage statements, and warns of effects without a decision", async () => {
    const { service } = console_;
    const { page } = await console_.visit(service.admin, "#/coverage");
    await page.getByText("No log has been compared with the ledger").waitFor();
    const counts = { total: 0, matched: 0, missing: 0, unknown: 0 };
    const body = {
      source: "trail",
      format: "aws-cloudtrail",
      from: "2026-01-31T00:00:00.000Z",
      to: "2026-02-01T00:00:00.000Z",
      tolerance_seconds: 300,
      operations: [{ tool: "s3", operation: "put_object" }],
      actors: null,
      files: [{ name: "trail.json", sha256: "ab".repeat(32), bytes: 10, records: 1 }],
      cannot_see: ["Data events."],
      effects: { total: 1, matched: 0, unmatched: 1, unknown: 0 },
      actions: counts,
      skipped: { duplicates: 0, outside: 0, unmapped: 0, no_effect: 0, other_actors: 0 },
      unmatched: [
        {
          id: "e1",
          at: "2026-01-31T04:00:00.000Z",
          event: "s3.amazonaws.com/<b>PutObject</b>",
          actor: "shell",
          action_id: null,
          reason: "no_action",
        },
      ],
      missing: [],
    };
    const posted = await service.call("POST", "/v1/coverage", { key: service.admin, body });
    assert.equal(posted.status, 201, JSON.stringify(posted.body));
    await page.reload();
    await page.getByText("The newest comparison of trail has effects that no action explains").waitFor();
    await page.getByText("Details", { exact: true }).click();
    await page.getByText("s3.amazonaws.com/<b>PutObject</b>").waitFor();
    await page.getByText("Data events.").waitFor();
    await page.getByRole("link", { name: `entry ${posted.body.seq}` }).click();
    await page.getByText("coverage:statement").first().waitFor();
    const empty = { ...body, effects: { total: 0, matched: 0, unmatched: 0, unknown: 0 }, unmatched: [] };
    const later = await service.call("POST", "/v1/coverage", { key: service.admin, body: empty });
    assert.equal(later.status, 201, JSON.stringify(later.body));
    await page.goBack();
    await page.getByText("The newest comparison of trail found no effect to compare").waitFor();
  });

  it("says whether the service can decide, and what it is made of", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/system");
    await page.getByText("Ready: actions are decided.").waitFor();
    const { body } = await console_.service.call("GET", "/readyz", { key: null });
    await page.getByText(body.policies.policy_set).waitFor();
    for (const name of ["storage", "ledger", "policies"]) await page.getByRole("cell", { name, exact: true }).waitFor();
    await page.getByText("0.1.0").waitFor();
    await page.getByText(/\d+ from policy-files/).waitFor();
    assert.equal(await page.getByRole("heading", { name: "Legal holds" }).count(), 0);
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it(
    "lists legal holds until they are released, and credentials with their ends",
    needs("credentials", "retention"),
    async () => {
      const { service } = console_;
      const call = (path: string, body: object) => service.call("POST", path, { key: service.admin, body });
      const { body: hold } = await call("/v1/holds", { agent: "support-bot", reason: "<b>case</b> 4711" });
      const { body: action } = await call("/v1/actions", ALLOWED);
      assert.equal((await call(`/v1/actions/${action.id}/start`, {})).status, 200);
      assert.equal((await call(`/v1/actions/${action.id}/result`, { success: true })).status, 200);
      await until("the credential has ended", async () =>
        (await service.storage.entriesOfAction(action.id)).some(({ type }) => type === "actions:credential_ended"),
      );
      const { page, complaints, strayed } = await console_.visit(service.admin, "#/system");
      const row = page.getByRole("region", { name: "Active legal holds" }).getByRole("row", { name: hold.id });
      await row.getByText("agent support-bot").waitFor();
      await row.getByText("<b>case</b> 4711").waitFor();
      const credentials = page.getByRole("region", { name: "Credentials for actions" });
      await credentials.getByText("credential issued (vault, valid until").waitFor();
      await credentials.getByText("credential ended (vault: the action has ended, revoked) for").waitFor();
      assert.equal((await call(`/v1/holds/${hold.id}/release`, { reason: "settled" })).status, 200);
      await page.reload();
      await page.getByText("Ready: actions are decided.").waitFor();
      await credentials.getByText("credential issued (vault").waitFor();
      assert.equal(await page.getByRole("heading", { name: "Legal holds" }).count(), 0);
      const { key } = (await call("/v1/api-keys", { name: "watcher", scopes: ["metrics:read"] })).body;
      const other = await console_.visit(key, "#/system");
      await other.page.getByText("Ready: actions are decided.").waitFor();
      await other.page.getByText("The timeline needs the scope events:read.").first().waitFor();
      assert.deepEqual([complaints, strayed, other.complaints], [[], [], []]);
    },
  );
});

describe("the system page", { skip: withoutBrowser }, () => {
  it("says where a policy source has a fault, and that its last valid policies stay active", async () => {
    const folder = temporaryFolder("assent-console-");
    writeFileSync(join(folder, "good.yaml"), "policy: good\nrules:\n  - { name: all, effect: allow }\n");
    const console_ = await startConsole({ policies: folder });
    try {
      const { page } = await console_.visit(console_.service.admin, "#/system");
      await page.getByText("1 from policy-files").waitFor();
      writeFileSync(join(folder, "good.yaml"), "policy: good\nrules:\n  - name: all\n    effect: alow\n");
      const notice = page
        .getByRole("status")
        .filter({ hasText: "The last valid policies of the source, if any, stay active" });
      await notice.waitFor();
      assert.match((await notice.getByRole("listitem").textContent()) ?? "", /^\s*\S*good\.yaml, line 4\s*$/);
      await page.getByText("Ready: actions are decided.").waitFor();
      await page
        .getByRole("row", { name: /^policy-files/ })
        .getByText("rejected")
        .waitFor();
      await page.getByRole("link", { name: "Policies" }).click();
      await page.getByRole("heading", { name: "Policies", exact: true }).waitFor();
      assert.match((await notice.getByRole("listitem").textContent()) ?? "", /good\.yaml, line 4/);
    } finally {
      await console_.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("the ledger in a browser, after its key was changed", { skip: withoutBrowser }, () => {
  it("offers the key that followed the pinned one, and verifies under it once that is pinned", async () => {
    const console_ = await startConsole();
    try {
      const { service } = console_;
      await service.call("POST", "/v1/actions", { body: ALLOWED });
      const { vkey, previous } = await service.runtime.rotateLogKey({ overlap: 60_000, again: false });
      await waitForSignature(service);
      const { page, complaints } = await console_.visit(service.admin, "#/system");
      await page.evaluate((key) => localStorage.setItem("assent.pinned", key), previous);
      await page.getByRole("link", { name: "Provenance" }).click();
      await page.getByText("the pinned key signed this change").waitFor();
      await page.getByRole("button", { name: "Pin the new key" }).click();
      await page.getByText("the pinned key signed this change").waitFor({ state: "detached" });
      assert.equal(await page.evaluate(() => localStorage.getItem("assent.pinned")), vkey);
      await page.getByText(/for the first time|The log continues from/).waitFor();
      assert.deepEqual(complaints, []);
    } finally {
      await console_.close();
    }
  });
});

/** Returns the files of an archive without compression, from its central directory. */
function readStoredZip(archive: Buffer): [name: string, content: Buffer][] {
  const end = archive.lastIndexOf("PK\x05\x06");
  const files: [string, Buffer][] = [];
  for (let at = archive.readUInt32LE(end + 16); at < end && archive.readUInt32LE(at) === 0x0201_4b50;) {
    const [size, length, from] = [
      archive.readUInt32LE(at + 24),
      archive.readUInt16LE(at + 28),
      archive.readUInt32LE(at + 42),
    ];
    const start = from + 30 + archive.readUInt16LE(from + 26) + archive.readUInt16LE(from + 28);
    files.push([archive.toString("utf8", at + 46, at + 46 + length), archive.subarray(start, start + size)]);
    at += 46 + length;
  }
  return files;
}

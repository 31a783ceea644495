/** The newest signed checkpoint is posted to receivers. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { it } from "node:test";
import { openCheckpoint } from "../../../src/domain/checkpoint.ts";
import { createPostedCheckpoints } from "../../../plugins/witness/posted-checkpoints.ts";
import { memoryStorage } from "../../../src/testing/index.ts";
import { entry, openLedgerOn, vault } from "../../support/ledger.ts";

it("each receiver gets checkpoints newer than its last; an unreachable one delays no other and gets the next", async () => {
  const storage = memoryStorage();
  await storage.open();
  const ledger = await openLedgerOn(storage, {});
  const bodies: { path: string; size: number; note: string; origin: string }[] = [];
  let away = true;
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => (text += String(chunk)));
    request.on("end", () => {
      if (request.url === "/moved") return response.writeHead(307, { Location: "/elsewhere" }).end();
      if (request.url === "/away" && away) return response.writeHead(503).end();
      bodies.push({ path: request.url ?? "", ...(JSON.parse(text) as { size: number; note: string; origin: string }) });
      return response.writeHead(204).end();
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const at = (path: string): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
  const warnings: string[] = [];
  const duty = { held: true, isLeader: () => Promise.resolve(duty.held), release: () => Promise.resolve() };
  const posted = createPostedCheckpoints({
    urls: [at("/here"), at("/away"), at("/moved")],
    ledger,
    lease: duty,
    everyMs: 60_000,
    log: { warn: (message, fields) => warnings.push(`${message} ${JSON.stringify(fields)}`) },
  });
  const sizes = (path: string): number[] => bodies.filter((body) => body.path === path).map(({ size }) => size);
  try {
    await posted.round();
    assert.deepEqual(bodies, [], "nothing is signed yet that says anything");
    await ledger.transact((tx) => Promise.resolve(tx.record(entry(0))));
    for (let i = 0; i < 3; i++) await posted.round();
    assert.deepEqual([sizes("/here"), sizes("/away"), sizes("/elsewhere")], [[1], [], []]);
    assert.equal(warnings.length, 2, "one for each place, however often it was met");
    assert.ok(!warnings.some((line) => line.includes("/away")), "what stands behind the host may be a secret");
    away = false;
    await ledger.transact((tx) => Promise.resolve(tx.record(entry(1))));
    duty.held = false;
    await posted.round();
    assert.deepEqual(sizes("/here"), [1], "another process does it");
    duty.held = true;
    await posted.round();
    assert.deepEqual([sizes("/here"), sizes("/away")], [[1, 2], [2]]);
    for (const { note, size, origin } of bodies) {
      assert.equal(openCheckpoint(note, ledger.vkey, (...args) => vault.verify(...args)).size, size);
      assert.equal(origin, ledger.origin);
    }
  } finally {
    await posted.stop();
    server.close();
    server.closeAllConnections();
    await ledger.close();
    await storage.close();
  }
});

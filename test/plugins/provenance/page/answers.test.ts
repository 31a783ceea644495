/**
 * The browser's verifier with responses of a real service: it follows pinned keys and opens commitments.
 * @needs provenance
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { needs } from "../../../support/features.ts";
import { openCheckpointWithPin, verifyProofResponse, verifyProof } from "../../../../plugins/provenance/page/verify.ts";
import { fromHex } from "../../../../src/domain/hash.ts";
import { ALLOWED, startService, type Service } from "../../../support/service.ts";
import { signerOf } from "../../../support/signer.ts";

type Answer = Parameters<typeof verifyProofResponse>[0] & {
  log_keys: { leaf: string; index: number; path: string[] }[];
};

describe("the browser's verifier", () => {
  let service: Service;
  let [old, vkey, hash] = ["", "", ""];
  let proof: Answer;
  before(async () => {
    service = await startService();
    hash = (await service.call("POST", "/v1/actions", { body: ALLOWED })).body.decision_hash;
    ({ vkey, previous: old } = await service.runtime.rotateLogKey({ overlap: 0, again: false }));
    proof = (await get(`/v1/provenance/${hash}/proof`)) as Answer;
  });
  after(() => service.close());
  const get = async (path: string): Promise<unknown> => (await service.call("GET", path, { key: service.admin })).body;
  const why = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => "verified",
      (error: Error) => error.message,
    );

  it(
    "follows the pinned key to its successor, in a response, a file and the list of keys",
    needs("provenance"),
    async () => {
      const text = (await get(`/v1/provenance/${hash}/proof.tlog-proof`)) as string;
      const keys = (await get("/v1/provenance/keys")) as { checkpoint: string; log_keys: Answer["log_keys"] };
      for (const pin of [old, vkey]) {
        assert.equal((await verifyProofResponse(proof, hash, pin)).vkey, vkey);
        assert.equal((await verifyProof(text, fromHex(hash), pin)).vkey, vkey);
        assert.equal((await openCheckpointWithPin(keys.checkpoint, pin, keys.log_keys)).vkey, vkey);
      }
      const foreign = signerOf(old.split("+")[0] as string, 9).vkey;
      assert.match(await why(verifyProofResponse(proof, hash, foreign)), /not signed by the pinned key/);
      assert.match(
        await why(verifyProofResponse({ ...proof, log_keys: [] }, hash, old)),
        /not signed by the pinned key/,
      );
    },
  );

  it("follows no entry that the pinned key did not sign", async () => {
    const thief = signerOf(old.split("+")[0] as string, 9);
    const [step] = proof.log_keys;
    assert.ok(step !== undefined);
    const entry = JSON.parse(Buffer.from(step.leaf, "base64").toString()) as Record<string, unknown>;
    const lie = (change: Record<string, unknown>): Promise<string> => {
      const leaf = Buffer.from(JSON.stringify({ ...entry, ...change })).toString("base64");
      return why(verifyProofResponse({ ...proof, log_keys: [{ ...step, leaf }] }, hash, old));
    };
    assert.match(await lie({ vkey: thief.vkey }), /not signed by the pinned key/);
    assert.match(await lie({ handover: String(entry["handover"]).replace("log-key", "log-kex") }), /does not match/);
    assert.match(await lie({ type: "agent" }), /not a change of the log's key/);
    assert.match(await lie({ seq: 0 }), /not a change of the log's key/);
    assert.match(await lie({ previous_until: "2999-01-01T00:00:00.000Z" }), /does not lead from this entry/);
    assert.match(await lie({ previous: thief.vkey }), /not signed by the pinned key/);
  });

  it("opens the entry's commitment, and rejects another request or salt", async () => {
    const { request } = await verifyProofResponse(proof, hash, vkey);
    assert.deepEqual(request, { context: {}, ...ALLOWED });
    const { opening } = proof;
    assert.ok(opening?.request != null && opening.salt !== null);
    const other = opening.request.replace("50", "5000");
    assert.notEqual(other, opening.request);
    for (const change of [{ request: other }, { salt: "ab".repeat(32) }])
      assert.match(
        await why(verifyProofResponse({ ...proof, opening: { ...opening, ...change } }, hash, vkey)),
        /not the one that the entry commits to/,
      );
    assert.equal((await verifyProofResponse({ ...proof, opening: null }, hash, vkey)).request, null);
    assert.match(await why(verifyProofResponse(proof, "ab".repeat(32), vkey)), /have the hash/);
  });
});

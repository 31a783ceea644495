/**
 * The opening of an entry's commitment, next to its proof: who gets it, and what a verifier reports if it does not
 * match.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { verifyProofText } from "../../../src/cli/verify.ts";
import { CommandError } from "../../../src/cli/command.ts";
import { needs, hasFeature } from "../../support/features.ts";
import { ALLOWED, ASKED, startService, type Answer, type Service } from "../../support/service.ts";

let service: Service;
before(async () => (service = await startService()));
after(() => service.close());

const proofOf = (hash: string, key: string): Promise<Answer> =>
  service.call("GET", `/v1/provenance/${hash}/proof`, { key });
/** A key of the action's agent, which can see the entry. */
const keyWith = async (name: string, ...scopes: string[]): Promise<string> => {
  const body = { name, scopes, agent_id: ALLOWED.agent_id };
  return (await service.call("POST", "/v1/api-keys", { key: service.admin, body })).body.key as string;
};

test("a proof contains the request for callers that can read it, a verifier checks it, and an erased one says so", async () => {
  const { vkey } = service.runtime.host.ledger;
  const { id, decision_hash: hash } = (await service.call("POST", "/v1/actions", { body: ALLOWED })).body;
  const { body: proof } = await proofOf(hash, service.admin);
  assert.deepEqual(verifyProofText(JSON.stringify(proof), vkey, null).request, {
    context: {},
    ...ALLOWED,
  });

  const lie = (opening: object): (() => unknown) => {
    const text = JSON.stringify({ ...proof, opening: { ...proof.opening, ...opening } });
    return () => verifyProofText(text, vkey, null);
  };
  const notIt = (error: unknown): boolean => error instanceof CommandError && /commits to/.test(error.message);
  assert.throws(lie({ request: JSON.stringify({ ...JSON.parse(proof.opening.request), tool: "other" }) }), notIt);
  assert.throws(lie({ request: `${proof.opening.request} ` }), notIt, "the same in other bytes");
  assert.throws(lie({ salt: "0".repeat(64) }), notIt);

  const reader = await keyWith("reader", "provenance:read", "actions:read");
  assert.deepEqual((await proofOf(hash, reader)).body.opening, proof.opening);
  const auditor = await keyWith("auditor", "provenance:read");
  const blind = (await proofOf(hash, auditor)).body;
  assert.equal(blind.opening, null, JSON.stringify(blind));
  assert.equal(verifyProofText(JSON.stringify(blind), vkey, null).request, null);

  if (!hasFeature("retention")) return;
  await service.call("POST", `/v1/actions/${id}/cancel`, { key: service.admin, body: {} });
  const erased = await service.call("POST", `/v1/actions/${id}/erase`, { key: service.admin, body: { reason: "t" } });
  assert.equal(erased.status, 200, JSON.stringify(erased.body));
  const after = (await proofOf(hash, service.admin)).body;
  assert.deepEqual([after.opening.salt, after.opening.request], [null, null]);
  assert.ok(Date.parse(after.opening.erased_at) > 0);
  assert.equal(verifyProofText(JSON.stringify(after), vkey, null).request, null);
});

test("the approvers' question is stored as its author wrote it, and opened in canonical form", async () => {
  const { vkey } = service.runtime.host.ledger;
  const body = { ...ASKED, params: { currency: "USD", amount: 500 } };
  const { decision_hash: hash } = (await service.call("POST", "/v1/actions", { body })).body;
  const { body: proof } = await proofOf(hash, service.admin);
  assert.deepEqual(verifyProofText(JSON.stringify(proof), vkey, null).request, { context: {}, ...body });
});

test("an entry without an action has nothing to open", needs("events"), async () => {
  const page = await service.call("GET", "/v1/events/page?after=-1&type=api_key&limit=1", { key: service.admin });
  assert.equal((await proofOf(page.body.events[0].hash, service.admin)).body.opening, null);
});

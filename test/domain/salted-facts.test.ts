/** Past data that a decision read: committed in its entry, opened by data in the action's row. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { restoreFacts, factsMatchCommitments, commitFacts, decodeSaltedFacts } from "../../src/domain/salted-facts.ts";
import type { Facts } from "../../src/domain/policy/policy-types.ts";

const PRINCIPAL = { key_id: "k", name: "agent", agent_id: null, owner: null };
const LIMIT = { policy: "pay", limit: "a day", basis: "0123456789abcdef", used: 60_500_000 };
const facts: Facts = { principal: PRINCIPAL, limits: [LIMIT] };
const salt = "11".repeat(32);

test("the commitment is SHA-256 of the salt and the digest of the canonical values, also computed by another library", () => {
  const sealed = commitFacts(facts, () => salt);
  const digest = createHash("sha256")
    .update('{"limits":[{"basis":"0123456789abcdef","limit":"a day","policy":"pay","used":60500000}]}')
    .digest();
  const expected = createHash("sha256").update(Buffer.from(salt, "hex")).update(digest).digest("hex");
  assert.deepEqual(sealed.facts, { principal: PRINCIPAL, past: expected });
  assert.deepEqual(restoreFacts(sealed.facts, sealed.past), facts);
});

test("nothing is stored if the decision read no past data", () => {
  const none: Facts = { principal: PRINCIPAL };
  assert.deepEqual(
    commitFacts(none, () => assert.fail("no salt is drawn")),
    { facts: none, past: null },
  );
});

test("entries of earlier versions, which contain the usage in plain text, can be read", () => {
  assert.deepEqual(restoreFacts(facts, null), facts);
});

test("another value, salt or order of members, or none, opens no commitment, and the usage stays unknown", () => {
  const { facts: recorded, past } = commitFacts(facts, () => salt);
  const commitment = recorded.past as string;
  assert.equal(factsMatchCommitments([commitment], past), true);
  const others = [
    past?.replace("60500000", "60500001"),
    past?.replace("1111", "1112"),
    JSON.stringify({ salt, limits: [LIMIT] }),
    "{",
    "null",
    '{"limits":[],"salt":"zz"}',
    null,
  ] as (string | null)[];
  for (const other of others) {
    assert.equal(factsMatchCommitments([commitment], other), false, String(other));
    assert.deepEqual(restoreFacts(recorded, other), { principal: PRINCIPAL });
  }
});

test("a text whose members have other types than the service writes is not decoded", () => {
  assert.equal(decodeSaltedFacts(`{"salt":"${salt}","sources":[{"value":1}]}`).length, 1);
  for (const members of [
    `"salt":"${salt}","sources":{"a":1}`,
    `"salt":"${salt}","sources":[1]`,
    `"history":{"a":1},"salt":"${salt}"`,
    `"history":[{"actions":7}],"salt":"${salt}"`,
    `"history":[{"actions":[null]}],"salt":"${salt}"`,
    `"limits":{"a":1},"salt":"${salt}"`,
    '"salt":"5","sources":[{"value":1}]',
    `"attributes":[1],"salt":"${salt}"`,
  ])
    assert.deepEqual(decodeSaltedFacts(`{${members}}`), [], members);
});

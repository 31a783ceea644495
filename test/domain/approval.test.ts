import assert from "node:assert/strict";
import { test } from "node:test";
import { findSelfRelation } from "../../src/domain/approval.ts";
import { isValidOwner, ownerIdentity } from "../../src/domain/owner.ts";

const submitter = { key_id: "k1", agent_id: "bot", owner: "ada" };
const stranger = { key_id: "k2", agent_id: null, owner: null };

test("the submitting key, its agent's keys, the acting agent's keys and its owner's keys count as the submitter", () => {
  assert.equal(findSelfRelation(submitter, "bot", { ...stranger, key_id: "k1" }), "same_key");
  assert.equal(findSelfRelation(submitter, "other", { ...stranger, agent_id: "bot" }), "same_agent");
  assert.equal(
    findSelfRelation({ ...submitter, agent_id: null }, "bot", { ...stranger, agent_id: "bot" }),
    "same_agent",
  );
  assert.equal(findSelfRelation(submitter, "bot", { ...stranger, owner: " ADA" }), "same_owner");
  assert.equal(findSelfRelation(submitter, "bot", { key_id: "k2", agent_id: "second-bot", owner: "bob" }), null);
});

test("two keys without an owner and without a binding are not related", () => {
  assert.equal(findSelfRelation({ key_id: "k1", agent_id: null, owner: null }, "bot", stranger), null);
});

test("an owner's identity is the same for every spelling, stable, and different for other names", () => {
  for (const [one, other] of [
    ["Straße", "STRASSE"],
    ["ﬁnance", "Finance"],
    ["ΟΔΥΣΣΕΥΣ", "οδυσσευς"],
    ["ops team", " Ops\u2003 Team "],
    ["e\u0301", "É"],
    ["a\u2060d\u00ada", "ada"],
  ] as const) {
    assert.equal(ownerIdentity(one), ownerIdentity(other), `${one} and ${other}`);
    assert.equal(ownerIdentity(ownerIdentity(one)), ownerIdentity(one));
  }
  for (const [one, other] of [
    ["ada", "adam"],
    ["ops team", "opsteam"],
    ["ada@a.example", "ada@b.example"],
    ["zoe", "zoë"],
  ] as const) {
    assert.notEqual(ownerIdentity(one), ownerIdentity(other), `${one} and ${other}`);
  }
  assert.deepEqual(["", " ", "\u200b\u00a0", "ada"].map(isValidOwner), [false, false, false, true]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { findSelfRelation } from "../../src/domain/approval.ts";

const submitter = { key_id: "k1", agent_id: "bot", owner: "user:ada" };
const stranger = { key_id: "k2", agent_id: null, owner: null };

test("the submitting key, its agent's keys, the acting agent's keys and its owner's keys count as the submitter", () => {
  assert.equal(findSelfRelation(submitter, "bot", { ...stranger, key_id: "k1" }), "same_key");
  assert.equal(findSelfRelation(submitter, "other", { ...stranger, agent_id: "bot" }), "same_agent");
  assert.equal(
    findSelfRelation({ ...submitter, agent_id: null }, "bot", { ...stranger, agent_id: "bot" }),
    "same_agent",
  );
  assert.equal(findSelfRelation(submitter, "bot", { ...stranger, owner: "user:ada" }), "same_owner");
  assert.equal(findSelfRelation(submitter, "bot", { key_id: "k2", agent_id: "second-bot", owner: "user:bob" }), null);
});

test("two keys without an owner and without a binding are not related", () => {
  assert.equal(findSelfRelation({ key_id: "k1", agent_id: null, owner: null }, "bot", stranger), null);
});

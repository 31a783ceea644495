/** The audit checks the ledger against the legal holds in it. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { holdAuditor } from "../../../plugins/retention/hold-audit.ts";
import { legalHoldState } from "../../../plugins/retention/holds.ts";
import { person } from "../../support/service.ts";

const by = { key_id: "k", principal: person("ada"), agent_id: null, owner: person("ada") };
const entry = (change: string, scope: object, more: object = {}) => ({
  type: "legal_hold",
  seq: 1,
  at: "2026-01-01T12:00:00.000Z",
  change,
  hold: { id: "h", action: null, agent: null, subject: null, reason: "case 7", ...scope },
  comment: null,
  approvals: 0,
  needed: 0,
  by,
  ...more,
});
const erasure = (action_id: string, agent_id: string) => ({ type: "erasure", action_id, agent_id });

/** Applies each entry as an audit does: the auditor checks it with the holds before it. */
function createAudit(): { fold(entry: object): void } {
  let holds = legalHoldState.initial;
  return {
    fold(body) {
      holdAuditor.check?.(body as never, { state: () => holds } as never);
      if ("hold" in body) holds = legalHoldState.on["legal_hold"]?.(holds, body as never) ?? holds;
    },
  };
}

it("the audit reports an erasure that an active hold on its action or agent covered", () => {
  for (const scope of [{ action: "a" }, { agent: "BOT" }]) {
    const audit = createAudit();
    audit.fold(erasure("a", "bot"));
    audit.fold(entry("placed", scope));
    audit.fold(erasure("b", "other"));
    assert.throws(() => audit.fold(erasure("a", "bot")), /the legal hold h was active and should have prevented/);
    audit.fold(entry("release_asked", scope, { approvals: 1, needed: 2 }));
    assert.throws(() => audit.fold(erasure("a", "bot")), /should have prevented/);
    audit.fold(entry("released", scope, { approvals: 2, needed: 2 }));
    audit.fold(erasure("a", "bot"));
  }
});

it("the audit reports entries of holds that contradict earlier ones", () => {
  const audit = createAudit();
  const agent = { agent: "bot" };
  assert.throws(() => audit.fold(entry("placed", { agent: "bot", action: "a" })), /exactly one scope/);
  audit.fold(entry("placed", agent));
  assert.throws(() => audit.fold(entry("placed", agent)), /is placed twice/);
  assert.throws(() => audit.fold(entry("released", agent, { approvals: 1, needed: 2 })), /1 of 2 people/);
  assert.throws(() => audit.fold(entry("released", { agent: "x" }, { approvals: 1, needed: 1 })), /different terms/);
  audit.fold(entry("released", agent, { approvals: 1, needed: 1 }));
  assert.throws(() => audit.fold(entry("released", agent, { approvals: 1, needed: 1 })), /no legal hold h to release/);
});

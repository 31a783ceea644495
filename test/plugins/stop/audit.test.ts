/** The audit checks the ledger against the stops in it. */
import assert from "node:assert/strict";
import { beforeEach, it } from "node:test";
import { applyStopEntry, NO_STOPS, stopState } from "../../../plugins/stop/state.ts";
import { stopAuditor } from "../../../plugins/stop/audit.ts";
import type { StopEntry } from "../../../plugins/stop/entry.ts";
import { person } from "../../support/service.ts";

const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 12, minute)).toISOString();
const by = { key_id: "k", principal: person("ada"), agent_id: null, owner: person("ada") };
const placed = (more: object = {}, minute = 0) => ({
  type: "stop",
  seq: 1,
  change: "placed",
  at: at(minute),
  stop: { id: "s", agent: null, tool: null, policy: null, reason: "drill", until: null, ...more },
  comment: null,
  approvals: 0,
  needed: 0,
  by,
});
const lift = (approvals: number, needed: number, change = "lifted") => ({
  ...placed(),
  seq: 2,
  change,
  at: at(5),
  approvals,
  needed,
});
const decision = (status: string, minute = 1) => ({
  type: "decision",
  at: at(minute),
  agent_id: "bot",
  tool: "stripe",
  status,
});
const approval = (verdict: string) => ({ type: "approval", at: at(1), agent_id: "bot", verdict });
const execution = (phase: string) => ({ type: "execution", at: at(1), agent_id: "bot", phase });
const redecision = (effect: string) => ({ type: "redecision", at: at(1), agent_id: "bot", decision: { effect } });
const WENT_ON = /the stop s was active and should have prevented this entry/;

let stops = NO_STOPS;
beforeEach(() => (stops = NO_STOPS));
const audit = {
  fold(entry: { type: string; at: string; [member: string]: unknown }): void {
    const now = Date.parse(entry.at);
    stopAuditor.check?.(entry as never, {
      now,
      state: (fold) => ((fold as unknown) === stopState ? stops : null) as never,
      placedBar: () => null,
      coverageOf: () => null,
      origin: "log.example",
    });
    if (entry.type === "stop") stops = applyStopEntry(stops, entry as unknown as StopEntry & { seq: number });
  },
};

it("the audit reports an action that was allowed, approved or started while a stop was active", () => {
  audit.fold(placed());
  for (const fine of [
    decision("denied"),
    approval("deny"),
    approval("cancelled"),
    redecision("deny"),
    execution("result"),
  ])
    audit.fold(fine);
  for (const wrong of [
    decision("allowed"),
    decision("pending_approval"),
    approval("approve"),
    redecision("allow"),
    execution("start"),
  ])
    assert.throws(() => audit.fold(wrong), WENT_ON);
  audit.fold(lift(1, 1));
  for (const fine of [decision("allowed", 6), approval("approve"), execution("start")]) audit.fold(fine);
});

it("actions that the stop does not cover, or that follow its end, are accepted", () => {
  audit.fold(placed({ tool: "ST*", until: at(3) }));
  assert.throws(() => audit.fold(decision("allowed")), WENT_ON);
  audit.fold({ ...decision("allowed"), tool: "crm" });
  audit.fold(decision("allowed", 3));
});

it("a stop is placed once, and lifted by the required number of people", () => {
  audit.fold(placed());
  assert.throws(() => audit.fold(placed()), /placed twice/);
  assert.throws(() => audit.fold(lift(1, 2)), /not lifted by this number of people/);
  assert.throws(() => audit.fold(lift(2, 2, "lift_asked")), /not lifted by this number of people/);
  audit.fold(lift(1, 2, "lift_asked"));
  audit.fold(lift(2, 2));
  assert.throws(() => audit.fold(lift(2, 2)), /no stop s to lift/);
});

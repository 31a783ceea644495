/** The audit finds forged plans: other actions, positions and orders, votes on other lists, and starts that a plan held back. */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { createPlanAuditor } from "../../../plugins/plans/audit.ts";
import { actionListDigest, type PlanMember, type PlanTerms } from "../../../plugins/plans/action-list.ts";
import { person } from "../../support/service.ts";

const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 12, minute)).toISOString();
const by = { key_id: "k", principal: person("ada"), agent_id: null, owner: person("ada") };
const IDS = ["a", "b", "c"];
const TERMS: PlanTerms = { id: "p", ordered: true, stop_on_failure: true };

/** Digest of the list of these actions. */
function list(ids: readonly string[], terms = TERMS, commitments: Record<string, string> = {}): string {
  const members = IDS.map((id, i): PlanMember => ({
    action_id: id,
    position: i + 1,
    commitment: commitments[id] ?? `of ${id}`,
    status: ids.includes(id) ? "pending_approval" : "denied",
    approved: null,
  }));
  return actionListDigest(terms, members);
}

const plan = (more: object = {}, terms: object = {}) => ({
  type: "plan",
  at: at(0),
  agent_id: "bot",
  plan: { ...TERMS, actions: IDS.map((action_id) => ({ action_id, commitment: `of ${action_id}` })), ...terms },
  by,
  ...more,
});
const decision = (action_id: string, more: object = {}) => ({
  type: "decision",
  at: at(0),
  action_id,
  agent_id: "bot",
  commitment: `of ${action_id}`,
  plan: { id: "p", position: IDS.indexOf(action_id) + 1 },
  status: "pending_approval",
  expires_at: at(50),
  approved_until: null,
  submitted_by: by,
  ...more,
});
const vote = (action_id: string, of: string | null, more: object = {}) => ({
  type: "approval",
  at: at(1),
  action_id,
  verdict: "approve",
  plan: of,
  status: "approved",
  approved_until: at(40),
  ...more,
});
const strike = (action_id: string, of: string) => vote(action_id, of, { verdict: "deny", status: "denied" });
const start = (action_id: string, minute = 2) => ({
  type: "execution",
  phase: "start",
  at: at(minute),
  action_id,
  status: "executing",
});
const result = (action_id: string, status = "succeeded") => ({ ...start(action_id, 3), phase: "result", status });

let audit: ReturnType<typeof createPlanAuditor>;
const fold = (...bodies: object[]): void => {
  for (const body of bodies) audit.check?.({ ...body } as never, {} as never);
};
const refuses = (expected: RegExp, ...bodies: object[]): void => assert.throws(() => fold(...bodies), expected);
const decided = (): void => fold(...[...IDS].map((id) => decision(id)));
const open = (terms: object = {}): void => (fold(plan({}, terms)), decided());

beforeEach(() => {
  audit = createPlanAuditor();
});

test("a plan in order is accepted: a strike, votes on the rest, and starts one after another", () => {
  open();
  const rest = list(["a", "c"]);
  fold(strike("b", rest), vote("a", rest), vote("c", rest), start("a"), result("a"), start("c", 4));
  const created = { key_id: "k", created_at: Date.UTC(2026, 0, 1, 12), body_hash: "" };
  assert.deepEqual(audit.created?.["POST /v1/plans"]?.({} as never, "p"), created);
});

test("decisions that are not those of the plan", () => {
  const forged: [RegExp, object][] = [
    [/action 1 of the plan p/, { plan: { id: "p", position: 2 } }],
    [/action 1 of the plan p/, { plan: { id: "q", position: 1 } }],
    [/action 1 of the plan p/, { plan: null }],
    [/action 1 of the plan p/, { commitment: "other" }],
    [/action 1 of the plan p/, { action_id: "x" }],
    [/action 1 of the plan p/, { agent_id: "other" }],
    [/action 1 of the plan p/, { at: at(1) }],
    [/action 1 of the plan p/, { submitted_by: { ...by, key_id: "other" } }],
    [/is between the plan p/, { type: "stop" }],
  ];
  for (const [expected, more] of forged) {
    audit = createPlanAuditor();
    fold(plan());
    refuses(expected, decision("a", more));
  }
  audit = createPlanAuditor();
  fold(plan());
  refuses(/action 1 of the plan p/, decision("b"));
  audit = createPlanAuditor();
  refuses(/no such action/, decision("a"));
  open();
  refuses(/no such action/, decision("d"));
  refuses(/submitted twice/, plan());
  refuses(/no actions/, plan({}, { id: "q", actions: [] }));
});

test("votes on a list that did not remain", () => {
  const forged: [string, object[]][] = [
    ["the list before a strike", [strike("b", list(["a", "c"])), vote("a", list(IDS))]],
    ["a list without a pending action", [vote("a", list(["a"]))]],
    ["no list", [vote("a", null)]],
    ["a list of another plan", [vote("a", list(IDS, { ...TERMS, id: "q" }))]],
    ["a list without the order", [vote("a", list(IDS, { ...TERMS, ordered: false }))]],
    ["a list that runs on after a failure", [vote("a", list(IDS, { ...TERMS, stop_on_failure: false }))]],
    ["the list before its time to approve had passed", [vote("a", list(IDS), { at: at(51) })]],
  ];
  for (const [what, bodies] of forged) {
    audit = createPlanAuditor();
    open();
    assert.throws(() => fold(...bodies), /a list that differs/, what);
  }
});

test("a strike that names another list is found with the next entry of the plan", () => {
  open();
  fold(strike("b", list(["a"])));
  refuses(/rejected actions of the plan p with a list that differs/, vote("a", list(["a", "c"])));
});

test("a changed request changes the list", () => {
  open();
  const edit = { type: "redecision", at: at(1), action_id: "a", occasion: "edit", edit: {}, commitment: "changed" };
  fold({ ...edit, status: "pending_approval", expires_at: at(50) });
  refuses(/a list that differs/, vote("a", list(IDS)));
  fold(vote("b", list(IDS, TERMS, { a: "changed" })));
});

test("starts and permits that the plan held back", () => {
  const permit = (action_id: string) => ({
    type: "redecision",
    at: at(2),
    action_id,
    occasion: "permit",
    edit: null,
    commitment: `of ${action_id}`,
    status: "approved",
    expires_at: null,
  });
  open();
  const all = list(IDS);
  fold(vote("a", all), vote("b", all), vote("c", all));
  refuses(/although action 1 of the plan p was approved/, start("b"));
  refuses(/although action 1/, permit("c"));
  audit = createPlanAuditor();
  open();
  fold(vote("a", all), vote("b", all), vote("c", all), start("a"), result("a", "failed"));
  refuses(/although action 1 of the plan p was failed/, start("b", 4));
  audit = createPlanAuditor();
  open();
  fold(vote("b", all), vote("c", all));
  refuses(/although action 1/, start("b", 51));
});

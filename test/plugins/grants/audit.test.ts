/** The audit finds every use that a grant in the ledger did not cover. */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { grantAuditor } from "../../../plugins/grants/audit.ts";
import type { GrantEntry } from "../../../plugins/grants/entry.ts";
import { grantState } from "../../../plugins/grants/state.ts";
import type { PlacedBar } from "../../../src/contract/bar.ts";
import { keyState } from "../../../src/domain/recorded-keys.ts";
import { userState } from "../../../src/domain/users.ts";
import { States } from "../../../src/ledger/states.ts";
import { person } from "../../support/service.ts";

const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 12, minute)).toISOString();
const by = { key_id: "k", principal: person("ada"), agent_id: null, owner: person("ada") };
const TERMS = {
  id: "g",
  tool: "ci",
  operation: "deploy",
  scope: null,
  count: 2,
  sum: null,
  until: at(50),
  ends_on_failure: false,
  passkey: null as string | null,
};
const FACT = {
  id: "g",
  by: person("ada"),
  granted_at: at(1),
  until: at(50),
  count: 2,
  scope: null,
  sum: null,
  groups: [],
  independent: true,
  self: false,
};
const SCOPES = ["approvals:decide", "grants:write"];

let audit: ReturnType<typeof grantAuditor>;
let states: States;
/** A bar of the tool `ci`, and the entry that placed it. */
let bar: { seq: number; placed: PlacedBar } | null;
let seq: number;

const key = (scopes: string[], more: object = {}, change = "created") => ({
  type: "api_key",
  at: at(0),
  by: null,
  change,
  key: { id: "k", scopes, agent_id: null, expires_at: null, ...more },
});
const granted = (more: object = {}) => ({
  type: "grant",
  at: at(1),
  change: "granted",
  agent_id: "bot",
  grant: TERMS,
  cause: null,
  related_action: null,
  comment: null,
  by,
  ...more,
});
const ended = (cause = "revoked") => granted({ change: "ended", cause, at: at(2) });
const use = (action_id: string, fact: object = {}, more: object = {}) => ({
  type: "decision",
  at: at(5),
  action_id,
  agent_id: "bot",
  tool: "ci",
  operation: "deploy",
  status: "allowed",
  submitted_by: { key_id: "agent", principal: "key:agent", agent_id: "bot", owner: null },
  facts: { grant: { ...FACT, ...fact } },
  decision: { effect: "allow", reason_code: "GRANTED" },
  ...more,
});
const redecision = (action_id: string, more: object = {}) => ({
  ...use(action_id, {}, more),
  type: "redecision",
});
const cancelled = (action_id: string) => ({ type: "approval", at: at(6), action_id, status: "cancelled" });

/** The vote that a grant was given with: 49 minutes, as `TERMS`. */
const VOTED = { id: "g", count: 2, ends_on_failure: false, for_ms: 49 * 60_000, scope: null, sum: null };
const user = { key_id: "u", principal: "user:u", agent_id: null, owner: person("ada") };
const userEntry = (passkeys: string[], change = "created") => ({
  type: "user",
  confirmed_by: null,
  at: at(0),
  change,
  user: { id: "u", roles: ["approver"], ended_at: null, identities: [{}], passkeys: passkeys.map((id) => ({ id })) },
});
const signedVote = (more: object = {}) => ({
  type: "approval",
  at: at(1),
  action_id: "v",
  status: "approved",
  verdict: "approve",
  by: user,
  gesture: { credential_id: "pk" },
  grant: VOTED,
  ...more,
});
const signedGrant = (more: object = {}) =>
  granted({ related_action: "v", by: user, grant: { ...TERMS, passkey: "pk" }, ...more });

const fold = (...bodies: object[]): void => {
  for (const body of bodies) {
    const entry = { seq: seq++, ...body } as unknown as GrantEntry & { seq: number };
    audit.check?.(entry, {
      now: Date.parse(entry.at),
      state: (state) => states.state(state),
      placedBar: ({ tool }, after) => (bar !== null && tool === "ci" && bar.seq > after ? bar.placed : null),
      coverageOf: () => null,
      origin: "log.example",
    });
    states = states.after(entry);
  }
};
const refuses = (expected: RegExp, ...bodies: object[]): void => assert.throws(() => fold(...bodies), expected);

beforeEach(() => {
  bar = null;
  audit = grantAuditor();
  states = States.initial([grantState, keyState, userState]);
  seq = 0;
  fold(key(SCOPES));
});

test("uses within the terms are accepted, up to the cap", () => {
  fold(granted(), use("a"), redecision("a"), use("b"));
  refuses(/the grant g was used 2 times, which is its cap/, use("c"));
});

test("a use that an operator returned does not count", () => {
  fold(granted(), use("a"), use("b"), cancelled("a"), use("c"));
  refuses(/its cap/, use("d"));
});

const forged: [string, RegExp, () => object[]][] = [
  ["of a grant that nobody gave", /never created/, () => [use("a")]],
  ["of a revoked grant", /had ended \(revoked\)/, () => [granted(), ended(), use("a")]],
  ["after its time", /had ended \(time\)/, () => [granted(), use("a", {}, { at: at(50) })]],
  ["by another agent", /another agent, tool or operation/, () => [granted(), use("a", {}, { agent_id: "other" })]],
  ["with another tool", /another agent, tool or operation/, () => [granted(), use("a", {}, { tool: "CI" })]],
  ["with a wider scope", /terms of the grant g/, () => [granted({ grant: { ...TERMS, scope: "false" } }), use("a")]],
  ["with a larger cap", /terms of the grant g/, () => [granted(), use("a", { count: 3 })]],
  ["with a later end", /terms of the grant g/, () => [granted(), use("a", { until: at(59) })]],
  ["with another grantor", /terms of the grant g/, () => [granted(), use("a", { by: person("eve") })]],
  [
    "after the key was revoked",
    /not allowed to create grants/,
    () => [granted(), key(SCOPES, {}, "revoked"), use("a")],
  ],
  [
    "after the key expired",
    /not allowed to create grants/,
    () => [key(SCOPES, { id: "e", expires_at: at(4) }), granted({ by: { ...by, key_id: "e" } }), use("a")],
  ],
  ["that the decision does not name", /does not name/, () => [granted(), use("a", {}, { facts: {} })]],
  [
    "in a decision with another reason",
    /its reason is not GRANTED/,
    () => [granted(), use("a", {}, { decision: { effect: "allow", reason_code: "POLICY_RULE" } })],
  ],
  [
    "of the grantor's own agent without a signature",
    /no passkey that the grantor has signed it/,
    () => [granted(), use("a", { self: true })],
  ],
  [
    "of the grantor's own agent after the passkey was removed",
    /no passkey that the grantor has signed it/,
    () => [
      userEntry(["pk"]),
      signedGrant(),
      signedVote(),
      userEntry([], "passkey_removed"),
      use("a", { by: "user:u", self: true }),
    ],
  ],
  [
    "of the grantor's own agent as if it were another's",
    /its decision denies that/,
    () => [
      granted(),
      use("a", {}, { submitted_by: { ...by, key_id: "agent", agent_id: "bot", owner: person("Ada") } }),
    ],
  ],
  ["in a redecision of another action", /did not cover the action/, () => [granted(), redecision("a")]],
];
for (const [name, expected, bodies] of forged)
  test(`finds a use ${name}`, () => {
    const all = bodies();
    fold(...all.slice(0, -1));
    refuses(expected, all.at(-1) as object);
  });

test("a signed grant can cover the grantor's own agent, and its vote must contain the same terms", () => {
  fold(userEntry(["pk"]), signedGrant(), signedVote(), use("a", { by: "user:u", self: true }));
  audit.finish?.((fault) => assert.fail(fault));
  refuses(/signed, but was not created with a vote/, granted({ grant: { ...TERMS, id: "alone", passkey: "pk" } }));
  refuses(/creates the grant g, but the ledger lacks the entry/, signedVote());
  for (const [i, change] of [
    { grant: { ...VOTED, count: 3 } },
    { grant: { ...VOTED, for_ms: 1000 } },
    { grant: { ...VOTED, scope: "false" } },
    { grant: null },
    { gesture: null },
    { gesture: { credential_id: "another" } },
    { verdict: "deny" },
    { by: { ...by, principal: person("eve") } },
  ].entries()) {
    const id = `other ${i}`;
    const grant = "grant" in change && change.grant != null ? { grant: { ...change.grant, id } } : {};
    fold(signedGrant({ grant: { ...TERMS, id, passkey: "pk" } }));
    refuses(
      /differs from the grant that the vote contains/,
      signedVote({ grant: { ...VOTED, id }, ...change, ...grant }),
    );
  }
  fold(signedGrant({ grant: { ...TERMS, id: "lost", passkey: "pk" } }));
  const faults: string[] = [];
  audit.finish?.((fault) => faults.push(fault));
  assert.match(faults.join(), /the ledger lacks the vote that created the grant lost/);
});

test("finds a use after a bar that covers it was placed", () => {
  fold(granted());
  bar = { seq: seq++, placed: { at: Date.parse(at(3)), by, reason: "r" } };
  refuses(/had ended \(stop\)/, use("a"));
});

test("finds a grant by a credential that could not grant, and a grant that is given or ended twice", () => {
  fold(key(["approvals:decide"], { id: "l" }));
  refuses(/lacked the scope grants:write/, granted({ by: { ...by, key_id: "l" } }));
  fold(key(SCOPES, { id: "b", agent_id: "bot" }));
  refuses(/not allowed to create grants/, granted({ grant: { ...TERMS, id: "h" }, by: { ...by, key_id: "b" } }));
  fold(granted({ grant: { ...TERMS, id: "i" } }));
  refuses(/granted twice/, granted({ grant: { ...TERMS, id: "i" } }));
  fold(granted({ change: "ended", cause: "flag", grant: { ...TERMS, id: "i" } }));
  refuses(/no grant i to end/, granted({ change: "ended", cause: "flag", grant: { ...TERMS, id: "i" } }));
});

/**
 * The audit finds a task whose entries were removed, altered or forged, and a use after a task had to end.
 * @needs grants
 */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { applyGrantEntry, grantState, NO_GRANTS } from "../../../plugins/grants/state.ts";
import { taskAuditor } from "../../../plugins/tasks/audit.ts";
import { applyTaskEntry, NO_TASKS } from "../../../plugins/tasks/state.ts";
import { RETAINED_ENDED } from "../../../src/plugin.ts";
import { person } from "../../support/service.ts";

const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 12, minute)).toISOString();
const by = { key_id: "k", principal: person("ada"), agent_id: null, owner: person("ada") };
const END = { cause: null as string | null, related_action: null, comment: null, by };

let audit: ReturnType<typeof taskAuditor>;
let grants = NO_GRANTS;
let tasks = NO_TASKS;
/** A bar of the tool `mail`. */
let bar: number | null;
let seq: number;

const grant = (id: string, tool = "ci", more: object = {}, terms: object = {}) => ({
  type: "grant",
  at: at(1),
  change: "granted",
  agent_id: "bot",
  grant: { id, tool, operation: "do", scope: null, count: 2, sum: null, until: at(50), passkey: null, ...terms },
  ...END,
  ...more,
});
const grantEnd = (id: string, cause = "revoked", tool = "ci") =>
  grant(id, tool, { change: "ended", cause, at: at(5), related_action: "a" });
const task = (more: object = {}, terms: object = {}) => ({
  type: "task",
  at: at(1),
  change: "started",
  agent_id: "bot",
  task: { id: "t", title: "release", template: null, until: at(50), grants: ["g", "h"], ...terms },
  ...END,
  ...more,
});
const ENDED = { change: "ended", cause: "revoked" };
const taskEnd = (cause = "person", terms: object = {}) => task({ change: "ended", cause, at: at(5) }, terms);
const use = (id: string) => ({ type: "decision", at: at(6), agent_id: "bot", facts: { grant: { id } } });
const rejection = { type: "approval", at: at(5), agent_id: "BOT", verdict: "deny", status: "denied", grant: null };
const stop = { type: "stop", at: at(5), agent_id: null };
const started = (): object[] => [grant("g"), grant("h", "mail"), task()];
const ended = (cause: string, ofGrant = "revoked"): object[] => [
  grantEnd("g", ofGrant),
  grantEnd("h", ofGrant, "mail"),
  taskEnd(cause),
];

const fold = (...bodies: object[]): void => {
  for (const body of bodies) {
    const entry = { seq: seq++, ...body } as never as { seq: number; at: string; type: string };
    audit.check?.(entry as never, {
      now: Date.parse(entry.at),
      state: (wanted: unknown) => (wanted === grantState ? grants : tasks) as never,
      placedBar: ({ tool }, after) =>
        bar !== null && tool === "mail" && bar > after ? { at: Date.parse(at(5)), by, reason: "drill" } : null,
      coverageOf: ({ type }) => ((type as string) === "stop" ? () => true : null),
      origin: "log.example",
    });
    if (entry.type === "grant") grants = applyGrantEntry(grants, entry as never);
    if (entry.type === "task") tasks = applyTaskEntry(tasks, entry as never);
    if (entry.type === "stop") bar = entry.seq;
  }
};
const finish = (): string[] => {
  const faults: string[] = [];
  audit.finish?.((fault) => faults.push(fault));
  return faults;
};

beforeEach(() => {
  bar = null;
  audit = taskAuditor();
  grants = NO_GRANTS;
  tasks = NO_TASKS;
  seq = 0;
});

const voted = (grant: object | null = { id: "g", task: "release" }) => ({
  type: "approval",
  at: at(1),
  agent_id: "bot",
  verdict: "approve",
  status: "approved",
  grant,
});
const withVote = [grant("g", "ci", { related_action: "a" }), task({}, { grants: ["g"] })];

test("a task that a vote starts is sound only with the vote, its title and its entry", () => {
  fold(...withVote, voted());
  assert.deepEqual(finish(), []);
});
for (const [name, bodies] of [
  ["with another title", [...withVote, voted({ id: "g", task: "holiday" })]],
  ["without a title", [...withVote, voted({ id: "g" })]],
  ["without the entry of the task", [withVote[0], voted()]],
] as [string, object[]][])
  test(`a vote ${name} is a fault`, () => assert.throws(() => fold(...bodies), /differs from that of its vote/));
test("a task that lacks its vote is a fault", () => {
  fold(...withVote);
  assert.deepEqual(finish(), ["the ledger lacks the vote that started a task with the grant g"]);
});

const sound: [string, () => object[]][] = [
  ["by a person", () => ended("person")],
  ["by a rejection", () => [rejection, ...ended("rejection", "rejection")]],
  ["by a flag", () => [grantEnd("g", "flag"), grantEnd("h", "flag", "mail"), taskEnd("flag")]],
  ["by a suspension", () => ended("suspension", "suspension")],
  ["by a stop of one tool", () => [stop, grantEnd("g"), taskEnd("stop")]],
];
for (const [name, bodies] of sound)
  test(`a task that ends ${name} is sound`, () => {
    fold(...started(), use("g"), ...bodies());
    assert.deepEqual(finish(), []);
  });

const forged: [string, RegExp, () => object[]][] = [
  ["without one of its grants", /lacks a grant of the task t/, () => [grant("g"), task()]],
  ["without grants", /lacks a grant of the task t/, () => [task({}, { grants: [] })]],
  [
    "with a grant of another person",
    /not created for the task t/,
    () => [grant("g", "ci", { by: { ...by, key_id: "other" } }), grant("h"), task()],
  ],
  ["with an earlier grant", /not created for the task t/, () => [grant("g", "ci", { at: at(0) }), grant("h"), task()]],
  ["with a longer time", /not created for the task t/, () => [grant("g"), grant("h"), task({}, { until: at(55) })]],
  ["for another agent", /not created for the task t/, () => [grant("g"), grant("h"), task({ agent_id: "eve" })]],
  ["with a grant of another task", /not created for the task u/, () => [...started(), task({}, { id: "u" })]],
  ["twice", /started twice|not created for the task/, () => [...started(), task()]],
];
for (const [name, expected, bodies] of forged)
  test(`a task that is started ${name} is a fault`, () => assert.throws(() => fold(...bodies()), expected));

const wrongEnds: [string, RegExp, () => object[]][] = [
  ["that was never started", /no task t to end/, () => [taskEnd()]],
  ["while a grant is open", /and its grant h did not/, () => [...started(), grantEnd("g"), taskEnd()]],
  [
    "with another title",
    /with other members/,
    () => [...started(), grantEnd("g"), grantEnd("h", "revoked", "mail"), taskEnd("person", { title: "other" })],
  ],
  [
    "by a rejection that no one gave",
    /by a rejection that the ledger lacks/,
    () => [...started(), ...ended("rejection")],
  ],
  ["by a stop that no one placed", /by a stop that the ledger lacks/, () => [...started(), ...ended("stop")]],
];
for (const [name, expected, bodies] of wrongEnds)
  test(`an end of a task ${name} is a fault`, () => assert.throws(() => fold(...bodies()), expected));

const missing: [string, string, () => object[]][] = [
  ["a rejection", "rejection", () => [rejection]],
  ["a flag", "flag", () => [grantEnd("g", "flag")]],
  ["a suspension", "suspension", () => [grantEnd("g", "suspension")]],
  ["a stop", "stop", () => [stop, { type: "stop", at: at(5) }]],
];
for (const [name, cause, bodies] of missing)
  test(`${name} without the end of the task is a fault, and so is a use after it`, () => {
    fold(...started(), ...bodies());
    assert.deepEqual(finish(), [`the ledger lacks the end of the task t, which a ${cause} ended`]);
    assert.throws(() => fold(use("h")), /was used after a/);
  });

test("old ended tasks, and grants whose time is over, are forgotten", () => {
  fold(...started());
  for (let n = 0; n < 2 * RETAINED_ENDED + 2; n++) {
    const id = `g${n}`;
    const terms = { id: `t${n}`, title: "release", grants: [id], until: at(2) };
    const until = { until: at(2) };
    fold(grant(id, "ci", {}, until), task({}, terms), grant(id, "ci", { ...ENDED, at: at(1) }, until));
    fold(task({ change: "ended", cause: "person", at: at(1) }, terms));
  }
  assert.ok(tasks.all.size <= 2 * RETAINED_ENDED && tasks.open.length === 1, String(tasks.all.size));
  assert.ok(grants.all.size > 2 * RETAINED_ENDED, "the task of an ended grant can be open until the time of the grant");
  for (let n = 0; n < RETAINED_ENDED; n++) fold(grant(`h${n}`, `late${n}`, { at: at(3) }, { until: at(4) }));
  fold(grant("last", "ci", { at: at(5) }));
  for (let n = 0; n < RETAINED_ENDED; n++) fold(grant(`i${n}`, `later${n}`, { at: at(5) }, { until: at(6) }));
  assert.ok(grants.all.size <= 3 * RETAINED_ENDED && grants.all.has("g"), String(grants.all.size));
  assert.equal(grants.open.has(JSON.stringify(["bot", "late0", "do"])), false);
  assert.deepEqual(finish(), []);
  assert.notEqual(audit.created?.["POST /v1/tasks"]?.(null as never, "t0"), null, "the audit knows all of them");
});

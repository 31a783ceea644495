/** Reads of fact sources: what is kept, what is shared, and what a source cannot do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FactSource } from "../../src/contract/fact-source.ts";
import { createFactReader } from "../../src/policies/fact-reader.ts";
import { createLogger } from "../../src/serve/log.ts";

interface Setting {
  now: number;
  logged: string[];
}

function open(source: Partial<FactSource>) {
  const setting: Setting = { now: Date.now(), logged: [] };
  const reader = createFactReader({
    sources: [{ name: "crm", inputs: ["id"], read: () => Promise.resolve({}), ...source }],
    log: createLogger("debug", (line) => void setting.logged.push(line)),
    clock: () => setting.now,
  });
  const read = async (id: string, policy = "p", shadow = false) =>
    (await reader.read([{ policy, shadow, source: "crm", inputs: { id } }]))[0];
  return { reader, read, setting };
}

test("reads that run at the same time share one read, and its answer is a copy", async () => {
  const value = { status: "open" };
  let reads = 0;
  const { reader, read } = open({ read: () => Promise.resolve((reads++, value)) });
  const answers = await Promise.all([read("a"), read("a"), read("b")]);
  assert.equal(reads, 2);
  value.status = "frozen";
  assert.deepEqual(answers[0]?.value, { status: "open" });
  assert.deepEqual(reader.recent({ policy: "p", shadow: false, source: "crm", inputs: { id: "a" } })?.value, {
    status: "open",
  });
  assert.deepEqual(reader.counts(), [{ source: "crm", reads: 2, failures: 0 }]);
});

test("an expired answer is not used, even if the source fails", async () => {
  let fails = false;
  const { reader, read, setting } = open({
    maxAgeMs: 60_000,
    read: () => (fails ? Promise.reject(new Error("down")) : Promise.resolve(1)),
  });
  const recent = () => reader.recent({ policy: "p", shadow: false, source: "crm", inputs: { id: "a" } });
  await read("a");
  setting.now += 60_000;
  assert.equal(recent()?.value, 1);
  setting.now += 1;
  assert.equal(recent(), null);
  fails = true;
  assert.deepEqual([(await read("a"))?.fault, (await read("a"))?.value], ["no_answer", null]);
  assert.deepEqual(reader.counts(), [{ source: "crm", reads: 2, failures: 1 }], "a failure is kept for a moment");
  setting.now += 2_001;
  fails = false;
  assert.equal((await read("a"))?.value, 1);
});

test("an answer is as old as its read, however late it arrives", async () => {
  const { reader, read, setting } = open({
    maxAgeMs: 30_000,
    read() {
      setting.now += 9_000;
      return Promise.resolve(1);
    },
  });
  assert.equal((await read("a"))?.at, setting.now - 9_000);
  setting.now += 21_000;
  assert.equal(reader.recent({ policy: "p", shadow: false, source: "crm", inputs: { id: "a" } })?.value, 1);
  setting.now += 1;
  assert.equal(reader.recent({ policy: "p", shadow: false, source: "crm", inputs: { id: "a" } }), null);
});

test("a source that hangs, and ignores the signal, holds up only its own reads, and those end", async () => {
  const { read, setting } = open({ timeoutMs: 20, read: () => new Promise(() => undefined) });
  // Timeouts of signals do not keep a process alive.
  const alive = setInterval(() => undefined, 1_000);
  const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => read(`secret-${i}`)));
  clearInterval(alive);
  assert.ok(answers.every((answer) => answer?.fault === "no_answer"));
  assert.match(setting.logged[0] ?? "", /no answer within 20 ms/);
  assert.ok(setting.logged.every((line) => !line.includes("secret")));
});

test("reads that wait for others get their turn", async () => {
  const waiting: (() => void)[] = [];
  const { read } = open({
    timeoutMs: 10_000,
    read: ({ id }) => new Promise((resolve) => waiting.push(() => resolve(id as string))),
  });
  const all = Promise.all(Array.from({ length: 40 }, (_, i) => read(`${i}`)));
  let answered = 0;
  while (answered < 40) {
    await new Promise(setImmediate);
    assert.ok(waiting.length <= 32);
    answered += waiting.length;
    for (const answer of waiting.splice(0)) answer();
  }
  assert.deepEqual(
    (await all).map((answer) => answer?.value),
    Array.from({ length: 40 }, (_, i) => `${i}`),
  );
});

test("policies take turns, so that a policy with many reads does not block the facts of another", async () => {
  const waiting: (() => void)[] = [];
  const asked: string[] = [];
  const { read } = open({
    timeoutMs: 10_000,
    maxConcurrent: 2,
    read: ({ id }) => new Promise((resolve) => (asked.push(id as string), waiting.push(() => resolve(id as string)))),
  });
  const team = Array.from({ length: 20 }, (_, i) => read(`team-${i}`, "team"));
  const others = [read("team-19", "shared"), read("b", "baseline")];
  while (asked.length < 22) {
    await new Promise(setImmediate);
    waiting.shift()?.();
  }
  for (const answer of waiting.splice(0)) answer();
  assert.deepEqual(
    (await Promise.all([...others, ...team])).slice(0, 2).map((answer) => answer?.value),
    ["team-19", "b"],
  );
  // Two reads of the team ran when the others arrived.
  assert.ok(asked.slice(0, 5).includes("team-19") && asked.slice(0, 5).includes("b"), asked.join());
});

test("a request is refused, and nothing decided, if too many of its policy wait for a source", async () => {
  const answers: (() => void)[] = [];
  const { read } = open({
    timeoutMs: 10_000,
    read: () => new Promise((resolve) => answers.push(() => resolve(1))),
  });
  const waiting = Array.from({ length: 1_000 }, () => read("a"));
  await assert.rejects(read("a"), { code: "OVERLOADED" });
  const other = read("a", "other");
  const shadow = await read("b", "p", true);
  assert.equal(shadow?.fault, "no_answer", "a policy in shadow mode refuses nothing, and does not wait");
  await new Promise(setImmediate);
  for (const answer of answers) answer();
  assert.deepEqual([(await other)?.value, (await Promise.all(waiting)).length], [1, 1_000]);
});

test("a read that fails for one policy does not fail for another", async () => {
  let fails = true;
  const { read } = open({ read: () => (fails ? Promise.reject(new Error("busy")) : Promise.resolve(1)) });
  assert.equal((await read("a", "team"))?.fault, "no_answer");
  fails = false;
  assert.equal((await read("a", "baseline"))?.value, 1);
  assert.equal((await read("a", "team"))?.value, 1, "and an answer counts for both");
});

test("a source that is unknown, takes other inputs, or returns no JSON or too much has no usable answer", async () => {
  const { reader } = open({});
  for (const call of [
    { policy: "p", shadow: false, source: "crn", inputs: { id: "a" } },
    { policy: "p", shadow: false, source: "crm", inputs: {} },
    { policy: "p", shadow: false, source: "crm", inputs: { id: "a", more: 1 } },
  ])
    assert.equal((await reader.read([call]))[0]?.fault, "no_source", JSON.stringify(call));
  const odd: [value: unknown, fault: string][] = [
    [undefined, "no_answer"],
    [NaN, "no_answer"],
    ["x".repeat(70_000), "too_large"],
  ];
  for (const [value, fault] of odd)
    assert.equal((await open({ read: () => Promise.resolve(value as never) }).read("a"))?.fault, fault);
  const throwing = open({
    read: () => {
      throw new Error("at once");
    },
  });
  assert.equal((await throwing.read("a"))?.fault, "no_answer");
});

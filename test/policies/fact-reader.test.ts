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
  const read = async (id: string, policy = "p", key: string | null = "key", shadow = false) =>
    (await reader.read([{ policy, shadow, source: "crm", inputs: { id } }], key))[0];
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

test("after a write, no earlier value is used, also one that is still being read, and other values are kept", async () => {
  let total = 1;
  let release = (): void => undefined;
  const { reader, read } = open({
    maxAgeMs: 60_000,
    async read({ id }) {
      const value = total;
      if (id === "slow") await new Promise<void>((resolve) => (release = resolve));
      return value;
    },
  });
  const recent = (id: string) => reader.recent({ policy: "p", shadow: false, source: "crm", inputs: { id } });
  const many = Array.from({ length: 20_000 }, (_, i) => `value-${i}`);
  for (const subjects of [[], many]) {
    await Promise.all([read("a"), read("other")]);
    const slow = read("slow");
    await new Promise(setImmediate);
    total += 1;
    reader.expire([], [...subjects, "a", "slow"]);
    release();
    await slow;
    assert.deepEqual([recent("a"), recent("slow")], [null, null]);
    assert.equal(recent("other")?.value, 1);
    assert.equal((await read("a"))?.value, total);
    const again = read("slow");
    await new Promise(setImmediate);
    release();
    assert.equal((await again)?.value, total);
    reader.expire([], ["slow"]);
  }
});

test("a source that hangs, and ignores the signal, holds up only its own reads, and those end", async () => {
  const { read, setting } = open({ timeoutMs: 20, read: () => new Promise(() => undefined) });
  // Timeouts of signals do not keep a process alive.
  const alive = setInterval(() => undefined, 1_000);
  const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => read(`secret-${i}`)));
  clearInterval(alive);
  assert.ok(answers.every((answer) => answer?.fault === "no_answer"));
  assert.match(setting.logged.join(), /no result within 20 ms/);
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

test("policies, keys and votes take turns, so that none keeps another from its facts", async () => {
  const waiting: (() => void)[] = [];
  const asked: string[] = [];
  const { read } = open({
    timeoutMs: 10_000,
    maxConcurrent: 2,
    read: ({ id }) => new Promise((resolve) => (asked.push(id as string), waiting.push(() => resolve(id as string)))),
  });
  const flood = Array.from({ length: 20 }, (_, i) => read(`flood-${i}`, "team", "a"));
  const others = [
    read("flood-19", "team", "b"),
    read("c", "team", "c"),
    read("vote", "team", null),
    read("other", "baseline", "a"),
  ];
  while (asked.length < 23) {
    await new Promise(setImmediate);
    waiting.shift()?.();
  }
  for (const answer of waiting.splice(0)) answer();
  assert.deepEqual(
    (await Promise.all([...others, ...flood])).slice(0, 4).map((answer) => answer?.value),
    ["flood-19", "c", "vote", "other"],
  );
  // One read of the flood ran when the others arrived, and each has at most one more turn ahead of it.
  const early = asked.slice(1, 8);
  assert.ok(
    ["vote", "other", "flood-19", "c"].every((id) => early.includes(id)),
    asked.join(),
  );
});

test("a read that gets no turn fails only for its key", async () => {
  let end = (): void => undefined;
  const { read, setting } = open({
    timeoutMs: 20,
    maxConcurrent: 1,
    read: ({ id }) => (id === "slow" ? new Promise((resolve) => (end = () => resolve(0))) : Promise.resolve(1)),
  });
  const alive = setInterval(() => undefined, 1_000);
  const answers = await Promise.all([read("slow", "p", "a"), read("x", "p", "b")]);
  clearInterval(alive);
  assert.deepEqual(
    answers.map((answer) => answer?.fault),
    ["no_answer", "no_answer"],
  );
  assert.match(setting.logged.join(), /got no slot within the timeout/);
  end();
  await new Promise(setImmediate);
  const missed = (await read("x", "p", "b"))?.fault;
  assert.deepEqual([missed, (await read("x", "p", "c"))?.value], ["no_answer", 1]);
  assert.equal((await read("x", "p", "b"))?.value, 1, "an answer counts for all");
});

test("slow reads of one key leave slots for other keys", async () => {
  const { read } = open({
    timeoutMs: 10_000,
    maxConcurrent: 4,
    read: ({ id }) => (String(id).startsWith("slow") ? new Promise(() => undefined) : Promise.resolve(id as string)),
  });
  for (let i = 0; i < 20; i++) void read(`slow-${i}`, "p", "a");
  assert.deepEqual([(await read("b", "p", "b"))?.value, (await read("c", "p", "c"))?.value], ["b", "c"]);
});

test("a request is refused, and nothing decided, if too many of its key wait for a source", async () => {
  const answers: (() => void)[] = [];
  const { read } = open({
    timeoutMs: 10_000,
    read: () => new Promise((resolve) => answers.push(() => resolve(1))),
  });
  const waiting = Array.from({ length: 1_000 }, () => read("a"));
  await assert.rejects(read("a"), { code: "OVERLOADED" });
  const others = [read("a", "p", "other key"), read("a", "p", null), read("a", "other policy")];
  const shadow = await read("b", "p", "key", true);
  assert.equal(shadow?.fault, "no_answer", "a policy in shadow mode refuses nothing, and does not wait");
  await new Promise(setImmediate);
  for (const answer of answers) answer();
  assert.deepEqual(
    (await Promise.all([...others, ...waiting])).map((answer) => answer?.value),
    Array.from({ length: 1_003 }, () => 1),
  );
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

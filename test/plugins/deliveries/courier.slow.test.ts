/** The courier with failing notifiers, rows without a message and clock jumps. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Logger } from "../../../src/contract/host.ts";
import type { Ledger, LedgerTransaction } from "../../../src/contract/ledger.ts";
import { NotifierError, type Message, type Notifier } from "../../../src/contract/notifier.ts";
import type { DeliveryRow, Storage } from "../../../src/contract/storage.ts";
import { createCourier, type Courier, type CourierOptions } from "../../../plugins/deliveries/courier/courier.ts";
import type { MessageBuilder } from "../../../plugins/deliveries/courier/message.ts";
import { memoryStorage } from "../../../src/testing/memory-storage.ts";
import { deliveryRow, BASE_TIME } from "../../../src/testing/suite/rows.ts";
import { override } from "../../support/override.ts";
import { seals } from "../../support/seals.ts";
import { until } from "../../support/wait.ts";

const LINK = "https://assent.example/approve#apl1_WyJhIl0.c2VjcmV0";
const DAY = 86_400_000;

let storage: Storage;
let courier: Courier | null;
let logged: string[];
let now: number;
/** The notifier's behaviour by delivery id. Default: delivered. */
let plans: Map<string, (signal: AbortSignal) => unknown>;
let attempts: string[];

const note = (...args: unknown[]): void => void logged.push(JSON.stringify(args));
const log = { debug: note, info: note, warn: note, error: note } as unknown as Logger;
const ledger = {
  transact: (job: (tx: LedgerTransaction) => Promise<unknown>) =>
    storage.write((tx) =>
      job(
        new Proxy(tx, {
          get: (it, name) => (name === "now" ? now : Reflect.get(it, name)),
        }) as unknown as LedgerTransaction,
      ),
    ),
  onGrowth: () => () => {},
} as unknown as Ledger;
const messages: MessageBuilder = {
  build: (row) => Promise.resolve({ id: row.id, kind: row.kind, link: LINK, to: row.recipient } as unknown as Message),
};

function notifier(name: string): Notifier {
  return {
    name,
    deliver(message, signal) {
      attempts.push(message.id);
      return (plans.get(message.id)?.(signal) ?? Promise.resolve()) as Promise<void>;
    },
  };
}

function run(over: Partial<CourierOptions> = {}): void {
  courier = createCourier({
    storage,
    ledger,
    seals,
    log,
    messages,
    notifiers: [notifier("mail"), notifier("chat")],
    clock: () => now,
    timeoutMs: 60_000,
    keepMs: 30 * DAY,
    random: () => 0.5,
    lease: { isLeader: () => Promise.resolve(true), release: () => Promise.resolve() },
    ...over,
  });
  courier.start();
}

async function put(...rows: DeliveryRow[]): Promise<void> {
  await storage.write(async (tx) => {
    for (const { position: _, ...row } of rows) await tx.insertDelivery(row);
  });
}

const comes = (test: () => boolean | Promise<boolean>): Promise<void> => until(() => logged.join("\n"), test);

const row = (n: number, over: Partial<DeliveryRow> = {}): DeliveryRow =>
  deliveryRow(n, { give_up_at: BASE_TIME + 3 * DAY, ...over });
const known = async (n: number): Promise<DeliveryRow> => (await storage.delivery(`delivery-${n}`)) as DeliveryRow;

beforeEach(async () => {
  storage = memoryStorage();
  await storage.open();
  [courier, logged, now, plans, attempts] = [null, [], BASE_TIME, new Map(), []];
});
afterEach(async () => {
  await courier?.stop();
  await storage.close();
});

test("a delivery that ends while the next round reads the outbox is not repeated", async () => {
  await put(row(1));
  let finish = (): void => {};
  plans.set("delivery-1", () => new Promise<void>((resolve) => (finish = resolve)));
  let grow = (_size: number): void => {};
  let reads = 0;
  const slow = override(storage, {
    async dueDeliveries(...args: Parameters<Storage["dueDeliveries"]>) {
      const rows = await storage.dueDeliveries(...args);
      if (++reads !== 2) return rows;
      finish();
      await comes(async () => (await known(1)).state === "delivered");
      await new Promise((resolve) => setTimeout(resolve, 50));
      return rows;
    },
  });
  const growing = override(ledger, { onGrowth: (listener: (size: number) => void) => ((grow = listener), () => {}) });
  run({ storage: slow, ledger: growing });
  await comes(() => attempts.length === 1);
  grow(1);
  await comes(() => reads >= 3);
  assert.deepEqual(attempts, ["delivery-1"]);
});

describe("every return value of a notifier", () => {
  const answers: [string, unknown, string | null][] = [
    ["nothing", undefined, null],
    ["null", null, null],
    ["a text", "ok", null],
    ["a reference", { reference: "m-1" }, "m-1"],
    ["a number for a reference", { reference: 7 }, null],
    ["a reference that is too long", { reference: "x".repeat(501) }, null],
    ["half a surrogate pair", { reference: "a\ud83d" }, null],
    ["the link for a reference", { reference: LINK }, null],
    [
      "a getter that throws",
      {
        get reference() {
          throw new Error("boo");
        },
      },
      null,
    ],
  ];
  for (const [name, answer, reference] of answers) {
    test(`${name}: the message was delivered, once`, async () => {
      await put(row(1));
      plans.set("delivery-1", () => Promise.resolve(answer));
      run();
      await comes(async () => (await known(1)).state === "delivered");
      assert.deepEqual([(await known(1)).reference, attempts], [reference, ["delivery-1"]]);
    });
  }

  const retry = (retryAfterMs: number): Error => new NotifierError("later", { retryAfterMs });
  const failures: [string, unknown, string, number][] = [
    ["an error", new Error("no"), "no", 5000],
    ["nothing", undefined, "undefined", 5000],
    ["what has no text", Object.create(null), "the notifier failed without a message", 5000],
    [
      "an error whose message is none",
      Object.assign(new Error("x"), { message: { a: 1 } }),
      "the notifier failed without a message",
      5000,
    ],
    [
      "an error whose message throws",
      Object.defineProperty(new Error("x"), "message", {
        get() {
          throw new Error("boo");
        },
      }),
      "the notifier failed without a message",
      5000,
    ],
    ["half a surrogate pair", new Error("a\ud83d"), "a\ufffd", 5000],
    ["a pair where the text is cut", new Error(`${"x".repeat(499)}\u{1f600}y`), `${"x".repeat(499)}…`, 5000],
    [
      "the link",
      new Error(`POST {"link":"${LINK}"} failed`),
      'POST {"link":"https://assent.example/approve#apl1_…"} failed',
      5000,
    ],
    ["a pause that is no number", retry(Number.NaN), "later", 5000],
    ["a pause with a fraction", retry(6000.5), "later", 6001],
    ["a pause that never ends", retry(Infinity), "later", 3_600_000],
    ["a pause that is negative", retry(-1e9), "later", 5000],
  ];
  for (const [name, error, said, pause] of failures) {
    test(`${name}, rejected: the failure is counted, logged and retried`, async () => {
      await put(row(1));
      plans.set("delivery-1", () => Promise.reject(error));
      run();
      await comes(async () => (await known(1)).attempts === 1);
      const { state, last_error, next_at } = await known(1);
      assert.deepEqual([state, last_error, next_at - BASE_TIME], ["waiting", said, pause]);
      assert.ok(!logged.join().includes("apl1_W"), logged.join());
    });
  }
});

test("a message that cannot be built is counted and given up, and the next ones are sent", async () => {
  await put(row(1, { give_up_at: BASE_TIME + 1000 }), row(2));
  run({
    messages: {
      build: (it) => (it.id === "delivery-1" ? Promise.reject(new SyntaxError("not JSON")) : messages.build(it)),
    },
  });
  await comes(async () => (await known(2)).state === "delivered");
  const { state, attempts: tried, last_error } = await known(1);
  assert.deepEqual(
    [state, tried, last_error],
    ["dead", 1, "the message could not be built; see the log of the service"],
  );
});

test("a notifier that hangs with many destinations does not delay other notifiers", async () => {
  const hung = Array.from({ length: 40 }, (_, i) => row(i + 1, { destination: `mail ${i}` }));
  for (const { id } of hung)
    plans.set(
      id,
      (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("late")))),
    );
  await put(...hung, row(41, { destination: "chat ops", notifier: "chat" }));
  run();
  await comes(async () => (await known(41)).state === "delivered");
  assert.equal(attempts.filter((id) => id !== "delivery-41").length, 16);
});

test("a call that never ends times out, whether or not it is garbage collected", async () => {
  const bun = (globalThis as { Bun?: { gc(wait: boolean): void } }).Bun;
  if (bun === undefined) setFlagsFromString("--expose-gc");
  const collect = bun === undefined ? (runInNewContext("gc") as () => void) : () => bun.gc(true);
  await put(row(1));
  plans.set("delivery-1", () => new Promise(() => {}));
  run({ timeoutMs: 500 });
  await comes(async () => {
    collect();
    return (await known(1)).attempts === 1;
  });
  assert.equal((await known(1)).last_error, "the notifier did not respond within 0.5 s");
});

test("only the leader sends, and a delivery that another process settled meanwhile is not changed", async () => {
  let mine = false;
  await put(row(1));
  plans.set("delivery-1", async () => {
    await storage.write((tx) =>
      tx.updateDelivery(
        "delivery-1",
        { state: "waiting", attempts: 0 },
        { state: "delivered", attempts: 1, reference: "theirs", updated_at: BASE_TIME },
      ),
    );
    throw new Error("late");
  });
  let rounds = 0;
  let look = (): void => {};
  run({
    lease: { isLeader: () => (rounds++, Promise.resolve(mine)), release: () => Promise.resolve() },
    ledger: override<Ledger>(ledger, {
      onGrowth: (listener) => ((look = () => listener(0)), () => {}),
    }),
  });
  await comes(() => rounds === 1);
  // The second round begins after the first.
  look();
  await comes(() => rounds === 2);
  assert.deepEqual(attempts, []);
  mine = true;
  look();
  await comes(() => logged.some((line) => line.includes("late")));
  await courier?.stop();
  const { state, attempts: tried, reference, last_error } = await known(1);
  assert.deepEqual([state, tried, reference, last_error], ["delivered", 1, "theirs", null]);
});

test("a notifier whose calls never end is no longer called, until they end", async () => {
  const stuck: (() => void)[] = [];
  const rows = Array.from({ length: 60 }, (_, i) => row(i + 1, { destination: `mail ${i}` }));
  for (const { id } of rows) plans.set(id, () => new Promise<void>((resolve) => stuck.push(resolve)));
  await put(...rows);
  run({ timeoutMs: 50 });
  await comes(async () => (await storage.deliveries({ limit: 100 })).every((one) => one.attempts === 1));
  // Twenty that hang, and those in progress when the twentieth timed out.
  assert.ok(attempts.length >= 20 && attempts.length <= 36, String(attempts.length));
  assert.match(
    (await storage.deliveries({ limit: 100 })).map(({ last_error }) => last_error).join(),
    /earlier calls of the notifier "mail" have not ended/,
  );
  plans.clear();
  for (const end of stuck) end();
  now += 10_000;
  await comes(async () => (await storage.deliveries({ limit: 100 })).every(({ state }) => state === "delivered"));
});

test("a call that the shutdown aborted is not a failure, and none starts after it", async () => {
  await put(row(1), row(2, { destination: "chat ops", notifier: "chat" }));
  for (const id of ["delivery-1", "delivery-2"])
    plans.set(
      id,
      (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("cut")))),
    );
  run();
  await comes(() => attempts.length === 2);
  await courier?.stop();
  for (const n of [1, 2])
    assert.deepEqual(
      [(await known(n)).state, (await known(n)).attempts, (await known(n)).last_error],
      ["waiting", 0, null],
    );
});

test("reads during an attempt write nothing", async () => {
  const made = memoryStorage();
  await made.open();
  storage = made;
  await put(row(1));
  plans.set(
    "delivery-1",
    (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("late")))),
  );
  let look = (): void => {};
  run({
    ledger: override<Ledger>(ledger, {
      onGrowth: (listener) => ((look = () => listener(0)), () => {}),
    }),
  });
  await comes(() => attempts.length === 1);
  const looks = made.faults.calls("nextScheduledDelivery");
  for (let i = 1; i <= 20; i++) {
    look();
    await comes(() => made.faults.calls("nextScheduledDelivery") >= looks + i);
  }
  assert.equal(made.faults.calls("tx.releaseDeliveries"), 0);
});

test("stopping does not wait for retry delays, and leaves attempts in progress to the next start", async () => {
  await put(row(1));
  let written = false;
  const failing = override<Ledger>(ledger, {
    transact: (job: never) => (written ? ledger.transact(job) : Promise.reject(new Error("the store is away"))),
  });
  run({
    ledger: override<Ledger>(failing, {
      transact: (job: never) => (attempts.length > 0 ? failing.transact(job) : ledger.transact(job)),
    }),
  });
  await comes(() => logged.some((line) => line.includes("could not be stored")));
  assert.deepEqual(attempts, ["delivery-1"], "it is not sent again at once");
  await courier?.stop();
  written = true;
  assert.equal((await known(1)).state, "waiting");
  run();
  await comes(async () => (await known(1)).state === "delivered");
});

test("all old finished deliveries are removed, also on a clock that was set back", async () => {
  await put(...Array.from({ length: 1500 }, (_, i) => row(i + 1, { state: "delivered", action_id: null })));
  now = BASE_TIME + 31 * DAY;
  run({ keepMs: 30 * DAY });
  await comes(async () => (await storage.deliveries({ limit: 1 })).length === 0);
  now = BASE_TIME;
  await put(row(1501, { state: "delivered", action_id: null, updated_at: BASE_TIME - 31 * DAY }));
  await comes(async () => (await storage.delivery("delivery-1501")) === null);
});

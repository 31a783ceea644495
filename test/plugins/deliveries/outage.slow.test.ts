/** Unreachable destinations: one probe at a time, then all queued messages, the first to expire first. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { Logger } from "../../../src/contract/host.ts";
import type { Ledger, LedgerTransaction } from "../../../src/contract/ledger.ts";
import type { Message } from "../../../src/contract/notifier.ts";
import type { DeliveryRow, Storage } from "../../../src/contract/storage.ts";
import { createCourier, type Courier } from "../../../plugins/deliveries/courier/courier.ts";
import { memoryStorage } from "../../../src/testing/memory-storage.ts";
import { deliveryRow, BASE_TIME } from "../../../src/testing/suite/rows.ts";
import { seals } from "../../support/seals.ts";
import { pause, until } from "../../support/wait.ts";

const DAY = 86_400_000;
const MINUTE = 60_000;

let storage: Storage;
let courier: Courier;
let now: number;
let look: () => void;
/** Ids of deliveries that fail; all of them while `away`. */
let bad: Set<string>;
let away: boolean;
let attempts: string[];

const ledger = {
  transact: (job: (tx: LedgerTransaction) => Promise<unknown>) =>
    storage.write((tx) =>
      job(
        new Proxy(tx, {
          get: (it, name) => (name === "now" ? now : Reflect.get(it, name)),
        }) as unknown as LedgerTransaction,
      ),
    ),
  onGrowth: (listener: () => void) => ((look = listener), () => {}),
} as unknown as Ledger;
const silent = { debug() {}, info() {}, warn() {}, error() {} } as unknown as Logger;

const row = (n: number, over: Partial<DeliveryRow> = {}): DeliveryRow =>
  deliveryRow(n, { give_up_at: BASE_TIME + 3 * DAY, ...over });
const known = async (n: number): Promise<DeliveryRow> => (await storage.delivery(`delivery-${n}`)) as DeliveryRow;
const tried = (): number[] => attempts.map((id) => Number(id.slice(9)));

async function put(...rows: DeliveryRow[]): Promise<void> {
  await storage.write(async (tx) => {
    for (const { position: _, ...one } of rows) await tx.insertDelivery(one);
  });
  look();
}

/** Maximum number of steps of the clock while a test waits. Only a failing test reaches it. */
const MAX_STEPS = 20_000;

/** Advances the clock until `holds` returns true. Does not use `until`, which polls less often the longer it waits. */
async function advanceUntil(what: () => string, holds: () => boolean | Promise<boolean>, by = 1000): Promise<void> {
  for (let steps = 0; !(await holds()); steps++) {
    assert.ok(steps < MAX_STEPS, what());
    now += by;
    look();
    await pause(2);
  }
}

/** Advances the clock until there are `count` attempts. */
async function go(count: number): Promise<void> {
  await advanceUntil(
    () => `${count} attempts, and not ${tried().join()}`,
    () => attempts.length >= count,
  );
  await settled();
}

/** Waits until the last attempt is recorded. */
async function settled(): Promise<void> {
  const id = attempts.at(-1) as string;
  const times = attempts.filter((other) => other === id).length;
  await until("it is recorded", async () => (await storage.delivery(id))?.attempts === times);
}

beforeEach(async () => {
  storage = memoryStorage();
  await storage.open();
  [now, bad, away, attempts] = [BASE_TIME, new Set(), true, []];
  courier = createCourier({
    storage,
    ledger,
    seals,
    log: silent,
    messages: { build: (one) => Promise.resolve({ id: one.id, kind: one.kind } as unknown as Message) },
    notifiers: [
      {
        name: "mail",
        deliver(message) {
          attempts.push(message.id);
          return away || bad.has(message.id) ? Promise.reject(new Error("no route")) : Promise.resolve();
        },
      },
    ],
    clock: () => now,
    timeoutMs: MINUTE,
    keepMs: 30 * DAY,
    random: () => 0.5,
    lease: { isLeader: () => Promise.resolve(true), release: () => Promise.resolve() },
  });
  courier.start();
});
afterEach(async () => {
  await courier.stop();
  await storage.close();
});

test("while a destination is unreachable one message at a time is tried, and queued ones show why and until when", async () => {
  await put(row(1, { give_up_at: BASE_TIME + 100 * MINUTE }), row(2, { give_up_at: BASE_TIME + 200 * MINUTE }));
  await go(1);
  assert.deepEqual(tried(), [1]);
  await until("the other is deferred", async () => (await known(2)).next_at > now);
  assert.deepEqual(
    [(await known(2)).attempts, (await known(2)).last_error, (await known(1)).last_error],
    [0, "its destination failed: no route", "no route"],
  );
  await put(row(3, { give_up_at: BASE_TIME + 50 * MINUTE, next_at: now }));
  await until("the new one is deferred", async () => (await known(3)).next_at > now);
  assert.deepEqual(tried(), [1], "a new message is no reason for another probe");
});

test("requests that expire are probed at least about once a minute, and after one success all queued messages follow", async () => {
  await put(row(1, { give_up_at: BASE_TIME + 900 * MINUTE }));
  const begun = now;
  await go(30);
  assert.ok(now - begun <= 30 * 62_000, `30 probes in ${(now - begun) / MINUTE} minutes`);
  await put(
    row(2, { give_up_at: BASE_TIME + 800 * MINUTE, next_at: now }),
    row(3, { give_up_at: BASE_TIME + 300 * MINUTE, next_at: now }),
    row(4, { give_up_at: BASE_TIME + 400 * MINUTE, next_at: now }),
  );
  await go(attempts.length + 1);
  away = false;
  const before = attempts.length;
  await go(before + 1);
  const recovered = now;
  await until("all are there", () => {
    look();
    return attempts.length >= before + 4;
  });
  assert.equal(now, recovered, "nobody waits once it works");
  const last = tried().slice(before);
  assert.deepEqual([...last].sort(), [1, 2, 3, 4]);
  // Untried messages go ahead of tried ones, each group by expiry.
  const order = [4, 2, 3, 1];
  assert.deepEqual(
    last.slice(1),
    order.filter((n) => n !== last[0]),
  );
});

test("a message that fails because of its content delays the others only briefly", async () => {
  away = false;
  bad.add("delivery-1");
  await put(row(1, { give_up_at: BASE_TIME + 100 * MINUTE }));
  await go(6);
  await put(...[2, 3, 4].map((n) => row(n, { give_up_at: BASE_TIME + 200 * MINUTE, next_at: now })));
  const begun = now;
  await advanceUntil(
    () => "the others are not delivered",
    async () => (await Promise.all([2, 3, 4].map(known))).every(({ state }) => state === "delivered"),
  );
  assert.ok(now - begun < 5 * MINUTE, `${(now - begun) / 1000} s`);
  assert.equal((await known(1)).state, "waiting");
});

test("events keep their order after failures, and delay no requests for approval", async () => {
  away = false;
  bad.add("delivery-1");
  await put(...[1, 2, 3].map((n) => row(n, { kind: "event", action_id: null })));
  await go(3);
  assert.deepEqual(tried(), [1, 1, 1]);
  await put(row(4, { give_up_at: BASE_TIME + 100 * MINUTE, next_at: now }));
  await advanceUntil(
    () => "the request for approval is not delivered",
    async () => (await known(4)).state === "delivered",
  );
  bad.clear();
  await advanceUntil(
    () => "the events are not delivered",
    async () => (await known(3)).state === "delivered",
    10_000,
  );
  assert.deepEqual(
    tried()
      .filter((n, i, all) => n !== 4 && all[i - 1] !== n && all.indexOf(n) >= 0)
      .filter((n, i, all) => all.indexOf(n) === i),
    [1, 2, 3],
  );
});

test("a requested retry is made immediately, although its destination failed", async () => {
  await put(row(1), row(2));
  await go(3);
  away = false;
  const made = attempts.length;
  const waiting = await known(2);
  await storage.write((tx) =>
    tx.updateDelivery(waiting.id, waiting, { state: "waiting", next_at: now, updated_at: now }),
  );
  look();
  await until("it is tried", () => attempts.length > made);
  assert.equal(tried()[made], 2);
});

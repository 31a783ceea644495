/** Cases for deliveries. */
import assert from "./assert.ts";
import { type DeliveryRow, type StorageReader, type StorageTransaction } from "../../contract/storage.ts";
import { actionRow, deliveryRow, BASE_TIME, limitUseRow, type DefineCase, isStorageError } from "./rows.ts";

const idsOf = (rows: readonly DeliveryRow[]): string[] => rows.map(({ id }) => id);

async function insert(tx: StorageTransaction, ...rows: readonly DeliveryRow[]): Promise<void> {
  for (const { position: _, ...row } of rows) await tx.insertDelivery(row);
}

export function deliveryCases(test: DefineCase): void {
  test("a delivery is returned as it was stored, with the position that the store assigned", async ({
    storage,
    reopen,
  }) => {
    const rows = [
      deliveryRow(1),
      deliveryRow(2, {
        kind: "event",
        action_id: null,
        person: null,
        channel: null,
        recipient: 'a\u0000"é',
        state: "dead",
        last_error: "no",
        reference: "r",
        delivered_at: BASE_TIME + 1,
      }),
      deliveryRow(3, { state: "scheduled", next_at: BASE_TIME + 5 }),
    ];
    await storage.write((tx) => insert(tx, rows[0] as DeliveryRow, rows[1] as DeliveryRow));
    await storage.write((tx) => insert(tx, rows[2] as DeliveryRow));
    const reopened = await reopen();
    for (const row of rows) assert.deepEqual(await reopened.delivery(row.id), row);
    assert.equal(await reopened.delivery("delivery-4"), null);
    assert.deepEqual(await reopened.deliveriesOfAction("action-1"), [rows[0]]);
    await assert.rejects(
      reopened.write((tx) => insert(tx, deliveryRow(4, { id: "delivery-1" }))),
      isStorageError,
    );
  });

  test("deliveries are listed newest first, by every filter", async ({ storage }) => {
    await storage.write((tx) =>
      insert(
        tx,
        deliveryRow(1),
        deliveryRow(2, { state: "dead", action_id: "action-1" }),
        deliveryRow(3, { destination: "hook ops" }),
        deliveryRow(4, { state: "dead", destination: "hook ops" }),
      ),
    );
    const list = async (
      filter: Omit<Parameters<StorageReader["deliveries"]>[0], "limit"> & { limit?: number },
    ): Promise<string[]> => idsOf(await storage.deliveries({ limit: 10, ...filter }));
    assert.deepEqual(await list({}), ["delivery-4", "delivery-3", "delivery-2", "delivery-1"]);
    assert.deepEqual(await list({ state: "dead" }), ["delivery-4", "delivery-2"]);
    assert.deepEqual(await list({ destination: "hook ops", state: "dead" }), ["delivery-4"]);
    assert.deepEqual(await list({ action_id: "action-1" }), ["delivery-2", "delivery-1"]);
    assert.deepEqual(await list({ before_position: 3, limit: 1 }), ["delivery-2"]);
    assert.deepEqual(await list({ offset: 1, limit: 2 }), ["delivery-3", "delivery-2"]);
  });

  test("each destination has one due delivery: the unattempted delivery with the earliest give_up_at; of its events, only the first can be due", async ({
    storage,
  }) => {
    const event = { kind: "event", destination: "hook ops" } as const;
    await storage.write((tx) =>
      insert(
        tx,
        deliveryRow(1, { state: "delivered", give_up_at: BASE_TIME + 1 }),
        deliveryRow(2, { give_up_at: BASE_TIME + 500, next_at: BASE_TIME + 10 }),
        deliveryRow(3),
        deliveryRow(4, { give_up_at: BASE_TIME + 900 }),
        deliveryRow(5, { ...event, next_at: BASE_TIME + 2 }),
        deliveryRow(6, event),
        deliveryRow(7, { attempts: 1, give_up_at: BASE_TIME + 1 }),
        deliveryRow(8, { destination: "chat", state: "scheduled", next_at: BASE_TIME + 1 }),
      ),
    );
    assert.deepEqual(idsOf(await storage.dueDeliveries(BASE_TIME - 1, 10)), []);
    assert.deepEqual(idsOf(await storage.dueDeliveries(BASE_TIME, 10)), ["delivery-4"]);
    assert.deepEqual(idsOf(await storage.dueDeliveries(BASE_TIME + 2, 10)), ["delivery-4", "delivery-5"]);
    assert.deepEqual(idsOf(await storage.dueDeliveries(BASE_TIME + 10, 10)), ["delivery-2", "delivery-5"]);
    assert.deepEqual(idsOf(await storage.dueDeliveries(BASE_TIME + 10, 1)), ["delivery-2"]);
    assert.equal(await storage.nextScheduledDelivery(), BASE_TIME + 1);
    await storage.write((tx) => insert(tx, deliveryRow(9, { destination: "hook ops", give_up_at: BASE_TIME + 2000 })));
    assert.deepEqual(
      idsOf(await storage.dueDeliveries(BASE_TIME, 10)),
      ["delivery-4", "delivery-9"],
      "other messages overtake an event",
    );
  });

  test("waiting deliveries of a destination are deferred and advanced together", async ({ storage }) => {
    await storage.write((tx) =>
      insert(
        tx,
        deliveryRow(1, { attempts: 1, next_at: BASE_TIME + 5 }),
        deliveryRow(2),
        deliveryRow(3, { kind: "event" }),
        deliveryRow(4, { next_at: BASE_TIME + 50 }),
        deliveryRow(5, { state: "scheduled" }),
        deliveryRow(6, { destination: "chat" }),
      ),
    );
    const deferral = {
      except: "delivery-1",
      events: BASE_TIME + 30,
      others: BASE_TIME + 20,
      last_error: "away",
      updated_at: BASE_TIME + 3,
    };
    const deferred = async (destination: string): Promise<number> =>
      storage.write((tx) => tx.deferDeliveries(destination, deferral));
    const times = async (): Promise<number[]> =>
      (await storage.deliveries({ limit: 10 })).reverse().map(({ next_at }) => next_at - BASE_TIME);
    const { destination } = deliveryRow(1);
    assert.equal(await deferred("nobody"), 0);
    assert.equal(await deferred(destination), 2);
    assert.deepEqual(await times(), [5, 20, 30, 50, 0, 0]);
    const second = await storage.delivery("delivery-2");
    assert.deepEqual([second?.last_error, second?.updated_at, second?.attempts], ["away", BASE_TIME + 3, 0]);
    assert.equal(
      await storage.write((tx) =>
        tx.deferDeliveries(destination, { ...deferral, except: "none", others: BASE_TIME + 6 }),
      ),
      1,
    );
    const first = await storage.delivery("delivery-1");
    assert.deepEqual(
      [first?.next_at, first?.last_error],
      [BASE_TIME + 6, null],
      "a delivery that was attempted keeps its own error",
    );
    assert.equal(await deferred(destination), 0, "all of them are already deferred to this time");
    assert.equal(await storage.write((tx) => tx.hastenDeliveries(destination, 0, BASE_TIME + 4)), 3);
    assert.deepEqual(await times(), [6, 4, 4, 4, 0, 0]);
    assert.equal(await storage.write((tx) => tx.hastenDeliveries(destination, 1, BASE_TIME + 4)), 1);
    assert.deepEqual(await times(), [4, 4, 4, 4, 0, 0]);
  });

  test("waiting and dead deliveries are counted, with the oldest of each", async ({ storage }) => {
    const none = { count: 0, oldest: null };
    assert.deepEqual(await storage.deliveryBacklog(), { scheduled: none, waiting: none, dead: none });
    await storage.write((tx) =>
      insert(
        tx,
        deliveryRow(1, { created_at: BASE_TIME + 5 }),
        deliveryRow(2, { created_at: BASE_TIME + 3 }),
        deliveryRow(3, { state: "dead", created_at: BASE_TIME + 2 }),
        deliveryRow(4, { state: "delivered", created_at: BASE_TIME + 1 }),
        deliveryRow(5, { state: "obsolete", created_at: BASE_TIME + 1 }),
      ),
    );
    assert.deepEqual(await storage.deliveryBacklog(), {
      scheduled: none,
      waiting: { count: 2, oldest: BASE_TIME + 3 },
      dead: { count: 1, oldest: BASE_TIME + 2 },
    });
  });

  test("a scheduled delivery becomes waiting at its time", async ({ storage }) => {
    await storage.write((tx) =>
      insert(
        tx,
        deliveryRow(1, { state: "scheduled", next_at: BASE_TIME + 5 }),
        deliveryRow(2, { state: "scheduled", next_at: BASE_TIME + 6 }),
      ),
    );
    assert.equal(await storage.write((tx) => tx.releaseDeliveries(BASE_TIME + 4)), 0);
    assert.equal(await storage.write((tx) => tx.releaseDeliveries(BASE_TIME + 5)), 1);
    assert.deepEqual(idsOf(await storage.dueDeliveries(BASE_TIME + 5, 10)), ["delivery-1"]);
    assert.equal((await storage.delivery("delivery-2"))?.state, "scheduled");
  });

  test("a delivery changes only if it has the expected state and number of attempts", async ({ storage, reopen }) => {
    await storage.write((tx) => insert(tx, deliveryRow(1)));
    const seen = { state: "waiting", attempts: 0 } as const;
    const change = {
      state: "waiting",
      attempts: 1,
      next_at: BASE_TIME + 9,
      last_error: "refused",
      updated_at: BASE_TIME + 2,
    } as const;
    assert.equal(await storage.write((tx) => tx.updateDelivery("delivery-1", { ...seen, attempts: 1 }, change)), false);
    assert.equal(
      await storage.write((tx) => tx.updateDelivery("delivery-1", { ...seen, state: "dead" }, change)),
      false,
    );
    assert.equal(await storage.write((tx) => tx.updateDelivery("delivery-2", seen, change)), false);
    assert.deepEqual(await storage.delivery("delivery-1"), deliveryRow(1));
    assert.equal(await storage.write((tx) => tx.updateDelivery("delivery-1", seen, change)), true);
    assert.deepEqual(await (await reopen()).delivery("delivery-1"), deliveryRow(1, change));
    const done = {
      state: "delivered",
      delivered_at: BASE_TIME + 3,
      reference: "m1",
      last_error: null,
      updated_at: BASE_TIME + 3,
    } as const;
    const reopened = await reopen();
    assert.equal(
      await reopened.write((tx) => tx.updateDelivery("delivery-1", { state: "waiting", attempts: 1 }, done)),
      true,
    );
    assert.deepEqual(await reopened.delivery("delivery-1"), deliveryRow(1, { ...change, ...done }));
    assert.deepEqual(await reopened.dueDeliveries(BASE_TIME + 99, 10), []);
  });

  test("only finished deliveries are pruned, and positions continue", async ({ storage }) => {
    await storage.write((tx) =>
      insert(
        tx,
        deliveryRow(1, { state: "delivered" }),
        deliveryRow(2),
        deliveryRow(3, { state: "dead", updated_at: BASE_TIME + 1 }),
        deliveryRow(4, { state: "obsolete" }),
        deliveryRow(5, { state: "scheduled" }),
        deliveryRow(6),
      ),
    );
    assert.equal(await storage.write((tx) => tx.pruneDeliveries(BASE_TIME + 1, 1)), 1);
    assert.equal(await storage.write((tx) => tx.pruneDeliveries(BASE_TIME + 1, 10)), 1);
    assert.deepEqual(idsOf(await storage.deliveries({ limit: 10 })), [
      "delivery-6",
      "delivery-5",
      "delivery-3",
      "delivery-2",
    ]);
    await storage.write((tx) => insert(tx, deliveryRow(7)));
    assert.equal((await storage.delivery("delivery-7"))?.position, 7);
  });

  test("deliveries of a pending action are not pruned", async ({ storage }) => {
    await storage.write(async (tx) => {
      await tx.insertAction(actionRow(1, { status: "pending_approval" }));
      await tx.insertAction(actionRow(2));
      await insert(
        tx,
        deliveryRow(1, { state: "delivered" }),
        deliveryRow(2, { state: "delivered" }),
        deliveryRow(3, { state: "delivered", action_id: null }),
      );
      assert.equal(await tx.pruneDeliveries(BASE_TIME + 1, 10), 2);
    });
    assert.deepEqual(idsOf(await storage.deliveries({ limit: 10 })), ["delivery-1"]);
    await storage.write((tx) =>
      tx.updateAction("action-1", { status: "pending_approval" }, { status: "denied", updated_at: BASE_TIME + 5 }),
    );
    assert.equal(await storage.write((tx) => tx.pruneDeliveries(BASE_TIME + 1, 10)), 1);
  });

  test("a transaction that is rolled back neither adds nor removes deliveries and limit uses", async ({ storage }) => {
    await storage.write(async (tx) => {
      await insert(tx, deliveryRow(1, { state: "dead" }));
      await tx.insertLimitUse(limitUseRow(1));
    });
    const stop = new Error("stop");
    await assert.rejects(
      storage.write(async (tx) => {
        await insert(tx, deliveryRow(2));
        await tx.insertLimitUse(limitUseRow(2));
        await tx.pruneDeliveries(BASE_TIME + 99, 10);
        await tx.releaseLimitUses("action-1");
        assert.deepEqual(await tx.limitUsed("payments", "refunds a day", "agent-1", BASE_TIME), {
          count: 1,
          sum: 2_000_000,
        });
        throw stop;
      }),
      stop,
    );
    assert.deepEqual(idsOf(await storage.deliveries({ limit: 10 })), ["delivery-1"]);
    assert.deepEqual(await storage.limitUsed("payments", "refunds a day", "agent-1", BASE_TIME), {
      count: 1,
      sum: 1_000_000,
    });
  });
}

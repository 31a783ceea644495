/** The message that is built for an action when its delivery is due, and the cases without a message. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { afterEach, beforeEach, test } from "node:test";
import type { ApprovalMessage, ClosedMessage } from "../../src/contract/notifier.ts";
import type { DeliveryRow, Storage } from "../../src/contract/storage.ts";
import { emptyPolicySet } from "../../src/domain/policy/compile/compile.ts";
import { checkToken } from "../../src/domain/tokens.ts";
import { createMessageBuilder, isObsolete } from "../../src/delivery/message.ts";
import { memoryStorage } from "../../src/testing/memory-storage.ts";
import { actionRow, approvalRow, deliveryRow, BASE_TIME } from "../../src/testing/suite/rows.ts";
import { sealed, seals } from "../support/seals.ts";

const mac = (message: Uint8Array): Uint8Array => new Uint8Array(createHmac("sha256", "s").update(message).digest());
const EXPIRES = BASE_TIME + 1000;
const action = actionRow(1, { status: "pending_approval", quorum: 2, expires_at: EXPIRES });

let storage: Storage;
let now: number;
beforeEach(async () => {
  now = BASE_TIME;
  storage = memoryStorage();
  await storage.open();
  await storage.write((tx) => tx.insertAction(action));
});
afterEach(() => storage.close());

const row = (n: number, over: Partial<DeliveryRow> = {}): DeliveryRow =>
  sealed(deliveryRow(n, { action_id: action.id, ...over }));

/** Returns the message for the last of these rows, or the reason why there is none. */
async function said(...rows: DeliveryRow[]): Promise<ApprovalMessage | ClosedMessage | string> {
  await storage.write(async (tx) => {
    for (const { position: _, ...one } of rows) await tx.insertDelivery(one);
  });
  const built = await createMessageBuilder({
    storage,
    seals,
    clock: () => now,
    mac,
    policies: async () => emptyPolicySet(),
    publicUrl: () => "https://assent.example",
  }).build(rows.at(-1) as DeliveryRow);
  return isObsolete(built) ? built.obsoleteReason : (built as ApprovalMessage);
}

test("a request contains a link for its person only, valid for exactly this action until it expires", async () => {
  const { link, person } = (await said(row(1, { person: "DANA " }))) as ApprovalMessage;
  const [address, token = ""] = link.split("#");
  assert.deepEqual([address, person], ["https://assent.example/approve", "DANA "]);
  const claims = {
    action_id: action.id,
    request_hash: action.request_hash,
    approver: "owner:dana",
    expires_at: EXPIRES,
  };
  assert.equal(checkToken("link", token, claims, mac), "ok");
});

test("a message to a group or channel contains a link without a token", async () => {
  assert.equal(
    ((await said(row(1, { person: null }))) as ApprovalMessage).link,
    `https://assent.example/approve#${action.id}`,
  );
});

test("no one is notified after the expiry, whether or not it is recorded", async () => {
  now = EXPIRES - 1;
  assert.equal(typeof (await said(row(1))), "object");
  now = EXPIRES;
  assert.equal(await said(row(2)), "the action is no longer waiting");
});

test("a person who has already voted, by any method, gets no request", async () => {
  await storage.write((tx) => tx.insertApproval(approvalRow(action.id, "owner:dana")));
  assert.equal(await said(row(1, { person: "Dana" })), "this person has voted");
  assert.equal(typeof (await said(row(2, { person: "ben" }))), "object");
});

for (const kind of ["approval_reminder", "approval_closed"] as const) {
  test(`${kind} follows a request that was delivered to the same person at the same place`, async () => {
    const asked = row(1, { state: "delivered", reference: "m-1" });
    assert.equal(((await said(asked, row(2, { kind }))) as ApprovalMessage).reference, "m-1");
    const missed = "the request itself was not delivered";
    assert.equal(await said(row(3, { kind, destination: "mail other" })), missed);
    assert.equal(await said(row(4, { kind, person: "ben" })), missed);
    for (const state of ["dead", "obsolete", "waiting"] as const)
      assert.equal(
        await said(
          row(5, { id: `r-${state}`, destination: state, state }),
          row(6, { id: `m-${state}`, destination: state, kind }),
        ),
        missed,
      );
  });
}

test("an outcome is sent whenever it is due", async () => {
  now = EXPIRES + 1;
  assert.equal(typeof (await said(row(1, { state: "delivered" }), row(2, { kind: "approval_closed" }))), "object");
});

test("an action or entry that does not exist has no message", async () => {
  assert.equal(await said(row(1, { action_id: "nothing" })), "the action does not exist");
  assert.equal(await said(row(2, { kind: "event", seq: 99 })), "the entry does not exist");
});

/** The message that is built for an action when its delivery is due, and the cases without a message. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { afterEach, beforeEach, test } from "node:test";
import type { ApprovalMessage, ClosedMessage } from "../../../src/contract/notifier.ts";
import type { DeliveryRow, Storage } from "../../../src/contract/storage.ts";
import { emptyPolicySet } from "../../../src/domain/policy/compile/compile.ts";
import { checkToken } from "../../../src/domain/tokens.ts";
import { PersistentMap } from "../../../src/domain/persistent-map.ts";
import { newUser, type User, type Users } from "../../../src/domain/users.ts";
import { createMessageBuilder, isObsolete } from "../../../plugins/deliveries/courier/message.ts";
import { createGroupService } from "../../../src/identity/groups.ts";
import { memoryStorage } from "../../../src/testing/memory-storage.ts";
import { actionRow, approvalRow, deliveryRow, BASE_TIME } from "../../../src/testing/suite/rows.ts";
import { sealed, seals } from "../../support/seals.ts";

const mac = (message: Uint8Array): Uint8Array => new Uint8Array(createHmac("sha256", "s").update(message).digest());
const EXPIRES = BASE_TIME + 1000;
const action = actionRow(1, { status: "pending_approval", quorum: 2, expires_at: EXPIRES });

let storage: Storage;
let now: number;
let users: Users;
beforeEach(async () => {
  now = BASE_TIME;
  users = PersistentMap.of(["dana", "ben"].map((id) => [id, someone(id)]));
  storage = memoryStorage();
  await storage.open();
  await storage.write((tx) => tx.insertAction(action));
});
afterEach(() => storage.close());

const someone = (id: string, about: Partial<User> = {}): User =>
  newUser(id, BASE_TIME, { name: "Dana", roles: ["approver"], groups: [], ...about });
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
    notices: [],
    clock: () => now,
    mac,
    policies: async () => emptyPolicySet(),
    publicUrl: () => "https://assent.example",
    users: async () => users,
    groups: createGroupService({ billing: { members: ["user:ben"], agents: ["billing-*"] } }),
  }).build(rows.at(-1) as DeliveryRow);
  return isObsolete(built) ? built.obsoleteReason : (built as ApprovalMessage);
}

test("a request contains a link for its person only, valid for exactly this action until it expires", async () => {
  const { link, person } = (await said(row(1, { person: "user:dana" }))) as ApprovalMessage;
  const [address, token = ""] = link.split("#");
  assert.deepEqual([address, person], ["https://assent.example/approve", "user:dana"]);
  const claims = {
    action_id: action.id,
    request_hash: action.request_hash,
    approver: "user:dana",
    expires_at: EXPIRES,
  };
  assert.equal(checkToken("link", token, claims, mac), "ok");
});

test("nothing is sent to a person who was deactivated, lost the role, or may not see the action", async () => {
  const hidden = "the person may no longer see the action, or approve it";
  assert.equal(await said(row(1, { person: "user:ben" })), hidden);
  for (const [i, about] of [
    { ended_at: "2026-01-01T00:00:00.000Z" },
    { roles: ["viewer"] },
    { groups: ["billing"] },
  ].entries()) {
    users = PersistentMap.of([["dana", someone("dana", about)]]);
    assert.equal(await said(row(2 + i, { person: "user:dana" })), hidden, JSON.stringify(about));
  }
});

test("a message has the names of the people in it, and the id beside a name that two users have", async () => {
  await storage.write((tx) => tx.insertApproval(approvalRow(action.id, "user:dana")));
  const { names } = ((await said(row(1, { person: null }))) as ApprovalMessage).action;
  assert.equal(names["user:dana"], "Dana (user:dana)");
  users = PersistentMap.of([["dana", someone("dana")]]);
  assert.equal(((await said(row(2, { person: null }))) as ApprovalMessage).action.names["user:dana"], "Dana");
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
  await storage.write((tx) => tx.insertApproval(approvalRow(action.id, "user:dana")));
  assert.equal(await said(row(1, { person: "user:dana" })), "this person has voted");
  assert.equal(typeof (await said(row(2, { person: null }))), "object");
});

for (const kind of ["approval_reminder", "approval_closed"] as const) {
  test(`${kind} follows a request that was delivered to the same person at the same place`, async () => {
    const asked = row(1, { state: "delivered", reference: "m-1" });
    assert.equal(((await said(asked, row(2, { kind }))) as ApprovalMessage).reference, "m-1");
    const missed = "the request itself was not delivered";
    assert.equal(await said(row(3, { kind, destination: "mail other" })), missed);
    assert.equal(await said(row(4, { kind, person: null })), missed);
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

/** `assent audit` recomputes users from their entries. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { UserEntry } from "../../../src/domain/entries.ts";
import { newUser, type User } from "../../../src/domain/users.ts";
import { auditUsers } from "../../support/user-audit.ts";

const AT = "2026-01-01T00:00:00.000Z";
const entry = (change: UserEntry["change"], user: User): Record<string, unknown> => ({
  type: "user",
  v: 1,
  at: AT,
  change,
  user,
  reason: null,
  confirmed_by: null,
  by: null,
});
const user = (id: string, about: Partial<User> = {}): User =>
  newUser(id, 0, { name: id, roles: ["approver"], groups: [], ...about });
const passkey = { id: "key", public_key: "AA", origin: "http://assent.localhost:8000", name: "Passkey", added_at: AT };
const by = { key_id: "ada", principal: "user:ada", agent_id: null, owner: "ada" };
const vote = { type: "approval", verdict: "approve", by };

const IMPOSSIBLE: Record<string, [RegExp, ...Record<string, unknown>[]]> = {
  "a change of a user who was never created": [/never created/, entry("updated", user("ada"))],
  "a user who is created twice": [/created twice/, entry("created", user("ada")), entry("created", user("ada"))],
  "a passkey that appears in a change of the name": [
    /without an enrolment/,
    entry("created", user("ada")),
    entry("updated", user("ada", { passkeys: [passkey] })),
  ],
  "a change of an ended user": [
    /after the deactivation/,
    entry("created", user("ada")),
    entry("ended", user("ada", { ended_at: AT })),
    entry("updated", user("ada")),
  ],
  "a passkey of two users": [
    /belongs to the user ada/,
    entry("created", user("ada")),
    entry("passkey_added", user("ada", { passkeys: [passkey] })),
    entry("created", user("bob")),
    entry("passkey_added", user("bob", { passkeys: [passkey] })),
  ],
  "an identity of two users": [
    /belongs to the user ada/,
    entry("created", user("ada", { identities: [{ issuer: "https://id.example", subject: "1" }] })),
    entry("created", user("bob", { identities: [{ issuer: "https://id.example", subject: "1" }] })),
  ],
  "a passkey that a user added without a confirmation": [
    /did not confirm the change "passkey_added"/,
    entry("created", user("ada", { passkeys: [passkey] })),
    { ...entry("passkey_added", user("ada", { passkeys: [passkey, { ...passkey, id: "new" }] })), by },
  ],
  "new recovery codes without a confirmation": [
    /did not confirm the change "recovery_codes_created"/,
    entry("created", user("ada", { passkeys: [passkey] })),
    entry("recovery_codes_created", user("ada", { passkeys: [passkey] })),
  ],
  "a change that is confirmed with the passkey that it adds": [
    /with a passkey that the user ada did not have/,
    entry("created", user("ada", { passkeys: [passkey] })),
    {
      ...entry("passkey_added", user("ada", { passkeys: [passkey, { ...passkey, id: "new" }] })),
      by,
      confirmed_by: "new",
    },
  ],
  "a confirmation of a change that needs none": [
    /with a passkey that the user ada did not have/,
    entry("created", user("ada", { passkeys: [passkey] })),
    { ...entry("updated", user("ada", { passkeys: [passkey] })), confirmed_by: "key" },
  ],
  "a vote of a user who was never created": [/does not exist/, vote],
  "a vote of a user who was ended": [
    /after that user was deactivated/,
    entry("created", user("ada")),
    entry("ended", user("ada", { ended_at: AT })),
    vote,
  ],
  "a vote of a user whose roles do not include approving": [
    /did not include approving/,
    entry("created", user("ada", { roles: ["viewer"] })),
    vote,
  ],
};

for (const [what, [message, ...bodies]] of Object.entries(IMPOSSIBLE))
  test(`the audit rejects ${what}`, () => assert.throws(() => auditUsers(bodies), message));

test("the audit accepts the complete history of a user", () => {
  auditUsers([
    entry("created", user("ada")),
    entry("passkey_added", user("ada", { passkeys: [passkey] })),
    vote,
    entry("ended", user("ada", { passkeys: [passkey], ended_at: AT })),
    entry("resumed", user("ada", { passkeys: [passkey] })),
    vote,
  ]);
});

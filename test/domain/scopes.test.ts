/** Scopes that an agent's own key must not have. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PRESETS, privilegesIn, SCOPES } from "../../src/domain/scopes.ts";

test("a key that can vote, govern or receive credentials is privileged, and one of the preset agent is not", () => {
  assert.deepEqual(privilegesIn(PRESETS.agent), []);
  for (const scope of ["admin", "approvals:decide", "credentials:receive", "keys:manage"] as const) {
    assert.ok(SCOPES.includes(scope));
    assert.deepEqual(privilegesIn(["actions:submit", scope]), [scope]);
  }
});

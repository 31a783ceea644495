/** Scopes of the roles, and those that an agent's own key must not have. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ROLE_NAMES, scopesOfRoles } from "../../src/domain/roles.ts";
import { SCOPE_PRESETS, selectPrivileges, SCOPES } from "../../src/domain/scopes.ts";

test("a key that can vote, govern or receive credentials is privileged, and one of the preset agent is not", () => {
  assert.deepEqual(selectPrivileges(SCOPE_PRESETS.agent), []);
  for (const scope of ["admin", "approvals:decide", "credentials:receive", "keys:manage"] as const) {
    assert.ok(SCOPES.includes(scope));
    assert.deepEqual(selectPrivileges(["actions:submit", scope]), [scope]);
  }
});

/** Written out, so that no change of a preset changes a role unnoticed. */
const ROLES: Record<string, string[]> = {
  viewer: ["actions:read", "agents:read", "analytics:read", "events:read", "policies:read"],
  approver: [
    "actions:read",
    "actions:settle",
    "agents:read",
    "approvals:decide",
    "events:read",
    "grants:write",
    "policies:read",
  ],
  break_glass: [
    "actions:read",
    "actions:settle",
    "agents:read",
    "approvals:break_glass",
    "approvals:decide",
    "events:read",
    "grants:write",
    "policies:read",
  ],
  policy_author: [
    "actions:read",
    "agents:read",
    "analytics:read",
    "events:read",
    "policies:activate",
    "policies:read",
    "policies:write",
    "replay:run",
  ],
  key_manager: [
    "actions:execute",
    "actions:read_own",
    "actions:submit",
    "agents:read",
    "agents:write",
    "events:read",
    "keys:manage",
  ],
  auditor: [
    "actions:read",
    "agents:read",
    "analytics:read",
    "deliveries:read",
    "events:read",
    "metrics:read",
    "policies:read",
    "provenance:read",
    "replay:run",
    "users:read",
  ],
  admin: ["admin"],
};

test("each role has exactly its scopes", () => {
  assert.deepEqual(Object.fromEntries(ROLE_NAMES.map((role) => [role, scopesOfRoles([role]).sort()])), ROLES);
  assert.deepEqual(scopesOfRoles(["no such role", "constructor"]), []);
});

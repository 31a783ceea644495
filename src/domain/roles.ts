/** Roles of users. Each role is a fixed set of scopes. A user has the scopes of all their roles. */
import { SCOPE_PRESETS, type CoreScope } from "./scopes.ts";

const ROLES = {
  /** Has only scopes that read. */
  viewer: ["actions:read", "policies:read", "agents:read", "analytics:read", "events:read"],
  approver: [...SCOPE_PRESETS.approver, "agents:read"],
  /** An approver who can also approve without a second approver in an emergency. */
  break_glass: [...SCOPE_PRESETS.approver, "agents:read", "approvals:break_glass"],
  policy_author: [
    "policies:read",
    "policies:write",
    "policies:activate",
    "actions:read",
    "agents:read",
    "analytics:read",
    "events:read",
    "replay:run",
  ],
  /** Includes the scopes of agents, because a key cannot have more scopes than its creator. */
  key_manager: [...SCOPE_PRESETS.agent, "keys:manage", "agents:read", "agents:write"],
  auditor: SCOPE_PRESETS.auditor,
  admin: SCOPE_PRESETS.admin,
} as const satisfies Record<string, readonly CoreScope[]>;

export type Role = keyof typeof ROLES;

export const ROLE_NAMES = Object.keys(ROLES) as Role[];

/** Returns the scopes of these roles, without duplicates. A role that this version does not know has no scopes. */
export function scopesOfRoles(roles: readonly string[]): CoreScope[] {
  return [...new Set(roles.flatMap((role) => (Object.hasOwn(ROLES, role) ? ROLES[role as Role] : [])))];
}

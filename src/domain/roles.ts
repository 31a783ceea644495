/** Roles of users. Each role is a fixed set of scopes. A user has the scopes of all their roles. */
import { hasScope, SCOPE_PRESETS, type CoreScope, type Scope } from "./scopes.ts";

const ROLES = {
  /** Has only scopes that read. */
  viewer: ["actions:read", "policies:read", "agents:read", "analytics:read", "events:read"],
  approver: SCOPE_PRESETS.approver,
  /** An approver who can also approve without a second approver in an emergency. */
  break_glass: [...SCOPE_PRESETS.approver, "approvals:break_glass"],
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

/** Scopes with which a key acts as its owner. Other scopes of a key that is bound to an agent are rights of the agent. */
const PERSONAL_SCOPES: readonly Scope[] = ["approvals:decide", "approvals:break_glass", "grants:write"];

/**
 * Returns true if a key of an owner can have the scope. A person's key can have the scopes of the person and those of
 * the preset `agent`. A key that is bound to an agent can have more scopes, but those to vote and to create grants only
 * if the person has them.
 * @param may returns true if the owner has a scope
 */
export function ownerAllows(may: (scope: Scope) => boolean, agentId: string | null, scope: Scope): boolean {
  const isFree = agentId === null ? hasScope(SCOPE_PRESETS.agent, scope) : !PERSONAL_SCOPES.includes(scope);
  return isFree || may(scope);
}

/** Returns the scopes that a key cannot use, because its owner's roles do not include them. */
export function scopesBeyondOwner(
  roles: readonly string[],
  { agent_id, scopes }: { agent_id: string | null; scopes: readonly Scope[] },
): Scope[] {
  const ofOwner = scopesOfRoles(roles);
  return scopes.filter((scope) => !ownerAllows((each) => hasScope(ofOwner, each), agent_id, scope));
}

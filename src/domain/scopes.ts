/** Scopes of the API, and the presets that group them. */
export const SCOPES = [
  "admin",
  "actions:submit",
  "actions:read",
  "actions:read_own",
  "actions:execute",
  "actions:erase",
  "actions:settle",
  "holds:write",
  "credentials:receive",
  "approvals:decide",
  "approvals:break_glass",
  "grants:write",
  "sessions:issue",
  "policies:read",
  "policies:write",
  "policies:activate",
  "stop:write",
  "keys:manage",
  "agents:read",
  "agents:write",
  "users:read",
  "users:manage",
  "analytics:read",
  "events:read",
  "provenance:read",
  "replay:run",
  "metrics:read",
  "deliveries:read",
  "deliveries:retry",
] as const;

export type CoreScope = (typeof SCOPES)[number];

declare const OF_PLUGIN: unique symbol;
/**
 * A scope that a plugin defines, `<plugin>:<scope>`. Only `defineScopes` returns this type, so a mistyped core scope
 * does not compile.
 */
export type PluginScope = `${string}:${string}` & { readonly [OF_PLUGIN]: true };

export type Scope = CoreScope | PluginScope;

/**
 * Returns the scopes of a plugin by name. Pass all of them as the plugin's `scopes`, and use one of them as a route's
 * `scope`.
 * @example
 * const scopes = defineScopes("notes", ["read", "write"]);
 * scopes.read; // "notes:read"
 */
export function defineScopes<const Name extends string>(
  plugin: string,
  names: readonly Name[],
): { readonly [Each in Name]: PluginScope } {
  return Object.fromEntries(names.map((name) => [name, `${plugin}:${name}`])) as { [Each in Name]: PluginScope };
}

export const SCOPE_PRESETS = {
  agent: ["actions:submit", "actions:read_own", "actions:execute", "events:read"],
  approver: [
    "approvals:decide",
    "grants:write",
    "actions:read",
    "actions:settle",
    "agents:read",
    "events:read",
    "policies:read",
  ],
  auditor: [
    "actions:read",
    "policies:read",
    "agents:read",
    "users:read",
    "analytics:read",
    "events:read",
    "provenance:read",
    "replay:run",
    "metrics:read",
    "deliveries:read",
  ],
  admin: ["admin"],
} as const satisfies Record<string, readonly CoreScope[]>;

const PRIVILEGES = /^admin$|:(?:decide|break_glass|manage|provision|write|activate|erase|settle|receive|issue)$/;

/**
 * Returns the scopes that an agent must not have. With them, it could approve its own requests, change its
 * restrictions, leave its session, erase or settle actions, or receive credentials.
 */
export function selectPrivileges(scopes: readonly string[]): string[] {
  return scopes.filter((scope) => PRIVILEGES.test(scope));
}

/** Returns true if a key can approve and can also create keys that can approve. */
export function canCreateApprovers(scopes: readonly string[]): boolean {
  return hasScope(scopes, "keys:manage") && hasScope(scopes, "approvals:decide");
}

/**
 * Returns true if the scopes include `requiredScope`. `admin` includes every scope; `actions:read` includes
 * `actions:read_own`.
 */
export function hasScope(scopes: readonly string[], requiredScope: Scope): boolean {
  if (scopes.includes("admin") || scopes.includes(requiredScope)) return true;
  return requiredScope === "actions:read_own" && scopes.includes("actions:read");
}

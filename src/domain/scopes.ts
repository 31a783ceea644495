/** Scopes of the API (design, section 4), and the presets that group them. */
export const SCOPES = [
  "admin",
  "actions:submit",
  "actions:read",
  "actions:read_own",
  "actions:execute",
  "approvals:decide",
  "policies:read",
  "policies:write",
  "policies:activate",
  "keys:manage",
  "agents:read",
  "agents:write",
  "analytics:read",
  "events:read",
  "provenance:read",
  "replay:run",
  "metrics:read",
  "deliveries:read",
  "deliveries:retry",
] as const;

export type Scope = (typeof SCOPES)[number];

export const PRESETS = {
  agent: ["actions:submit", "actions:read_own", "actions:execute", "events:read"],
  approver: ["approvals:decide", "actions:read", "events:read", "policies:read"],
  auditor: [
    "actions:read",
    "policies:read",
    "agents:read",
    "analytics:read",
    "events:read",
    "provenance:read",
    "replay:run",
    "metrics:read",
    "deliveries:read",
  ],
  admin: ["admin"],
} as const satisfies Record<string, readonly Scope[]>;

export type Preset = keyof typeof PRESETS;

/** `admin` stands for every scope; `actions:read` includes `actions:read_own`. */
export function holds(scopes: readonly string[], wanted: Scope): boolean {
  if (scopes.includes("admin") || scopes.includes(wanted)) return true;
  return wanted === "actions:read_own" && scopes.includes("actions:read");
}

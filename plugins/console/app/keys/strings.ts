/** Texts of the page of API keys. */
import type { Api, PluginScope } from "../core/api-types.ts";

type Body = Api["POST /v1/api-keys"]["body"];
export type KeyScope = NonNullable<Body["scopes"]>[number];
export type KeyPreset = NonNullable<Body["preset"]>;

/**
 * Describes what each scope permits. The type makes the compiler require a description for each new scope of the core.
 */
export const SCOPES: Readonly<Record<Exclude<KeyScope, PluginScope>, string> & Record<string, string>> = {
  admin: "everything, always",
  "actions:submit": "submit actions",
  "actions:read": "see all actions",
  "actions:read_own": "see its own actions",
  "actions:execute": "start what was allowed, and report results",
  "actions:erase": "erase requests for good",
  "actions:settle": "settle unknown outcomes",
  "credentials:receive": "receive credentials for actions that it starts",
  "approvals:decide": "approve and deny",
  "approvals:break_glass": "approve in an emergency without other approvers (in a session)",
  "grants:write": "grant later actions, and revoke grants",
  "sessions:issue": "start and continue sessions of agents",
  "policies:read": "see policies",
  "policies:write": "write policies",
  "policies:activate": "activate policies",
  "holds:write": "place and release legal holds, which prevent erasures",
  "stop:write": "stop decisions, and lift stops",
  "keys:manage": "create and revoke keys",
  "agents:read": "see agents",
  "agents:write": "register, change and suspend agents",
  "users:read": "see users and their sessions",
  "users:manage": "create, change and deactivate users",
  "users:provision": "create, change and deactivate users through SCIM",
  "analytics:read": "see analytics",
  "events:read": "follow events",
  "provenance:read": "read the ledger and its proofs",
  "replay:run": "replay decisions",
  "metrics:read": "read metrics",
  "deliveries:read": "see messages that were sent to people",
  "deliveries:retry": "send failed messages again",
  "coverage:write": "record coverage statements",
};

export const PRESETS: Readonly<Record<KeyPreset, string>> = {
  agent: "Agent: submits and runs actions, sees its own",
  approver: "Approver: sees actions and policies, votes",
  auditor: "Auditor: sees everything except keys, changes nothing",
  admin: "Admin: everything",
};

export const TEXTS = {
  title: "API keys",
  create: "New key…",
  show: "Show",
  live: "live",
  ended: "revoked or expired",
  none: { live: "No key is valid.", ended: "No key was revoked or has expired." },
  noneHelp: {
    live: "Create a key for an agent, an approver or a tool.",
    ended: "Keys that you revoke and keys that expire appear here.",
  },
  command: "assent keys create support-bot --preset agent --agent support-bot",
  cut: "The list shows the newest 1,000 keys.",
  columns: { may: "Can", agent: "Agent", owner: "Owner", used: "Last used", ends: "Ends" },
  yours: "(yours)",
  newTitle: "New API key",
  preset: "For",
  eachScope: "Scopes, one by one",
  submit: "Create the key",
  help: {
    name: "For people; unique among live keys.",
    agent_id:
      "Binds the key: it submits only as this agent and sees only its actions. Empty: no agent; it submits nothing unless agents: any is configured.",
    owner: (isUser: boolean) =>
      `The user behind it, as user:<id>. ${isUser ? "Empty: you. " : ""}A key that can approve needs one. Keys of one owner count as one approver, and cannot approve each other's actions.`,
    expires_at: "Empty: never.",
  },
  shared: "A shared agent, without a person behind it",
  once: "This is the only time that its value is displayed. The service stores only a hash of it.",
  revokeTitle: "Revoke this key?",
  revokeHelp: "Its open event streams end. This cannot be undone, but you can create a new key.",
  revokeOwn: "You are signed in with this key: you will be signed out.",
  revoked: (name: string) => `“${name}” is revoked.`,
} as const;

/** Texts of the page of API keys. */
import type { Api } from "../../console/app/kit.ts";

type Body = Api["POST /v1/api-keys"]["body"];
export type KeyPreset = NonNullable<Body["preset"]>;

export const PRESETS: Readonly<Record<KeyPreset, string>> = {
  agent: "Agent: submits and runs actions, sees its own",
  approver: "Approver: sees actions and policies, votes",
  auditor: "Auditor: sees everything except keys, changes nothing",
  admin: "Admin: everything",
};

export const TEXTS = {
  title: "API keys",
  create: "New key…",
  show: "Which keys",
  live: "Live",
  ended: "Revoked or expired",
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

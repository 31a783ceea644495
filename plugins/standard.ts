/** The built-in plugins. The loader imports this file by its path, because the core imports no plugin. */
import type { Plugin } from "../src/plugin.ts";

type Load = () => Promise<{ default: Plugin }>;

/** By name, in the order in which they are set up. */
export const STANDARD = {
  "storage-sqlite": () => import("./storage-sqlite/index.ts"),
  "storage-postgres": () => import("./storage-postgres/index.ts"),
  "policy-files": () => import("./policy-files/index.ts"),
  "policy-git": () => import("./policy-git/index.ts"),
  actions: () => import("./actions/index.ts"),
  policies: () => import("./policies/index.ts"),
  "api-keys": () => import("./api-keys/index.ts"),
  users: () => import("./users/index.ts"),
  "workload-identity": () => import("./workload-identity/index.ts"),
  agents: () => import("./agents/index.ts"),
  stop: () => import("./stop/index.ts"),
  analytics: () => import("./analytics/index.ts"),
  events: () => import("./events/index.ts"),
  provenance: () => import("./provenance/index.ts"),
  replay: () => import("./replay/index.ts"),
  "well-known": () => import("./well-known/index.ts"),
  health: () => import("./health/index.ts"),
  metrics: () => import("./metrics/index.ts"),
  deliveries: () => import("./deliveries/index.ts"),
  "notify-webhook": () => import("./notify-webhook/index.ts"),
  "notify-slack": () => import("./notify-slack/index.ts"),
  "notify-email": () => import("./notify-email/index.ts"),
  "review-webhook": () => import("./review-webhook/index.ts"),
  "review-command": () => import("./review-command/index.ts"),
  "credentials-postgres": () => import("./credentials-postgres/index.ts"),
  "credentials-aws": () => import("./credentials-aws/index.ts"),
  "credentials-github": () => import("./credentials-github/index.ts"),
  authzen: () => import("./authzen/index.ts"),
  "ext-authz": () => import("./ext-authz/index.ts"),
  "forward-auth": () => import("./forward-auth/index.ts"),
  "opa-data": () => import("./opa-data/index.ts"),
  "mcp-webhooks": () => import("./mcp-webhooks/index.ts"),
  litellm: () => import("./litellm/index.ts"),
  docs: () => import("./docs/index.ts"),
  console: () => import("./console/index.ts"),
} satisfies Record<string, Load>;

/** The built-in plugins that receive the privileged host unless the configuration says `core: false`. */
export const CORE_PLUGINS: readonly (keyof typeof STANDARD)[] = [
  "policy-git",
  "actions",
  "policies",
  "api-keys",
  "users",
  "workload-identity",
  "agents",
  "stop",
  "analytics",
  "events",
  "provenance",
  "replay",
  "well-known",
  "health",
  "metrics",
  "deliveries",
];

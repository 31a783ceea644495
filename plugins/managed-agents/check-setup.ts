/** `assent managed-agents doctor`: checks the keys, the permission policies at the vendor, and the policies of the service. */
import { isJsonObject, type JsonObject } from "../../src/core.ts";
import type { createClient } from "../../src/command.ts";
import type { VendorApi } from "./vendor-api.ts";

type Assent = Awaited<ReturnType<typeof createClient>>;

interface Finding {
  check: string;
  state: "ok" | "problem" | "note";
  text: string;
}

/** Tools of the vendor's toolset. */
const VENDOR_TOOLS = ["bash", "read", "write", "edit", "glob", "grep", "web_fetch", "web_search"];
/** The only permission policy with which each call of a tool waits for a confirmation. */
const ASKS = "always_ask";

interface Setup {
  vendor: VendorApi;
  assent: Assent;
  agent: string;
  vendorAgent: string | undefined;
  tool: string;
}

export async function checkSetup({ vendor, assent, agent, vendorAgent, tool }: Setup): Promise<Finding[]> {
  return [
    ...(await findingOf("vendor", () => checkAgents(vendor, vendorAgent))),
    ...(await findingOf("policies", () => checkPolicies(assent, agent, tool))),
  ];
}

async function findingOf(check: string, work: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await work();
  } catch (error) {
    return [{ check, state: "problem", text: error instanceof Error ? error.message : String(error) }];
  }
}

/** Checks the agents of the sessions, as they were when each session began. Later changes apply to later sessions only. */
async function checkAgents(vendor: VendorApi, vendorAgent: string | undefined): Promise<Finding[]> {
  const check = "vendor";
  const unasked = new Map<string, Set<string>>();
  let count = 0;
  for await (const { agent } of vendor.sessions(vendorAgent)) {
    count += 1;
    for (const each of listAgents(agent)) {
      const name = `${textOf(each["name"])} (${textOf(each["id"])})`;
      for (const tools of findUnasked(each["tools"])) unasked.set(name, (unasked.get(name) ?? new Set()).add(tools));
    }
  }
  const accepted: Finding = { check, state: "ok", text: `accepts the key; it lists ${count} sessions` };
  if (count === 0)
    return [accepted, { check, state: "note", text: "without a session, the permission policies were not checked" }];
  const problems = [...unasked].map(([name, tools]): Finding => ({
    check,
    state: "problem",
    text: `calls of the agent ${name} run without a decision: ${[...tools].join("; ")}. Set the permission policy ${ASKS}, and start new sessions`,
  }));
  return [
    accepted,
    ...(problems.length > 0 ? problems : [{ check, state: "ok", text: `each tool has ${ASKS}` } as const]),
  ];
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "?");

/** Returns the agent of a session and its sub-agents. */
function listAgents(agent: unknown): JsonObject[] {
  if (!isJsonObject(agent)) return [];
  const { multiagent } = agent;
  const others: unknown[] = isJsonObject(multiagent) && Array.isArray(multiagent["agents"]) ? multiagent["agents"] : [];
  return [agent, ...others.filter(isJsonObject)];
}

/**
 * Describes the enabled tools of an agent whose calls do not always wait for a confirmation.
 * @example
 * findUnasked([{ type: "agent_toolset_20260401" }]); // ["all tools of agent_toolset_20260401 (always_allow)"]
 */
export function findUnasked(tools: unknown): string[] {
  return (Array.isArray(tools) ? tools.filter(isJsonObject) : []).flatMap((toolset) => {
    const { type, default_config, configs, mcp_server_name: server } = toolset;
    // The application itself runs custom tools.
    if (typeof type !== "string" || type === "custom") return [];
    const preset = { enabled: true, policy: type === "mcp_toolset" ? ASKS : "always_allow" };
    const byDefault = readTool(default_config, preset);
    const listed = (Array.isArray(configs) ? configs.filter(isJsonObject) : []).map((config) => ({
      name: textOf(config["name"]),
      ...readTool(config, byDefault),
    }));
    const names = listed.filter(isUnasked).map(({ name, policy }) => `${name} (${policy})`);
    const all = `all ${listed.length > 0 ? "other " : ""}tools (${byDefault.policy})`;
    const found = [...names, ...(isUnasked(byDefault) ? [all] : [])];
    return found.length === 0 ? [] : [`${found.join(", ")} of ${typeof server === "string" ? server : type}`];
  });
}

interface ToolState {
  enabled: boolean;
  policy: string;
}

const isUnasked = ({ enabled, policy }: ToolState): boolean => enabled && policy !== ASKS;

function readTool(config: unknown, inherited: ToolState): ToolState {
  if (!isJsonObject(config)) return inherited;
  const { enabled, permission_policy: given } = config;
  return {
    enabled: typeof enabled === "boolean" ? enabled : inherited.enabled,
    policy: isJsonObject(given) && typeof given["type"] === "string" ? given["type"] : inherited.policy,
  };
}

async function checkPolicies(assent: Assent, agent: string, tool: string): Promise<Finding[]> {
  const check = "policies";
  const possible: string[] = [];
  for (const operation of VENDOR_TOOLS) {
    const request = { agent_id: agent, tool, operation, params: {}, context: {} };
    if ((await assent.gate(request)).never_allowed !== true) possible.push(operation);
  }
  if (possible.length > 0)
    return [
      { check, state: "ok", text: `calls of "${tool}" that the policies may let through: ${possible.join(", ")}` },
    ];
  const text = `the policies deny every call of "${tool}"; write a policy (docs/gateways.md, "Managed agents")`;
  return [{ check, state: "problem", text }];
}

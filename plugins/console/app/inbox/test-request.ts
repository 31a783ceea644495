/** The test request of an empty inbox. It has no effect, and lets a person try an approval and its proof. */
import type { Action } from "../core/api-types.ts";
import { fetchJson, request, buildUrl } from "../core/api.ts";
import { hasScope } from "../core/me.ts";
import { OPERATION, TOOL } from "./is-test-request.ts";

const POLICY = "test-requests";
/** The agent of the examples, to which the first start binds its agent key, too. */
const FIRST_AGENT = "support-bot";

/** Session storage key of the agent key that the examples show. Deleted when the tab closes or the person signs out. */
const KEY_STORE = "assent.agent-key";

/** The policy for test requests. The console activates it, or displays it if the test request was denied. */
export const POLICY_YAML = `policy: ${POLICY}
description: Lets people try approvals. Covers only requests that do nothing.
rules:
  - name: test request
    tool: ${TOOL}
    operation: ${OPERATION}
    effect: require_approval
    risk: low
    reason: a test of the approval, sent from the console
    approval: { mode: self_confirm, expires_in: 1h }
`;

export function readAgentKey(): string {
  return sessionStorage.getItem(KEY_STORE) ?? "";
}

export function storeAgentKey(key: string): void {
  sessionStorage.setItem(KEY_STORE, key);
}

/** Creates a key with which an agent can submit, stores it for the examples, and returns it. */
export async function createAgentKey(): Promise<string> {
  const name = `first-agent-${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(16)}`;
  // The key has no owner, so its creator may approve the test request. A key without an agent cannot submit.
  const body = { name, preset: "agent" as const, agent_id: FIRST_AGENT, owner: null };
  const { key } = await request("POST /v1/api-keys", { body });
  if (key === null) throw new Error("the service created a key and did not return it; create another");
  storeAgentKey(key);
  return key;
}

/** Returns the agent that the key is bound to. For an unbound key, returns the agent of the examples. */
async function readAgentOf(key: string): Promise<string> {
  return (await request("GET /v1/me", { key })).key.agent_id ?? FIRST_AGENT;
}

/**
 * Submits the test request with the agent's key, and returns the action. First adds the policy for test requests if it
 * is missing and this credential may activate policies. The action is pending unless the policies decide differently.
 */
export async function sendTestRequest(key: string): Promise<Action> {
  const agent_id = await readAgentOf(key);
  if (["policies:read", "policies:write", "policies:activate"].every(hasScope)) await ensurePolicy();
  const params = { message: "Hello from the console", sent_at: new Date().toISOString() };
  const body = { agent_id, tool: TOOL, operation: OPERATION, params };
  return (await request("POST /v1/actions", { key, body })) as Action;
}

async function ensurePolicy(): Promise<void> {
  // Look the policy up in the list: the browser would log a 404 for a missing policy as an error of the page.
  const { policies } = await request("GET /v1/policies", { query: { limit: 1000 } });
  if (policies.some(({ name }) => name === POLICY)) return;
  await fetchJson(buildUrl("/v1/policies", { activate: true }), {
    method: "POST",
    rawBody: POLICY_YAML,
    type: "application/yaml",
  });
}

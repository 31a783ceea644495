/** A command that submits an action, for pages that have nothing to display before the first action. */
import { Snippet } from "../ui/snippet.tsx";
import { readAgentKey } from "./test-request.ts";

/** Stands for the agent key until one is created. */
export const KEY_PLACEHOLDER = "YOUR_AGENT_KEY";
/** Agent ids that do not need quoting in a shell and whose characters cannot be mistaken for other characters. */
const PLAIN_ID = /^[\w.:@-]{1,100}$/;

/**
 * Renders the command with this service's address, and with the agent key that was created in this tab.
 * @param props.agent id of the agent that submits; if it does not match `PLAIN_ID`, a placeholder replaces it
 */
export function SubmitSnippet({ agent = "support-bot" }: { agent?: string }) {
  const agent_id = PLAIN_ID.test(agent) ? agent : "AGENT_ID";
  return (
    <Snippet
      label="Submit an action with curl"
      text={formatSubmitCommand(location.origin, readAgentKey() || KEY_PLACEHOLDER, agent_id)}
    />
  );
}

/** Returns a command that submits an action, which the example policies send to an approver. */
export function formatSubmitCommand(origin: string, key: string, agent_id: string): string {
  return `curl ${origin}/v1/actions \\
  -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" \\
  -d '${JSON.stringify(exampleAction(agent_id))}'`;
}

/** Returns the action of the examples. */
export function exampleAction(agent_id: string) {
  return { agent_id, tool: "stripe", operation: "refund", params: { amount: 500, currency: "USD" } };
}

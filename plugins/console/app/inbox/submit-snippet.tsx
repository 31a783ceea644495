/** Lines that submit an action, for pages that have nothing to display before there is one. */
import { Snippet } from "../ui/snippet.tsx";
import { readAgentKey } from "./test-request.ts";

/** Placeholder for the key until one is created. */
export const NO_KEY = "YOUR_AGENT_KEY";
/** Agent ids that need no quoting in a shell and contain no character that looks like another one. */
const PLAIN_ID = /^[\w.:@-]{1,100}$/;

/**
 * Renders the lines with this service's address, and with the agent key that was created in this tab.
 * @param props.agent id of the agent that submits; a placeholder replaces an id with other characters than usual
 */
export function SubmitSnippet({ agent = "support-bot" }: { agent?: string }) {
  const agent_id = PLAIN_ID.test(agent) ? agent : "AGENT_ID";
  return (
    <Snippet
      label="Submit an action with curl"
      text={submitLines(location.origin, readAgentKey() || NO_KEY, agent_id)}
    />
  );
}

/** Returns a command that submits an action, which the example policies send to an approver. */
export function submitLines(origin: string, key: string, agent_id: string): string {
  return `curl ${origin}/v1/actions \\
  -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" \\
  -d '${JSON.stringify(exampleAction(agent_id))}'`;
}

/** Returns the action of the examples. */
export function exampleAction(agent_id: string) {
  return { agent_id, tool: "stripe", operation: "refund", params: { amount: 500, currency: "USD" } };
}

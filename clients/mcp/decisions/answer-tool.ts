/**
 * The proxy's own tool `assent_answer`, with which a model answers an approver's question. Tool lists contain it once a
 * call of the session was refused because of a question.
 */
import { AssentError } from "../../typescript/index.ts";
import { markText } from "./mark.ts";
import { isObject, type JsonObject, type Reply } from "../transport/rpc-message.ts";

export const ANSWER_TOOL = "assent_answer";

/** The definition that clients see. */
export const ANSWER_TOOL_DEFINITION: JsonObject = {
  name: ANSWER_TOOL,
  description:
    "Answers the question that an approver asked about one of your calls that wait for approval. Answer truthfully and briefly. Then repeat that call with the same arguments.",
  inputSchema: {
    type: "object",
    properties: {
      approval: { type: "string", description: "The id of the approval, as the refused call named it." },
      answer: { type: "string", maxLength: 2000 },
    },
    required: ["approval", "answer"],
    additionalProperties: false,
  },
};

/** Whether the reply is a refusal because an approver asked a question. */
export function refusesWithQuestion(reply: Reply): boolean {
  if (!("result" in reply)) return false;
  const { _meta: meta } = reply.result;
  const refusal = isObject(meta) ? meta["assent/refusal"] : undefined;
  return isObject(refusal) && isObject(refusal["question"]);
}

/** Sends the answer with `send`, which throws AssentError. Resolves to the tool's result. */
export async function callAnswerTool(
  send: (id: string, text: string, signal: AbortSignal) => Promise<unknown>,
  { approval, answer }: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject> {
  if (typeof approval !== "string" || typeof answer !== "string" || answer === "")
    return textResult(`${ANSWER_TOOL} requires "approval", the id of the approval, and "answer", a string.`, true);
  try {
    await send(approval, answer, signal);
    return textResult("The answer was delivered to the approver. Now repeat the call that waits, unchanged.", false);
  } catch (error) {
    if (!(error instanceof AssentError)) throw error;
    return textResult(`The answer was not delivered (${error.code}): ${error.message}`, true);
  }
}

const textResult = (text: string, isError: boolean): JsonObject => ({
  content: [{ type: "text", text: markText(text) }],
  isError,
});

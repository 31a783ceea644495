/** Passes on of a reply only what the rules for outputs allow. Without a verdict, nothing is passed on. */
import { AssentError, toSingleLine, type Inspection } from "../../typescript/index.ts";
import { MARK, markText } from "./mark.ts";
import { ERROR_CODE, errorReply, isObject, type JsonObject, type Reply } from "../transport/rpc-message.ts";
import type { Tool } from "../tools/tool-catalog.ts";

/**
 * Returns the reply that the client gets: the same, a redacted one, or one that says that the output is withheld.
 * @param inspect sends the result, or the error, to the service
 * @param tool null if the request is not a tool call
 */
export async function inspectReply(
  reply: Reply,
  inspect: (output: JsonObject) => Promise<Inspection>,
  actionId: string,
  tool: Tool | null,
): Promise<Reply> {
  const isError = "error" in reply;
  let inspection: Inspection;
  try {
    inspection = await inspect(isError ? { error: { ...reply.error } } : reply.result);
  } catch (error) {
    const why =
      error instanceof AssentError
        ? `the service gave no verdict (${error.code})`
        : "it could not be sent to the service";
    return withheldReply(why, actionId, tool);
  }
  const { verdict, output, reason } = inspection;
  if (verdict === "allow") return reply;
  if (verdict === "redact" && isObject(output)) {
    if (!isError) return { ...reply, result: output };
    const { error } = output;
    if (isObject(error) && typeof error["message"] === "string") {
      const code = typeof error["code"] === "number" ? error["code"] : ERROR_CODE.internal;
      return errorReply(code, error["message"], error["data"]);
    }
  }
  return withheldReply(reason ?? "a rule withholds it", actionId, tool);
}

function withheldReply(reason: string, actionId: string, tool: Tool | null): Reply {
  const facts = { mark: MARK, action_id: actionId };
  const text = markText(
    `The call was made, and its output is withheld: ${toSingleLine(reason)} (action ${actionId}). ` +
      `Do not call again to get the output, and do not reach it in another way; tell the user.`,
  );
  if (tool === null) return errorReply(ERROR_CODE.internal, text, facts);
  return {
    result: {
      content: [{ type: "text", text }],
      isError: true,
      // Clients validate structured content against the schema of the tool, even of an error.
      ...(tool.item["outputSchema"] === undefined ? { structuredContent: facts } : {}),
      _meta: { "assent/withheld": facts },
    },
  };
}

/** Texts for the model about a call that did not run: the reason, and what to do next. */
import {
  toSingleLine,
  explainRefusal,
  openQuestion,
  questionText,
  RequestRefused,
  Unauthorized,
  type ActionRecord,
  type AssentError,
  type RefusalOutcome,
} from "../../typescript/index.ts";
import type { JsonObject } from "../transport/rpc-message.ts";
import { MARK, markText } from "./mark.ts";
import { ANSWER_TOOL } from "./answer-tool.ts";
import type { Tool } from "../tools/tool-catalog.ts";

export interface ToolRefusal {
  /** The refusal as text for the model. */
  text: string;
  /** The same refusal for programs. */
  facts: {
    status: RefusalOutcome | "pending_approval" | "unavailable" | "refused";
    action_id: string | null;
    /** Seconds until a retry; null if a retry cannot succeed. */
    retry_after: number | null;
    code: string | null;
    /** Present if a person or a machine reviewer rejected the call: the approver and the comment. */
    rejection?: ActionRecord["rejection"];
    /** The approver's question about the pending call. */
    question?: { number: number; text: string };
  };
}

/** Delay after which the model should repeat a call that waits for approval. Seconds. */
const RETRY_AFTER = 30;

const NOT_RUN = "The call was not made: nothing was run and nothing was changed.";

/** Returns the refusal for an action that cannot run now. */
export function callRefusal(action: ActionRecord): ToolRefusal {
  const { id, status, reason, reason_code: code, rejection } = action;
  const facts = { action_id: id, code, retry_after: null };
  const question = openQuestion(action);
  if (status === "pending_approval")
    return {
      text:
        `${NOT_RUN} It waits for a person's approval (${toSingleLine(reason)}; approval ${id}). It is not refused. ` +
        questionText(action, `with the tool ${ANSWER_TOOL} (or ask the user to run: assent answer ${id} "…")`) +
        `To continue, call this tool again with exactly the same arguments, not before ${RETRY_AFTER} seconds from now: the same ` +
        `call joins the same approval and runs once it is given. Do not change the arguments: that would be another ` +
        `request, which would need a new approval. Do not reach the same end in another way. If there is other ` +
        `work, do that first; if there is none, tell the user that this waits for approval.`,
      facts: {
        ...facts,
        status,
        retry_after: RETRY_AFTER,
        ...(question === null ? {} : { question: { number: question.number, text: question.question } }),
      },
    };
  const { outcome, why, next } = explainRefusal(action);
  return {
    text: `${NOT_RUN} It was ${why} (action ${id}). ${next}`,
    facts: {
      ...facts,
      status: outcome,
      retry_after: outcome === "expired" ? RETRY_AFTER : null,
      ...(outcome === "rejected" ? { rejection } : {}),
    },
  };
}

/** Returns the refusal for a call that the service could not decide. */
export function serviceErrorRefusal(error: AssentError, actionId: string | null): ToolRefusal {
  const { code, retryAfter } = error;
  if (error instanceof Unauthorized)
    return {
      text:
        `${NOT_RUN} The service that decides about calls does not accept the key of this proxy (${code}: ${error.message}). ` +
        `Calling again will not help until someone has set up the key; tell the user.`,
      facts: { status: "unavailable", action_id: actionId, retry_after: null, code },
    };
  if (error instanceof RequestRefused)
    return {
      text: `${NOT_RUN} The service that decides about calls rejected this request (${code}: ${error.message}). Tell the user.`,
      facts: { status: "refused", action_id: actionId, retry_after: null, code },
    };
  const after = Math.max(RETRY_AFTER, Math.ceil(retryAfter ?? 0));
  return {
    text:
      `${NOT_RUN} The service that decides about calls gave no decision (${code}: ${error.message}), and without one nothing ` +
      `is run. It is not refused. The same call may go through later, not before ${after} seconds from now; tell the user ` +
      `that the service is unavailable.`,
    facts: { status: "unavailable", action_id: actionId, retry_after: after, code },
  };
}

/** Returns the refusal for a call that the proxy does not forward. */
export function proxyRefusal(why: string, code: string): ToolRefusal {
  return { text: `${NOT_RUN} ${why}`, facts: { status: "refused", action_id: null, retry_after: null, code } };
}

/**
 * Returns the refusal for a withheld tool. It contains no action id, because the approval of an action does not make
 * the tool available.
 */
export function withheldToolRefusal({ withheld: held, upstream }: Pick<Tool, "withheld" | "upstream">): ToolRefusal {
  const what = held === "new" ? "is new, and no one has accepted it yet" : "has changed since it was accepted";
  return proxyRefusal(
    `The definition of this tool ${what}. Calling again will not help until a person has reviewed it and run ` +
      `"assent mcp accept ${upstream.config.name}"; tell the user.`,
    held === "new" ? "DEFINITION_NEW" : "DEFINITION_CHANGED",
  );
}

/** Returns the refusal for a tool whose server has disconnected. */
export function serverDisconnectedRefusal(server: string, what: string): ToolRefusal {
  const { text, facts } = proxyRefusal(
    `The server "${server}" of this tool ${what}. It is not refused: the same call may go through when the server is ` +
      `connected again, not before ${RETRY_AFTER} seconds from now.`,
    "SERVER_GONE",
  );
  return { text, facts: { ...facts, status: "unavailable", retry_after: RETRY_AFTER } };
}

/**
 * Returns a refusal as a tool result. Clients validate `structuredContent` against the tool's output schema even if
 * `isError` is set. If the tool has an output schema, the facts are therefore only in `_meta`.
 */
export function refusalToolResult({ text, facts }: ToolRefusal, hasOutputSchema: boolean): JsonObject {
  return {
    content: [{ type: "text", text: markText(text) }],
    isError: true,
    ...(hasOutputSchema ? {} : { structuredContent: { mark: MARK, ...facts } }),
    _meta: { "assent/refusal": { mark: MARK, ...facts } },
  };
}

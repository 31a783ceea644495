/**
 * The proxy's own tools `assent_authority`, which tells a model what it may do, and `assent_propose_rule`, with which it
 * proposes a rule to people. Only if `offer_authority` is set. The service applies no proposal.
 */
import { foldName, sameName } from "../../../src/domain/names.ts";
import { isGlob, matchesAny } from "../../../src/domain/policy/compile/glob.ts";
import { AssentError } from "../../typescript/index.ts";
import { isObject, type JsonObject } from "../transport/rpc-message.ts";
import { markText } from "./mark.ts";

export const AUTHORITY_TOOL = "assent_authority";
export const PROPOSAL_TOOL = "assent_propose_rule";

/** The definitions that clients see. */
export const AUTHORITY_TOOL_DEFINITIONS: readonly JsonObject[] = [
  {
    name: AUTHORITY_TOOL,
    description:
      "Tells what you may do: for each tool and operation, whether calls are allowed, need a person's approval, or are denied. Call it before you plan work.",
    inputSchema: {
      type: "object",
      properties: {
        tool: { type: "string", description: "Only this tool, as the list without this parameter names it." },
        operation: { type: "string" },
      },
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true },
  },
  {
    name: PROPOSAL_TOOL,
    description:
      "Proposes a rule that allows an operation. A person reads the proposal; it changes nothing by itself. Use it if the same request is approved or denied again and again.",
    inputSchema: {
      type: "object",
      properties: {
        tool: { type: "string" },
        operation: { type: "string" },
        most: {
          type: "object",
          properties: { path: { type: "string", description: "Such as params.amount." }, value: { type: "number" } },
          required: ["path", "value"],
          additionalProperties: false,
        },
        reason: { type: "string", maxLength: 500 },
      },
      required: ["tool", "operation", "reason"],
      additionalProperties: false,
    },
  },
];

/** The requests to the service. Each throws AssentError. */
export interface AuthorityCalls {
  authority(
    query: { tool?: string; operation?: string },
    signal: AbortSignal,
  ): Promise<Record<string, unknown> & { text: string }>;
  propose(terms: JsonObject, signal: AbortSignal): Promise<unknown>;
}

export const isAuthorityTool = (name: string): boolean => name === AUTHORITY_TOOL || name === PROPOSAL_TOOL;

/** Calls one of the tools. Resolves to its result. */
export async function callAuthorityTool(
  calls: AuthorityCalls,
  name: string,
  input: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject> {
  try {
    if (name === AUTHORITY_TOOL) return textResult((await calls.authority(readNames(input), signal)).text, false);
    await calls.propose(input, signal);
    return textResult("A person will see the proposal. Until someone writes the rule, nothing changes.", false);
  } catch (error) {
    if (!(error instanceof AssentError)) throw error;
    return textResult(`The service did not answer (${error.code}): ${error.message}`, true);
  }
}

function readNames({ tool, operation }: JsonObject): { tool?: string; operation?: string } {
  return {
    ...(typeof tool === "string" ? { tool } : {}),
    ...(typeof operation === "string" ? { operation } : {}),
  };
}

type NamedTool = { item: JsonObject; tool: string; operation: string };

/**
 * Returns the tools with their authority in `_meta`, from one request for each server. A tool is unchanged if the answer
 * does not determine its authority, or if the service does not answer.
 */
export async function annotateTools(
  calls: Pick<AuthorityCalls, "authority">,
  tools: readonly NamedTool[],
  signal: AbortSignal,
): Promise<JsonObject[]> {
  const servers = [...new Set(tools.map(({ tool }) => tool))];
  const answers = new Map(
    await Promise.all(servers.map(async (tool) => [tool, await ask(calls, tool, signal)] as const)),
  );
  return tools.map((named) => {
    const { item, tool } = named;
    const { decision, note, rules } = findItem(answers.get(tool) ?? null, named) ?? {};
    if (decision === undefined) return item;
    const meta = isObject(item["_meta"]) ? item["_meta"] : {};
    return { ...item, _meta: { ...meta, "assent/authority": JSON.parse(JSON.stringify({ decision, note, rules })) } };
  });
}

/** Returns the authority for the tools of one server; null if the service does not answer. */
async function ask(
  calls: Pick<AuthorityCalls, "authority">,
  tool: string,
  signal: AbortSignal,
): Promise<Record<string, unknown> | null> {
  try {
    return await calls.authority({ tool }, signal);
  } catch (error) {
    if (!(error instanceof AssentError)) throw error;
    return null;
  }
}

/** The service can read a name with other characters as the name of another tool, and denies it then. */
const PLAIN_NAME = /^[\p{L}\p{M}\p{N}_.-]+$/u;

/** Returns the statement about a tool; undefined if none is certain. */
function findItem(answer: Record<string, unknown> | null, { operation }: NamedTool): JsonObject | undefined {
  if (answer === null || !Array.isArray(answer["tools"])) return undefined;
  const described = answer["tools"].filter(isObject).flatMap((item) => {
    const { operation: pattern } = item;
    return typeof pattern === "string" ? [{ item, pattern }] : [];
  });
  const exact = described.find(({ pattern }) => !isGlob(pattern) && sameName(pattern, operation));
  if (exact !== undefined) return exact.item;
  if (answer["truncated"] !== false) return undefined;
  const found = described.filter(({ pattern }) => matchesAny([foldName(pattern)], foldName(operation)));
  // The whole list omits only what is denied.
  if (found.length === 0) return { decision: "denied" };
  // Several globs decide together, which only the service can do.
  const [only] = found;
  const isCertain = found.length === 1 && PLAIN_NAME.test(operation);
  return isCertain ? only?.item : undefined;
}

const textResult = (text: string, isError: boolean): JsonObject => ({
  content: [{ type: "text", text: markText(text) }],
  isError,
});

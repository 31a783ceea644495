/**
 * Machine reviewers that are programs: a command that reads the request and writes its answer, or a tool of an MCP
 * server.
 */
import type { Static } from "@sinclair/typebox";
import { definePlugin, readReviewResponse, type Reviewer, REVIEWER_NAME_PATTERN, Type } from "../../src/plugin.ts";
import { callMcpTool } from "./mcp-call.ts";
import { runCommand } from "./run-command.ts";

const Options = Type.Object(
  {
    command: Type.Array(Type.String({ minLength: 1, maxLength: 4000 }), {
      minItems: 1,
      maxItems: 100,
      description: "The program and its arguments. No shell reads them.",
    }),
    mcp_tool: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: "The tool to call, if the command is an MCP server." }),
    ),
    environment: Type.Record(Type.String({ minLength: 1, maxLength: 200 }), Type.String({ maxLength: 10_000 }), {
      default: {},
      description: "Environment of the program, in addition to PATH, HOME and LANG.",
    }),
    timeout_seconds: Type.Integer({ default: 15, minimum: 1, maximum: 45 }),
    version: Type.String({ minLength: 1, maxLength: 100, description: "Recorded with each answer." }),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "review-command",
  needs: ["reviewers"],
  options: Type.Object(
    { reviewers: Type.Optional(Type.Record(Type.String({ pattern: REVIEWER_NAME_PATTERN }), Options)) },
    { additionalProperties: false },
  ),
  setup: (_host, { reviewers = {} }) => ({
    reviewers: Object.entries(reviewers).map(([name, options]) => createCommandReviewer(name, options)),
  }),
});

/** Creates the reviewer. The program receives the request on standard input, never as an argument. */
export function createCommandReviewer(name: string, options: Static<typeof Options>): Reviewer {
  const { command, environment, mcp_tool: tool, version, timeout_seconds } = options;
  const program = { command, environment };
  return {
    name,
    version,
    timeoutMs: timeout_seconds * 1000,
    review: async (request, signal) =>
      readReviewResponse(
        tool === undefined
          ? await runCommand(program, JSON.stringify(request), signal)
          : await callMcpTool(program, tool, request, signal),
      ),
  };
}

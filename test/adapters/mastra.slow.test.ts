import { governTool } from "../../clients/typescript/adapters/mastra.ts";
import { adapterTests, type Driver } from "./matrix.ts";
import { packages, type Module } from "./packages.ts";

const VERSION = "1.71.0";
const { skip, load } = await packages({ "@mastra/core": VERSION, zod: "4.3.6" }, 22);

adapterTests(`Mastra ${VERSION}`, skip, async (): Promise<Driver<string>> => {
  const { Agent } = await load("@mastra/core/agent");
  const { createTool } = await load("@mastra/core/tools");
  const { Mastra } = await load("@mastra/core");
  const { InMemoryStore } = await load("@mastra/core/storage");
  const { z } = await load("zod");
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  let calls = 0;
  /** Calls the tool, or repeats the tool's result if that is the last message. */
  const script = (args: unknown): unknown => ({
    specificationVersion: "v2",
    provider: "script",
    modelId: "script",
    supportedUrls: {},
    doGenerate: async () => {
      throw new Error("it streams");
    },
    async doStream({ prompt }: Module) {
      const { role, content } = prompt.at(-1);
      const isAnswer = role === "tool";
      const parts = isAnswer
        ? [
            { type: "text-start", id: "t" },
            { type: "text-delta", id: "t", delta: JSON.stringify(content) },
            { type: "text-end", id: "t" },
          ]
        : [{ type: "tool-call", toolCallId: `call-${++calls}`, toolName: "refund", input: JSON.stringify(args) }];
      const all = [
        { type: "stream-start", warnings: [] },
        ...parts,
        { type: "finish", finishReason: isAnswer ? "stop" : "tool-calls", usage },
      ];
      return {
        stream: new ReadableStream({
          start: (controller) => (all.forEach((part) => controller.enqueue(part)), controller.close()),
        }),
      };
    },
  });
  const schemas = {
    inputSchema: z.object({ amount: z.number(), to: z.string() }),
    suspendSchema: z.object({ action_id: z.string(), message: z.string() }),
    resumeSchema: z.object({ approved: z.boolean() }),
  };
  const storage = new InMemoryStore();
  const agentOf = (args: unknown, [gate, execute]: Module): Module => {
    const refund = createTool(governTool({ id: "refund", description: "refund", ...schemas, execute }, gate));
    const agent = new Agent({
      id: "support",
      name: "support",
      instructions: "refund",
      model: script(args),
      tools: { refund },
    });
    return new Mastra({ agents: { support: agent }, storage, logger: false }).getAgent("support");
  };
  const shown = async (stream: Module) => {
    let told = "";
    for await (const part of stream.fullStream)
      if (/text-delta|tool-error|tool-result/.test(part.type)) told += JSON.stringify(part.payload);
    return { state: stream.runId as string, told };
  };
  return {
    begin: async (params, ...rest) => shown(await agentOf(params, rest).stream("refund")),
    resume: async (runId, ...rest) => shown(await agentOf({}, rest).resumeStream({ approved: true }, { runId })),
  };
});

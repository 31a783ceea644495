import { governTools } from "../../clients/typescript/adapters/ai-sdk.ts";
import { adapterTests, type Driver } from "./matrix.ts";
import { packages, type Module } from "./packages.ts";

for (const [version, model, node] of [
  ["7.0.173", "MockLanguageModelV4", 22],
  ["6.0.326", "MockLanguageModelV3", 20],
] as const) {
  const { skip, load } = await packages({ ai: version, zod: "4.3.6" }, node);

  adapterTests(`Vercel AI SDK ${version}`, skip, async (): Promise<Driver<string>> => {
    const { generateText, tool, stepCountIs, isStepCount } = await load("ai");
    const mocks = await load("ai/test");
    const { z } = await load("zod");
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    /** Calls the tool, or repeats the tool's result if that is the last message. */
    const script = (args: unknown): unknown =>
      new mocks[model]({
        doGenerate: async ({ prompt }: Module) => {
          const { role, content } = prompt.at(-1);
          const isAnswer = role === "tool" && content.some((part: Module) => part.type === "tool-result");
          const said = { type: "text", text: JSON.stringify(content) };
          const call = {
            type: "tool-call",
            toolCallId: `call-${prompt.length}`,
            toolName: "refund",
            input: JSON.stringify(args),
          };
          return {
            content: [isAnswer ? said : call],
            finishReason: { unified: isAnswer ? "stop" : "tool-calls", raw: undefined },
            usage,
            warnings: [],
          };
        },
      });
    const inputSchema = z.object({ amount: z.number(), to: z.string() });
    const go: (messages: Module[], args: unknown, rest: Module) => Promise<{ state: string; told: string }> = async (
      messages,
      args,
      [gate, execute],
    ) => {
      const tools = governTools({ refund: tool({ inputSchema, execute }) }, gate);
      const result = await generateText({
        model: script(args),
        tools,
        messages,
        stopWhen: (stepCountIs ?? isStepCount)(3),
      });
      const all = [...messages, ...(result.responseMessages ?? result.response.messages)];
      return { state: JSON.stringify(all), told: JSON.stringify(all) };
    };
    return {
      begin: (params, ...rest) => go([{ role: "user", content: "refund" }], params, rest),
      resume: (state, ...rest) => {
        const messages = JSON.parse(state) as Module[];
        const request = messages.at(-1).content.find((part: Module) => part.type === "tool-approval-request");
        const content = [{ type: "tool-approval-response", approvalId: request.approvalId, approved: true }];
        return go([...messages, { role: "tool", content }], {}, rest);
      },
    };
  });
}

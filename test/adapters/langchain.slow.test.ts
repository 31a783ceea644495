import { wrapToolCall } from "../../clients/typescript/adapters/langchain.ts";
import { adapterTests, type Driver } from "./matrix.ts";
import { packages, type Module } from "./packages.ts";

const VERSION = "1.5.14";
const { skip, load } = await packages({
  langchain: VERSION,
  "@langchain/core": "1.4.0",
  "@langchain/langgraph": "1.7.3",
  zod: "4.3.6",
});

for (const interrupts of [true, false])
  adapterTests(
    `LangChain ${VERSION}, ${interrupts ? "with" : "without"} interrupts`,
    skip,
    async (): Promise<Driver<string>> => {
      const { createAgent, createMiddleware, tool, ToolMessage, AIMessage } = await load("langchain");
      const { interrupt, Command, MemorySaver } = await load("@langchain/langgraph");
      const { BaseChatModel } = await load("@langchain/core/language_models/chat_models");
      const { z } = await load("zod");
      let calls = 0;
      /** Calls the tool, or repeats the tool's result if that is the last message. */
      class Script extends BaseChatModel {
        args: unknown;
        constructor(args: unknown) {
          super({});
          this.args = args;
        }
        _llmType(): string {
          return "script";
        }
        bindTools(): this {
          return this;
        }
        async _generate(messages: Module[]): Promise<unknown> {
          const last = messages.at(-1);
          const isAnswer = last.getType() === "tool";
          const message = isAnswer
            ? new AIMessage(String(last.content))
            : new AIMessage({
                content: "",
                tool_calls: [{ id: `call-${++calls}`, name: "refund", args: this.args, type: "tool_call" }],
              });
          return { generations: [{ text: "", message }] };
        }
      }
      const schema = z.object({ amount: z.number(), to: z.string() });
      // The checkpoints are stored by the framework, and survive a restart.
      const checkpointer = new MemorySaver();
      const go = async (thread: string, input: unknown, args: unknown, [gate, run]: Module) => {
        const middleware = createMiddleware({
          name: "assent",
          wrapToolCall: wrapToolCall({
            ...gate,
            message: (fields) => new ToolMessage(fields) as unknown,
            ...(interrupts ? { interrupt } : {}),
          }),
        });
        const tools = [tool(run, { name: "refund", description: "refund", schema })];
        const agent = createAgent({ model: new Script(args), tools, middleware: [middleware], checkpointer });
        const { messages } = await agent.invoke(input, { configurable: { thread_id: thread } });
        return { state: thread, told: String(messages.at(-1).content) };
      };
      let threads = 0;
      const begin: Driver<string>["begin"] = (params, ...rest) =>
        go(`thread-${++threads}`, { messages: [{ role: "user", content: "refund" }] }, params, rest);
      if (!interrupts) return { begin };
      return { begin, resume: (thread, ...rest) => go(thread, new Command({ resume: { approved: true } }), {}, rest) };
    },
  );

import { assentCallbacks } from "../../clients/typescript/adapters/google-adk.ts";
import { adapterTests, type Driver } from "./matrix.ts";
import { packages, type Module } from "./packages.ts";

const VERSION = "2.0.0";
const { skip, load } = await packages({ "@google/adk": VERSION, zod: "4.3.6" });

adapterTests(`Google ADK ${VERSION}`, skip, async (): Promise<Driver<null>> => {
  const { LlmAgent, BaseLlm, FunctionTool, InMemoryRunner } = await load("@google/adk");
  const { z } = await load("zod");
  /** Calls the tool, or repeats the tool's result if that is the last content. */
  class Script extends BaseLlm {
    args: unknown;
    constructor(args: unknown) {
      super({ model: "script" });
      this.args = args;
    }
    async *generateContentAsync({ contents }: Module): AsyncGenerator<unknown> {
      const answer = contents.at(-1).parts.find((part: Module) => part.functionResponse !== undefined);
      const part =
        answer === undefined
          ? { functionCall: { id: "call-1", name: "refund", args: this.args } }
          : { text: JSON.stringify(answer.functionResponse.response) };
      yield { content: { role: "model", parts: [part] } };
    }
    async connect(): Promise<never> {
      throw new Error("no live connection");
    }
  }
  const parameters = z.object({ amount: z.number(), to: z.string() });
  return {
    async begin(params, gate, run) {
      const execute = (args: Module): unknown => ({ said: run({ amount: args.amount, to: args.to }) });
      const tools = [new FunctionTool({ name: "refund", description: "refund", parameters, execute })];
      const agent = new LlmAgent({ name: "support", model: new Script(params), tools, ...assentCallbacks(gate) });
      const runner = new InMemoryRunner({ agent, appName: "app" });
      const session = await runner.sessionService.createSession({ appName: "app", userId: "u" });
      let told = "";
      const newMessage = { role: "user", parts: [{ text: "refund" }] };
      for await (const event of runner.runAsync({ userId: "u", sessionId: session.id, newMessage }))
        told += JSON.stringify(event.content ?? event);
      return { state: null, told };
    },
  };
});

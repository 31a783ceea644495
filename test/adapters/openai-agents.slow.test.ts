import { governTool } from "../../clients/typescript/adapters/openai-agents.ts";
import { adapterTests, type Driver } from "./matrix.ts";
import { packages, type Module } from "./packages.ts";

const VERSION = "0.20.0";
const { skip, load } = await packages({ "@openai/agents": VERSION, zod: "4.3.6" });

adapterTests(`OpenAI Agents ${VERSION}`, skip, async (): Promise<Driver<string>> => {
  const { Agent, Runner, RunState, tool, Usage } = await load("@openai/agents");
  const { z } = await load("zod");
  let calls = 0;
  /** Calls the tool, or repeats the tool's result if that is the last input. */
  const script = (args: unknown): unknown => ({
    async getResponse({ input }: Module) {
      const last = typeof input === "string" ? null : input.at(-1);
      const said = {
        type: "message",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: JSON.stringify(last) }],
      };
      const call = {
        type: "function_call",
        callId: `call-${++calls}`,
        name: "refund",
        status: "completed",
        arguments: JSON.stringify(args),
      };
      return { usage: new Usage(), output: [last?.type === "function_call_result" ? said : call] };
    },
  });
  const parameters = z.object({ amount: z.number(), to: z.string() });
  const agentOf = (args: unknown, [gate, execute]: Module): Module =>
    new Agent({
      name: "support",
      model: script(args),
      tools: [tool(governTool({ name: "refund", description: "refund", parameters, execute }, gate))],
    });
  const runner = new Runner({ tracingDisabled: true });
  const shown = (result: Module) => ({ state: result.state.toString() as string, told: String(result.finalOutput) });
  return {
    begin: async (params, ...rest) => shown(await runner.run(agentOf(params, rest), "refund")),
    async resume(text, ...rest) {
      const agent = agentOf({}, rest);
      const state = await RunState.fromString(agent, text);
      for (const interruption of state.getInterruptions()) state.approve(interruption);
      return shown(await runner.run(agent, state));
    },
  };
});

import type { Command, CommandEntry } from "../../../src/command.ts";

/** Answers one event. Hosts run this command for each call, so it does not load the subcommands or other commands. */
const answerEvent: Command = {
  help: "",
  async run(args) {
    await (await import("../launcher.ts")).runHook(args);
    return Number(process.exitCode ?? 1);
  },
};

export default {
  group: "clients",
  position: 1,
  summary: "decide on each tool call of a coding agent",
  load: async (args) => (args?.[0]?.startsWith("--") === true ? answerEvent : (await import("../cli/hook.ts")).hook),
} satisfies CommandEntry;

/** Commands that ask the agent of a pending action, and that answer for the agent. */
import {
  type Command,
  createClient,
  createPrivilegedClient,
  EXIT_CODES,
  parseArguments,
  usageError,
  withServiceErrors,
} from "../../../src/command.ts";
import { completeId, printAction } from "../../actions/cli/api.ts";

export const ask: Command = {
  help: `usage: assent ask ID QUESTION [--json]

The agent receives the question when it next submits or waits for the action. "assent actions ID" shows its answer.
ID can be the beginning of the id of one pending action, of 8 characters or more.

examples:
  assent ask 019346a0-0000-7000-8000-000000000000 "Which customer asked for this?"
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, { json: { type: "boolean" } });
    const [id, question] = idAndText(positionals, "ask", "a question");
    const service = await createPrivilegedClient();
    const action = await withServiceErrors(async () => service.ask(await completeId(service, id), question));
    printAction(io, action, values.json === true);
    return EXIT_CODES.ok;
  },
};

export const answer: Command = {
  help: `usage: assent answer ID TEXT [--question N] [--json]

Answers the first question without an answer, or question N. The key must be the one that submitted the action, or a key of
its agent. A coding agent behind "assent hook" runs this command as it is: the hook sends the answer with its own key.

examples:
  assent answer 019346a0-0000-7000-8000-000000000000 "Customer 4711, ticket T-1001"
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, { question: { type: "string" }, json: { type: "boolean" } });
    const [id, text] = idAndText(positionals, "answer", "a text");
    const { question } = values;
    if (question !== undefined && !/^[1-9]$/.test(question))
      throw usageError(`--question must be the number of a question (1 to 9); got "${question}"`);
    const number = question === undefined ? undefined : Number(question);
    const service = await createClient();
    const action = await withServiceErrors(async () => service.answer(await completeId(service, id), text, { number }));
    printAction(io, action, values.json === true);
    return EXIT_CODES.ok;
  },
};

function idAndText(positionals: string[], verb: string, noun: string): [id: string, text: string] {
  const [id, text, ...more] = positionals;
  if (id === undefined || text === undefined || more.length > 0)
    throw usageError(`assent ${verb} takes one action id and ${noun}; put the text in quotes`);
  return [id, text];
}

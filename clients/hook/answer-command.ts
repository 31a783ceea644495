/**
 * Recognizes `assent answer ID TEXT`, with which an agent answers an approver's question. The hook sends the answer and
 * denies the call, so the command never runs and does not need a decision.
 */
import type { ActionRequest, Assent } from "../typescript/index.ts";
import type { ParsedShell } from "./shell/shell-types.ts";

interface AnswerCommand {
  id: string;
  text: string;
  number: number | undefined;
}

/** Parses the command. Returns null if the call is any other command, or if an argument is not literal. */
export function parseAnswerCommand({ tool, params }: ActionRequest): AnswerCommand | null {
  const parsed = params?.["parsed"] as ParsedShell | undefined;
  const [command, ...more] = parsed?.commands ?? [];
  if (tool !== "shell" || parsed === undefined || command === undefined || more.length > 0) return null;
  const isPlain = [command.via, parsed.unclear, parsed.reads, parsed.writes].every((list) => list.length === 0);
  const [verb, id, text, option, number, ...rest] = command.args;
  if (!isPlain || command.name !== "assent" || verb !== "answer" || id === undefined || text === undefined) return null;
  if (option === undefined) return { id, text, number: undefined };
  const isNumbered = option === "--question" && /^[1-9]$/.test(number ?? "") && rest.length === 0;
  return isNumbered ? { id, text, number: Number(number) } : null;
}

/** Sends the answer. Returns the message for the agent. */
export async function sendAnswer(
  assent: Assent,
  { id, text, number }: AnswerCommand,
  signal: AbortSignal,
): Promise<string> {
  await assent.answer(id, text, { number, signal });
  return `Your answer about ${id} was delivered to the approver; nothing was run. Now repeat the call that waits for approval, unchanged.`;
}

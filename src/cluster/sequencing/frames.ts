/** What one message between two processes holds: many commands, and their answers in the same order. */
import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Refusal, type FieldError } from "../../contract/errors.ts";
import type { Credential } from "../../contract/host.ts";
import { keyDigest } from "./key-digest.ts";

/** Where a process takes the commands of others. No part of the API. */
export const PEER_PATH = "/_assent/commands";

export const MOST_COMMANDS = 256;
/** Characters of one command, and of all in a message. What is larger this process does itself. */
export const LARGEST_COMMAND = 131_072;
export const LARGEST_FRAME = 1_048_576;
/** Bytes of a message, none of whose characters takes more than three, and of an answer. */
export const MOST_FRAME_BYTES = 4 * LARGEST_FRAME;
export const MOST_ANSWER_BYTES = 16 * LARGEST_FRAME;

const Frame = Type.Object({
  /** Of two processes that would not decide alike neither does the other's work. */
  likeness: Type.String(),
  commands: Type.Array(
    Type.Object({
      name: Type.String(),
      key: Type.String({ maxLength: 64 }),
      /** What `keyDigest` says of the row by which it was let in. */
      row: Type.String({ maxLength: 64 }),
      payload: Type.Unknown(),
    }),
    { minItems: 1, maxItems: MOST_COMMANDS },
  ),
});
export type Frame = Static<typeof Frame>;

const Said = Type.Object({
  code: Type.String(),
  status: Type.Integer({ minimum: 400, maximum: 599 }),
  title: Type.String(),
  detail: Type.String(),
  errors: Type.Array(Type.Unknown()),
  headers: Type.Record(Type.String(), Type.String()),
});

/** `done` with what the command answers, `refused` as its job refused it, or neither: whether it was done is not known. */
const Outcome = Type.Object({ done: Type.Optional(Type.Unknown()), refused: Type.Optional(Said) });
export type Outcome = Static<typeof Outcome>;

const Answer = Type.Union([
  Type.Object({ outcomes: Type.Array(Outcome) }),
  /** None of the frame's commands was begun. */
  Type.Object({ declined: Type.String() }),
]);
export type Answer = Static<typeof Answer>;

const frameForm = TypeCompiler.Compile(Frame);
const answerForm = TypeCompiler.Compile(Answer);

/** Null for what is none. */
export const readFrame = (bytes: Uint8Array): Frame | null => read(frameForm, bytes);
export const readAnswer = (bytes: Uint8Array): Answer | null => read(answerForm, bytes);

function read<T>(form: { Check(value: unknown): boolean }, bytes: Uint8Array): T | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return form.Check(value) ? (value as T) : null;
  } catch {
    return null;
  }
}

/** @param commands as `commandText` wrote them */
export const frameText = (likeness: string, commands: readonly string[]): string =>
  `{"likeness":${JSON.stringify(likeness)},"commands":[${commands.join(",")}]}`;

export const commandText = (name: string, { key }: Credential, payload: unknown): string =>
  JSON.stringify({ name, key: key.id, row: keyDigest(key), payload });

export const declinedText = (why: string): string => JSON.stringify({ declined: why } satisfies Answer);

export const refusalOutcome = ({ kind, message, errors, headers }: Refusal): Outcome => ({
  refused: { code: kind.code, status: kind.status, title: kind.title, detail: message, errors, headers },
});

export function refusalOf({ code, status, title, detail, errors, headers }: NonNullable<Outcome["refused"]>): Refusal {
  return new Refusal({ code, status, title }, detail, { errors: errors as FieldError[], headers });
}

/** Compiled once for each command. */
export function formOf(schema: TSchema): (value: unknown) => boolean {
  const form = TypeCompiler.Compile(schema);
  return (value) => form.Check(value);
}

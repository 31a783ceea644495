/** Starts and results that name their attempt, as one process has another do them. The attempt is what finds them again. */
import { Type, type Static } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { defineCommand, type LedgerCommand } from "../../src/contract/commands.ts";
import type { Host } from "../../src/contract/host.ts";
import type { ActionRow } from "../../src/contract/storage.ts";
import type { ActionRequest } from "../../src/domain/actions.ts";
import { canonicalText } from "../../src/domain/canonical.ts";
import type { JsonValue } from "../../src/domain/json.ts";
import { sealRequest } from "../../src/domain/request.ts";
import { isNoLongerAllowed } from "./again.ts";
import { WholeRow } from "./answered-row.ts";
import { foreseeResult, recordResult, statusAfter, type Reported, type ResultCall } from "./result.ts";
import { recordAltered } from "./recorded.ts";
import { assertKept, sizeOf } from "./rows.ts";
import { Nullable, ResultBody } from "./schemas.ts";
import { decideStart, foreseeStart, type StartCall, type Started } from "./start.ts";

export interface ExecutionCommands {
  start: LedgerCommand<StartCall, Started>;
  result: LedgerCommand<ResultCall, Reported>;
}

/** Bytes of a row that comes back whole: a message has room for the answers to as many commands as another holds. */
const LARGEST_ROW = 16_384;
const LEFT_OUT = { request: "", past: null };

/** As it stands in the path: of any form, because a payload that is not taken counts against the one that leads. */
const Id = Type.String();
const Digest = Type.String({ pattern: "^[0-9a-f]{64}$" });

const StartPayload = Type.Object(
  { id: Id, permit: Nullable(Type.String({ maxLength: 8192 })), attempt: Digest },
  { additionalProperties: false },
);

const ResultPayload = Type.Object(
  { id: Id, attempt: Digest, /** Canonical. */ result: Type.String() },
  { additionalProperties: false },
);

const resultForm = TypeCompiler.Compile(
  Type.Required(Type.Omit(ResultBody, ["attempt"]), { additionalProperties: false }),
);

const Answer = Type.Object({ row: WholeRow, repeated: Type.Boolean(), attempt: Digest });

export function executionCommands(host: Host): ExecutionCommands {
  return {
    start: defineCommand<StartCall, Started>({
      name: "actions.start",
      scope: "actions:execute",
      payload: StartPayload,
      answer: Answer,
      pack: ({ id, permit, attempt }) => ({ id, permit, attempt }),
      open: (payload) => payload as Static<typeof StartPayload>,
      run: (tx, who, call) => decideStart(host, tx, who, call),
      foresee: (_, call) => foreseeStart(call),
      reply: answerOf,
      read(answer, call, { key }) {
        const output = answerTo(call, answer);
        const { row, repeated } = output;
        const runs = row.status === "executing" && row.started_by === key.id;
        const turnedDown = !repeated && (row.status === "pending_approval" || isNoLongerAllowed(row));
        if (!runs && !turnedDown) throw new Error(`it says that the start left the action ${row.id} ${row.status}`);
        return output;
      },
    }),
    result: defineCommand<ResultCall, Reported>({
      name: "actions.result",
      scope: "actions:execute",
      payload: ResultPayload,
      answer: Answer,
      pack: ({ id, attempt, result }) => ({ id, attempt, result: canonicalText(result) }),
      open: (payload) => openResult(payload as Static<typeof ResultPayload>),
      run: (tx, who, call) => recordResult(host, tx, who, call),
      foresee: (_, call) => foreseeResult(call),
      reply: answerOf,
      read(answer, call, { key }) {
        const output = answerTo(call, answer);
        const { row } = output;
        const fits = row.status === statusAfter(call.result) && row.result === canonicalText(call.result);
        if (!fits || row.started_by !== key.id)
          throw new Error(`it says that the result left the action ${row.id} ${row.status}`);
        return output;
      },
    }),
  };
}

/** What was asked for is left out of a large row: `withRequest` reads it. */
function answerOf({ row, ...rest }: Started | Reported): Started | Reported {
  return { row: sizeOf(row) > LARGEST_ROW ? { ...row, ...LEFT_OUT } : row, ...rest };
}

/**
 * A row that an answer held, with what that left out. Whoever writes to the database may have changed it since the leader
 * held it against the ledger, and somebody runs what is answered. Throws RECORD_ALTERED, ACTION_ERASED.
 */
export async function withRequest(host: Pick<Host, "storage">, row: ActionRow): Promise<ActionRow> {
  if (row.request !== "") return row;
  const stored = await host.storage.action(row.id);
  if (stored === null) throw recordAltered(row, ["request"]);
  assertKept(stored);
  const { request, past } = stored;
  if (hashOf(request) !== row.request_hash) throw recordAltered(row, ["request"]);
  return { ...row, request, past };
}

function hashOf(request: string): string | null {
  try {
    return sealRequest(JSON.parse(request) as ActionRequest).hash;
  } catch {
    return null;
  }
}

/** By its attempt an answer is to this call, and to no other about the same action. */
function answerTo({ id, attempt }: StartCall | ResultCall, answer: unknown): Started | Reported {
  const { row, repeated, attempt: answered } = answer as Started | Reported;
  if (row.id !== id.toLowerCase() || answered !== attempt)
    throw new Error(`it tells of the action ${row.id} and another attempt, and was asked about ${id}`);
  return { row, repeated, attempt };
}

/**
 * Nothing that hashes stand for is taken on trust: what is hashed is what was parsed, and has one text. Whatever has no
 * other is taken: 1e20, which an agent may write, stands there with all its digits, which an agent may not.
 */
function openResult({ id, attempt, result: text }: Static<typeof ResultPayload>): ResultCall {
  const result = JSON.parse(text) as JsonValue;
  if (!resultForm.Check(result) || canonicalText(result) !== text) throw new Error("the result is none");
  return { id, attempt, result: result as ResultCall["result"] };
}

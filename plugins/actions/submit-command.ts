/** A submission as one process has another decide it. */
import { Type, type Static } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { defineCommand, type LedgerCommand } from "../../src/contract/commands.ts";
import type { Host } from "../../src/contract/host.ts";
import type { ActionRow } from "../../src/contract/storage.ts";
import type { ActionRequest } from "../../src/domain/actions.ts";
import { sha256Hex, utf8 } from "../../src/domain/hash.ts";
import { commitKept, readKept } from "../../src/domain/kept.ts";
import { sealRequest } from "../../src/domain/request.ts";
import { DecidedRow } from "./answered-row.ts";
import { ActionBody, Nullable } from "./schemas.ts";
import { callOf, decideSubmission, foreseeSubmission, type SealedSubmission, type Submitted } from "./submit.ts";

export type SubmitCommand = LedgerCommand<SealedSubmission, Submitted>;

const Payload = Type.Object(
  {
    id: Type.String({ format: "uuid" }),
    salt: Type.String({ pattern: "^[0-9a-f]{64}$" }),
    /** The request in canonical form, which its hash is of, and as its author ordered it. */
    text: Type.String(),
    shown: Type.String(),
    meta: Nullable(Type.String()),
    idempotency_key: Nullable(Type.String({ pattern: "^[\\x21-\\x7e]{1,255}$" })),
    join: Type.Boolean(),
  },
  { additionalProperties: false },
);

const requestForm = TypeCompiler.Compile(
  Type.Required(Type.Omit(ActionBody, ["meta"]), { additionalProperties: false }),
);

const Answer = Type.Object({
  by: Type.Union([Type.Literal("made"), Type.Literal("recovered"), Type.Literal("replayed"), Type.Literal("joined")]),
  row: DecidedRow,
});

export function submitCommand(host: Host): SubmitCommand {
  return defineCommand<SealedSubmission, Submitted>({
    name: "actions.submit",
    scope: "actions:submit",
    payload: Payload,
    answer: Answer,
    pack: ({ id, salt, sealed, shown, beside, call, join }) =>
      ({
        id,
        salt,
        text: sealed.text,
        shown: shown(),
        meta: beside.text,
        idempotency_key: call?.key ?? null,
        join,
      }) satisfies Static<typeof Payload>,
    open: (payload) => openSubmission(payload as Static<typeof Payload>),
    run: (tx, who, submission, again) => decideSubmission(host, tx, who, submission, again),
    foresee: foreseeSubmission,
    reply({ row, by }) {
      if (by !== "made") return { by, row };
      const { request: _request, request_hash: _hash, salt: _salt, meta: _meta, ...rest } = row;
      return { by, row: rest };
    },
    read(answer, { id, salt, sealed, shown, beside }, { key }) {
      const { by, row: sent } = answer as { by: Submitted["by"]; row: ActionRow };
      const row =
        by === "made"
          ? {
              ...sent,
              request: sent.quorum === null ? sealed.text : shown(),
              request_hash: sealed.hash,
              salt,
              meta: beside.text,
            }
          : sent;
      const own = by === "made" || by === "recovered";
      if (row.submitted_by !== key.id || row.request_hash !== sealed.hash || (own && row.id !== id))
        throw new Error(`it tells of the action ${row.id}, which is not what was submitted`);
      return { row, by };
    },
  });
}

/** Nothing that hashes stand for is taken on trust: what is decided on is what is hashed, and what people are shown. */
function openSubmission({
  id,
  salt,
  text,
  shown,
  meta,
  idempotency_key,
  join,
}: Static<typeof Payload>): SealedSubmission {
  const request: unknown = JSON.parse(text);
  if (!requestForm.Check(request)) throw new Error("the submission is no request");
  const hash = sha256Hex(utf8(text));
  const kept = meta === null ? null : readKept(meta);
  if (meta !== null && kept === null) throw new Error("the submission's meta cannot be read");
  return {
    id,
    salt,
    request: request as ActionRequest,
    sealed: { text, hash },
    shown() {
      if (sealRequest(JSON.parse(shown) as ActionRequest).hash !== hash)
        throw new Error("people would be shown another request than is decided on");
      return shown;
    },
    beside: { commitment: kept === null ? null : commitKept(kept), text: meta },
    call: callOf(idempotency_key),
    join,
  };
}

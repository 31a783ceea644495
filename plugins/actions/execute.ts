/** Start with a permit, once; then one result. */
import { Refusal } from "../../src/contract/errors.ts";
import type { Credential, Host } from "../../src/contract/host.ts";
import type { ActionRow } from "../../src/contract/storage.ts";
import { actorOf } from "../../src/domain/actor.ts";
import { canonicalText } from "../../src/domain/canonical.ts";
import { sha256Hex, utf8 } from "../../src/domain/hash.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { aboutAction } from "../../src/domain/open-actions.ts";
import { commitResult } from "../../src/domain/request.ts";
import { toRfc3339 } from "../../src/domain/time.ts";
import { maySee } from "../../src/domain/visibility.ts";
import { decideAgain, denyNow, isNoLongerAllowed, noLongerAllowed } from "./again.ts";
import { permitFault } from "./permits.ts";
import { assertRecorded } from "./recorded.ts";
import { assertKept, reread, unknownAction } from "./rows.ts";
import type { ResultBody } from "./schemas.ts";

/** A tool that holds the permit may start an action it could not otherwise see: the permit is the proof. */
export async function startAction(host: Host, credential: Credential, id: string, permit: string): Promise<ActionRow> {
  const row = await host.ledger.transact(async (tx) => {
    const who = await tx.confirm(credential);
    const row = await tx.action(id);
    const fault = row === null ? null : permitFault(host, row, permit, tx.now);
    const genuine = fault === null || fault === "expired";
    const reachable = row !== null && (maySee(who.visibility, row) || (genuine && who.key.agent_id === null));
    if (!reachable) throw unknownAction(id);
    assertKept(row);
    const first = await assertRecorded(host, tx, row, row.quorum === null ? [] : await tx.approvals(id));
    if (row.permit_expires_at === null)
      throw new Refusal(
        "ACTION_NOT_STARTABLE",
        `the action is ${row.status}; only an allowed or approved one can start`,
      );
    if (!genuine)
      throw new Refusal(
        "PERMIT_INVALID",
        "the permit was not made for this action by this log; take `permit` from GET /v1/actions/{id}",
      );
    if (row.status !== "allowed" && row.status !== "approved") {
      throw new Refusal("ACTION_NOT_STARTABLE", `the action is ${row.status}; a permit is good for one start`);
    }
    if (fault === "expired" || row.permit_expires_at <= tx.now)
      throw new Refusal(
        "PERMIT_EXPIRED",
        `the permit ended at ${toRfc3339(row.permit_expires_at)}; submit the action again`,
      );
    const by = actorOf(who.key, who.principal);
    const again = await decideAgain(tx, row, first);
    if (again.decision.effect === "deny") return denyNow(tx, row, again, "start", by);
    tx.record(
      {
        type: "execution",
        v: 1,
        ...aboutAction(row, tx.now),
        phase: "start",
        by,
        permit: sha256Hex(utf8(permit)),
        success: null,
        result: null,
        status: "executing",
      },
      row.submitted_by,
    );
    const moved = await tx.updateAction(
      id,
      { status: row.status, permit_after: tx.now },
      { status: "executing", started_at: tx.now, started_by: who.key.id, updated_at: tx.now },
    );
    if (!moved) throw new Error(`${id} did not start although the ledger's lock was held`);
    return reread(tx, id);
  });
  if (isNoLongerAllowed(row)) throw noLongerAllowed(row);
  return row;
}

export function reportResult(host: Host, credential: Credential, id: string, body: ResultBody): Promise<ActionRow> {
  return host.ledger.transact(async (tx) => {
    const who = await tx.confirm(credential);
    const row = await tx.action(id);
    const starter = row !== null && row.started_by === who.key.id;
    if (row === null || !(maySee(who.visibility, row) || starter)) {
      throw unknownAction(id);
    }
    assertKept(row);
    await assertRecorded(host, tx, row);
    if (row.status !== "executing") {
      const how = row.result === null ? "start it first" : "its result was reported already";
      throw new Refusal("ACTION_NOT_STARTED", `the action is ${row.status}; ${how}`);
    }
    if (!starter)
      throw new Refusal("NOT_THE_EXECUTOR", "another key started this action; only that key reports its result");
    const result = { error: body.error ?? null, meta: (body.meta ?? {}) as JsonObject, success: body.success };
    const status = body.success ? "succeeded" : "failed";
    tx.record(
      {
        type: "execution",
        v: 1,
        ...aboutAction(row, tx.now),
        phase: "result",
        by: actorOf(who.key, who.principal),
        permit: null,
        success: body.success,
        result: commitResult(row.salt, result),
        status,
      },
      row.submitted_by,
    );
    const moved = await tx.updateAction(
      id,
      { status: "executing" },
      { status, result: canonicalText(result), updated_at: tx.now },
    );
    if (!moved) throw new Error(`${id} took no result although the ledger's lock was held`);
    return reread(tx, id);
  });
}

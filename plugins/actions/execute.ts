/** Start once, as the submitter or with a permit; then one result. */
import { Refusal } from "../../src/contract/errors.ts";
import type { Credential, Host } from "../../src/contract/host.ts";
import type { ActionRow } from "../../src/contract/storage.ts";
import { actorOf } from "../../src/domain/actor.ts";
import { canonicalText } from "../../src/domain/canonical.ts";
import { sha256Hex, utf8 } from "../../src/domain/hash.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { aboutAction } from "../../src/domain/open-actions.ts";
import { commitResult } from "../../src/domain/request.ts";
import { groundOf } from "../../src/domain/permit.ts";
import { countPeople } from "../../src/domain/standing.ts";
import { maySee } from "../../src/domain/visibility.ts";
import {
  askMore,
  decideAgain,
  denyNow,
  isNoLongerAllowed,
  moreApprovalsNeeded,
  noLongerAllowed,
  outcomeOf,
} from "./again.ts";
import { assertStartable, permitFault } from "./permits.ts";
import { behind } from "../../src/http/resource/people.ts";
import { assertRecorded } from "./recorded.ts";
import { assertKept, reread, unknownAction } from "./rows.ts";
import type { ResultBody } from "./schemas.ts";

/**
 * The key that submitted the action needs no permit: it would be given one. A tool that holds a permit may start an
 * action it could not otherwise see: the permit is the proof.
 */
export async function startAction(
  host: Host,
  credential: Credential,
  id: string,
  permit: string | null,
): Promise<ActionRow> {
  const row = await host.ledger.transact(async (tx) => {
    const who = await tx.confirm(credential);
    const row = await tx.action(id);
    const fault = row === null || permit === null ? null : permitFault(host, row, permit, tx.now);
    const genuine = permit !== null && (fault === null || fault === "expired");
    const reachable = row !== null && (maySee(who.visibility, row) || (genuine && who.key.agent_id === null));
    if (!reachable) throw unknownAction(id);
    assertKept(row);
    const votes = row.quorum === null ? [] : await tx.approvals(id);
    const { first, grounds } = await assertRecorded(host, tx, row, votes);
    if (row.approved_until === null) assertStartable(row, tx.now);
    if (permit === null && row.submitted_by !== who.key.id)
      throw new Refusal(
        "PERMIT_REQUIRED",
        "another key submitted the action; send the `permit` that it was given, or take one from POST /v1/actions/{id}/permit",
      );
    if (permit !== null && !genuine)
      throw new Refusal(
        "PERMIT_INVALID",
        "the permit was not made for this action by this log; take one from POST /v1/actions/{id}/permit",
      );
    assertStartable(row, tx.now);
    if (fault === "expired")
      throw new Refusal("PERMIT_EXPIRED", "the permit has ended; take another from POST /v1/actions/{id}/permit");
    if (permit !== null && !grounds.has(groundOf(permit)))
      throw new Refusal(
        "PERMIT_INVALID",
        "the action waited for approval again after this permit was made; take another from POST /v1/actions/{id}/permit",
      );
    const by = actorOf(who.key, who.principal);
    const again = await decideAgain(tx, row, first);
    const approvals = countPeople(votes.filter(({ approve }) => approve).map((vote) => behind(host, vote)));
    const outcome = outcomeOf(again, approvals);
    const cause = { occasion: "start", by } as const;
    if (outcome === "denied") return denyNow(tx, row, again, cause);
    if (outcome === "pending_approval") return askMore(tx, row, again, cause);
    tx.record(
      {
        type: "execution",
        v: 2,
        ...aboutAction(row, tx.now),
        phase: "start",
        by,
        permit: permit === null ? null : sha256Hex(utf8(permit)),
        success: null,
        result: null,
        status: "executing",
      },
      row.submitted_by,
    );
    const moved = await tx.updateAction(
      id,
      { status: row.status, approved_after: tx.now },
      { status: "executing", started_at: tx.now, started_by: who.key.id, updated_at: tx.now },
    );
    if (!moved) throw new Error(`${id} did not start although the ledger's lock was held`);
    return reread(tx, id);
  });
  if (isNoLongerAllowed(row)) throw noLongerAllowed(row);
  if (row.status === "pending_approval") throw moreApprovalsNeeded(row);
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
        v: 2,
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

/** Flags: an approver records that an action should not have been let through, for example because their vote came too late. */
import {
  confirmCredential,
  type CoreHost,
  decodeEntry,
  defineCorePlugin,
  type LedgerTransaction,
  toActor,
} from "../../src/core.ts";
import { type Credential, defineRoute, type EntryBody, Refusal, toRfc3339 } from "../../src/plugin.ts";
import { IdParams, verifyAgainstLedger, visibleAction } from "../actions/api.ts";
import { flagNotice } from "./notice.ts";
import { ERRORS, FLAG_ENTRY, Flag, FlagBody } from "./schemas.ts";

const BODY_BYTES = 4096;
/** Maximum number of flags of one action, because each read of the action reads all its entries. */
const MAX_FLAGS = 20;
const STATUSES: readonly string[] = ["allowed", "approved", "executing", "succeeded", "failed", "unknown"];

export default defineCorePlugin({
  name: "flags",
  needs: ["actions"],
  errors: ERRORS,
  entries: { [FLAG_ENTRY]: Flag },
  notices: [flagNotice],
  setup: (host) => ({ routes: [flagRoute(host)] }),
});

function flagRoute(host: CoreHost) {
  return defineRoute({
    method: "POST",
    path: "/v1/actions/:id/flag",
    tag: "flags",
    summary: "Flag an action that was let through",
    description:
      "Records in the ledger that the action should not have been allowed or approved, and notifies the person whose approval was the last. Stops nothing: cancel the action, or place a stop. A person can flag an action once.",
    scope: "approvals:decide",
    params: IdParams,
    body: FlagBody,
    bodyLimit: BODY_BYTES,
    responses: { 204: { description: "The flag is recorded." } },
    errors: ["ACTION_NOT_FOUND", "RECORD_ALTERED", ERRORS.notFlaggable, ERRORS.flagged],
    async handle({ params, body, credential }) {
      await host.ledger.transact((tx) => flag(host, tx, credential, params.id, body.reason));
      return { status: 204 };
    },
  });
}

async function flag(
  host: CoreHost,
  tx: LedgerTransaction,
  credential: Credential,
  id: string,
  reason: string,
): Promise<void> {
  const caller = await confirmCredential(tx, credential, "approvals:decide");
  const row = await visibleAction(tx, id, caller);
  const { approvals } = await verifyAgainstLedger(host, tx, row);
  if (!STATUSES.includes(row.status))
    throw new Refusal(
      ERRORS.notFlaggable,
      row.status === "pending_approval"
        ? `the action ${id} still waits for approval; vote on it`
        : `the action ${id} was not let through: it is ${row.status}`,
    );
  const flags = (await tx.entriesOfAction(id)).filter(({ type }) => type === FLAG_ENTRY);
  const isOwn = ({ bytes }: { bytes: Uint8Array }): boolean =>
    decodeEntry<Extract<EntryBody, { data: object }>>(bytes).by?.principal === caller.principal;
  if (flags.some(isOwn)) throw new Refusal(ERRORS.flagged, `you have flagged the action ${id} already`);
  if (flags.length >= MAX_FLAGS)
    throw new Refusal(ERRORS.flagged, `the action ${id} has ${MAX_FLAGS} flags, which is the limit`);
  const approver = approvals.at(-1)?.principal ?? null;
  tx.record(
    {
      type: FLAG_ENTRY,
      v: 1,
      at: toRfc3339(tx.now),
      action_id: id,
      agent_id: row.agent_id,
      data: { reason, approver },
      by: toActor(caller.key, caller.principal),
    },
    row.submitted_by,
  );
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    flags: typeof flagRoute;
  }
}

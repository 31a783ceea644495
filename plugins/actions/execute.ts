/** Records starts and results under the ledger's lock, and prepares starts outside of it. */
import { type CoreHost, type JsonObject, withoutDelegations } from "../../src/core.ts";
import type { Credential } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { isPermitGenuine } from "./grant-permit.ts";
import { isDeniedByRedecision, moreApprovalsNeededError, noLongerAllowedError } from "./redecision.ts";
import { prefetchRedecision } from "./prefetch-redecision.ts";
import { prefetchResult, recordResult, type ReportedResult } from "./result.ts";
import type { ActionRecord, ResultBody, StartBody } from "./schemas.ts";
import {
  canAccessAction,
  findPreparation,
  hashOptionalText,
  type Prepared,
  prefetchStart,
  recordStart,
  type StartResult,
} from "./start.ts";

/**
 * Starts the action. Throws NO_LONGER_ALLOWED or MORE_APPROVALS_NEEDED after it has recorded that the current policies
 * prevent the start.
 * @param options.factHost returns the host of one decision
 * @param options.releaseQueueSlot called before something is created for the start, which can take seconds
 */
export async function startAction(
  host: CoreHost,
  credential: Credential,
  id: string,
  {
    permit = null,
    attempt = null,
    request_hash: requestHash = null,
    inspects,
  }: { [name in keyof StartBody]: StartBody[name] | null },
  { factHost, releaseQueueSlot }: { factHost: () => CoreHost; releaseQueueSlot: () => void },
): Promise<StartResult & { issued: ActionRecord["credential"] }> {
  const decideWith = (decider: CoreHost, prepared: Prepared | null): Promise<StartResult> => {
    const call = { id, permit, attempt: hashOptionalText(attempt), requestHash, inspects: inspects === true, prepared };
    return host.ledger.transact(
      async (tx) => recordStart(decider, tx, withoutDelegations(await tx.confirm(credential)), call),
      prefetchStart(call),
    );
  };
  const hasPermit = (row: ActionRow): boolean => permit !== null && isPermitGenuine(host, row, permit, host.clock());
  const first = factHost();
  await prefetchRedecision(first, [id], (row) => canAccessAction(credential, row, hasPermit(row)));
  let started = await decideWith(first, null);
  const preparation = findPreparation(host);
  let prepared: Prepared | null = null;
  if (preparation !== null && started.needs !== undefined) {
    // Slow work must not fill the queue that all decisions share, so release the slot.
    releaseQueueSlot();
    prepared = { value: await preparation.create(started.needs.value) };
    try {
      started = await decideWith(factHost(), prepared);
    } catch (error) {
      // The commit may have failed with an unknown outcome. The caller then repeats the start and receives a new
      // credential.
      await preparation.discard(prepared.value);
      throw error;
    }
    if (started.row.status !== "executing") await preparation.discard(prepared.value);
  }
  const { row } = started;
  // Throw only after the commit, because a refusal within the transaction would roll the record back.
  if (isDeniedByRedecision(row)) throw noLongerAllowedError(row);
  if (row.status === "pending_approval") throw moreApprovalsNeededError(row, started.changedPins ?? []);
  return { ...started, issued: prepared === null ? undefined : preparation?.render(prepared.value) };
}

export function reportResult(
  host: CoreHost,
  credential: Credential,
  id: string,
  {
    success,
    error = null,
    meta = {},
    usage = {},
    attempt = null,
  }: Omit<ResultBody, "attempt"> & { attempt?: string | null },
): Promise<ReportedResult> {
  const call = {
    id,
    attempt: hashOptionalText(attempt),
    result: { error, meta: meta as JsonObject, success },
    usage: Object.keys(usage).length === 0 ? null : usage,
    policySets: new Map(),
  };
  return host.ledger.transact(
    async (tx) => recordResult(host, tx, withoutDelegations(await tx.confirm(credential)), call),
    prefetchResult(call),
  );
}

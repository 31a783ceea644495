/** Records starts and results under the ledger's lock, and calls credential issuers outside of it. */
import { type CoreHost, type JsonObject, withoutDelegations } from "../../src/core.ts";
import type { Credential } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { isPermitGenuine } from "./grant-permit.ts";
import { isDeniedByRedecision, moreApprovalsNeededError, noLongerAllowedError } from "./redecision.ts";
import { prefetchRedecision } from "./prefetch-redecision.ts";
import { discardCredential, issueCredential, type UnrecordedCredential } from "./issue-credential.ts";
import { prefetchResult, recordResult, type ReportedResult } from "./result.ts";
import type { ResultBody, StartBody } from "./schemas.ts";
import { recordStart, hashOptionalText, canAccessAction, prefetchStart, type StartResult } from "./start.ts";

/**
 * Starts the action. Throws NO_LONGER_ALLOWED or MORE_APPROVALS_NEEDED after it has recorded that the current policies
 * prevent the start.
 * @param options.factHost returns the host of one decision
 * @param options.releaseQueueSlot called before a call to an issuer, which can take seconds
 */
export async function startAction(
  host: CoreHost,
  credential: Credential,
  id: string,
  {
    permit = null,
    attempt = null,
    request_hash: requestHash = null,
  }: { [name in keyof StartBody]: StartBody[name] | null },
  { factHost, releaseQueueSlot }: { factHost: () => CoreHost; releaseQueueSlot: () => void },
): Promise<StartResult & { issued: UnrecordedCredential | null }> {
  const decideWith = (decider: CoreHost, prepared: UnrecordedCredential | null): Promise<StartResult> => {
    const call = { id, permit, attempt: hashOptionalText(attempt), requestHash, credential: prepared };
    return host.ledger.transact(
      async (tx) => recordStart(decider, tx, withoutDelegations(await tx.confirm(credential)), call),
      prefetchStart(call),
    );
  };
  const hasPermit = (row: ActionRow): boolean => permit !== null && isPermitGenuine(host, row, permit, host.clock());
  const first = factHost();
  await prefetchRedecision(first, [id], (row) => canAccessAction(credential, row, hasPermit(row)));
  let started = await decideWith(first, null);
  let issued: UnrecordedCredential | null = null;
  if (started.needs !== undefined) {
    // A slow issuer must not fill the queue that all decisions share, so release the slot.
    releaseQueueSlot();
    issued = await issueCredential(host, started.needs);
    try {
      started = await decideWith(factHost(), issued);
    } catch (error) {
      // The commit may have failed after the start was recorded. The caller then repeats the start, and gets a new
      // credential.
      await discardCredential(host, issued, issued.credential.revocation);
      throw error;
    }
    if (started.row.status !== "executing") await discardCredential(host, issued, issued.credential.revocation);
  }
  const { row } = started;
  // Throw only after the commit, because a refusal within the transaction would roll the record back.
  if (isDeniedByRedecision(row)) throw noLongerAllowedError(row);
  if (row.status === "pending_approval") throw moreApprovalsNeededError(row, started.changedPins ?? []);
  return { ...started, issued };
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

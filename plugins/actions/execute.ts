/** Runs starts and results under the ledger's lock. */
import type { CoreHost, JsonObject } from "../../src/core.ts";
import type { Credential } from "../../src/plugin.ts";
import { isDeniedByRedecision, moreApprovalsNeededError, noLongerAllowedError } from "./redecision.ts";
import { prefetchResult, recordResult, type ReportedResult } from "./result.ts";
import type { ResultBody, StartBody } from "./schemas.ts";
import { decideStart, hashText, prefetchStart, type StartResult } from "./start.ts";

export async function startAction(
  host: CoreHost,
  credential: Credential,
  id: string,
  { permit = null, attempt = null }: { [name in keyof StartBody]: StartBody[name] | null },
): Promise<StartResult> {
  const call = { id, permit, attempt: hashText(attempt) };
  const started = await host.ledger.transact(
    async (tx) => decideStart(host, tx, await tx.confirm(credential), call),
    prefetchStart(call),
  );
  const { row } = started;
  // Thrown only after the commit, because a refusal inside the job would roll the record back.
  if (isDeniedByRedecision(row)) throw noLongerAllowedError(row);
  if (row.status === "pending_approval") throw moreApprovalsNeededError(row);
  return started;
}

export function reportResult(
  host: CoreHost,
  credential: Credential,
  id: string,
  { success, error = null, meta = {}, attempt = null }: Omit<ResultBody, "attempt"> & { attempt?: string | null },
): Promise<ReportedResult> {
  const call = { id, attempt: hashText(attempt), result: { error, meta: meta as JsonObject, success } };
  return host.ledger.transact(
    async (tx) => recordResult(host, tx, await tx.confirm(credential), call),
    prefetchResult(call),
  );
}

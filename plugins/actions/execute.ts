/** A start and a result as a process is asked for them: what names its attempt goes to the process that leads. */
import type { LedgerCommand } from "../../src/contract/commands.ts";
import type { Credential, Host } from "../../src/contract/host.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { isNoLongerAllowed, moreApprovalsNeeded, noLongerAllowed } from "./again.ts";
import { withRequest, type ExecutionCommands } from "./execution-commands.ts";
import type { Reported } from "./result.ts";
import type { ResultBody, StartBody } from "./schemas.ts";
import { digestOf, type Started } from "./start.ts";

export async function startAction(
  host: Host,
  { start }: ExecutionCommands,
  credential: Credential,
  id: string,
  { permit = null, attempt = null }: { [name in keyof StartBody]: StartBody[name] | null },
): Promise<Started> {
  const started = await run(host, start, credential, { id, permit, attempt: digestOf(attempt) });
  const { row } = started;
  // Recorded, and so after the commit: a refusal inside the job would take it back.
  if (isNoLongerAllowed(row)) throw noLongerAllowed(row);
  if (row.status === "pending_approval") throw moreApprovalsNeeded(row);
  return { ...started, row: await withRequest(host, row) };
}

export async function reportResult(
  host: Host,
  { result }: ExecutionCommands,
  credential: Credential,
  id: string,
  { success, error = null, meta = {}, attempt = null }: Omit<ResultBody, "attempt"> & { attempt?: string | null },
): Promise<Reported> {
  const reported = await run(host, result, credential, {
    id,
    attempt: digestOf(attempt),
    result: { error, meta: meta as JsonObject, success },
  });
  return { ...reported, row: await withRequest(host, reported.row) };
}

/** Without an attempt nothing would tell the same call from another one: such a call is made once, and here. */
function run<Input extends { attempt: string | null }, Output>(
  host: Host,
  command: LedgerCommand<Input, Output>,
  credential: Credential,
  input: Input,
): Promise<Output> {
  if (input.attempt !== null) return host.sequencing.run(command, credential, input);
  return host.ledger.transact(
    async (tx) => command.run(tx, await tx.confirm(credential), input, false),
    command.foresee(credential, input, false),
  );
}

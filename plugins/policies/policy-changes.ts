/**
 * Changes policies over the API. Each change is a ledger transaction that first reads and checks, then writes, so that
 * a refusal does not affect the rest of the batch.
 */
import {
  confirmCredential,
  type CoreHost,
  findCreatedResource,
  type IdempotentCall,
  isBaselinePolicy,
  type LedgerTransaction,
  type ParsedPolicy,
  type PolicyActivation,
  recordCreatedResource,
} from "../../src/core.ts";
import { assertIfMatch, type Credential, type ErrorKind, Refusal } from "../../src/plugin.ts";
import type { PolicyRow } from "../../src/storage/index.ts";
import {
  assertNotManaged,
  parseStoredDocument,
  findPolicy,
  findVersion,
  planPolicySave,
  toPolicyUpdate,
  type PlannedPolicySave,
} from "./stored-policies.ts";

/** Errors of routes that change one existing policy. */
export const CHANGE_ERRORS = ["POLICY_NOT_FOUND", "POLICY_MANAGED", "PRECONDITION_FAILED"] as const;

/** Returns the ETag, which changes with the latest and the active version. */
export function policyEtag(row: PolicyRow): string {
  return `"${row.latest_version}-${row.active_version ?? 0}"`;
}

/** Confirms the key under the lock. Activation changes what is allowed, so it requires an additional scope. */
async function confirmWriter(tx: LedgerTransaction, credential: Credential, activates: boolean): Promise<Credential> {
  const caller = await confirmCredential(tx, credential, "policies:write");
  if (activates) assertCanActivate(caller);
  return caller;
}

function assertCanActivate(caller: Credential): void {
  if (!caller.hasScope("policies:activate"))
    throw new Refusal(
      "INSUFFICIENT_SCOPE",
      `this changes the active set, which needs the scope policies:activate; the key "${caller.key.name}" lacks it`,
    );
}

/** Returns the errors with which features refuse to activate policies. */
export function activationErrors({ reactions }: CoreHost): readonly ErrorKind[] {
  return reactions.flatMap(({ activationErrors: errors = [] }) => errors);
}

/** Throws a refusal for policies that must not be activated. */
async function assertMayActivate(
  host: CoreHost,
  tx: LedgerTransaction,
  edits: ReadonlyMap<string, PolicyActivation>,
): Promise<void> {
  for (const reaction of host.reactions) reaction.activatingPolicies?.(tx, edits);
  await assertKeepsBaseline(host, tx, edits);
}

/** Throws POLICY_MANAGED for a suggested policy that would replace a rule of the baseline. */
async function assertKeepsBaseline(
  { policies }: CoreHost,
  tx: LedgerTransaction,
  edits: ReadonlyMap<string, PolicyActivation>,
): Promise<void> {
  for (const [name, { definition }] of edits) {
    const replaced = definition.suggested?.in_place_of.policy;
    const row = replaced === undefined ? null : await tx.policyByName(replaced);
    if (row !== null && isBaselinePolicy(row, policies.baselines))
      throw new Refusal(
        "POLICY_MANAGED",
        `the policy "${name}" would allow actions in place of a rule of "${row.name}", which is part of the baseline; change that rule in its source`,
      );
  }
}

interface Save {
  credential: Credential;
  activate: boolean;
}

export function createPolicy(
  host: CoreHost,
  read: ParsedPolicy,
  { credential, activate }: Save,
  call: IdempotentCall | null,
): Promise<{ row: PolicyRow; replayed: boolean }> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmWriter(tx, credential, activate);
    const earlier = await findCreatedResource(tx, caller, call);
    if (earlier !== null) {
      const row = await tx.policy(earlier);
      if (row === null || row.deleted_at !== null)
        throw new Refusal(
          "POLICY_NOT_FOUND",
          `the policy that the idempotency key "${call?.key ?? ""}" created was deleted; send a new key to create it again`,
        );
      return { row, replayed: true };
    }
    const plan = await planPolicySave(tx, read, host);
    if (plan.outcome !== "created")
      throw new Refusal(
        "POLICY_NAME_TAKEN",
        `the policy "${plan.name}" already exists; PUT /v1/policies/${plan.name} creates a new version of it`,
      );
    await saveAll(host, tx, [plan], caller, activate, { change: "create", policy: plan.name });
    await recordCreatedResource(tx, caller, call, plan.id);
    return { row: await readChanged(tx, plan), replayed: false };
  });
}

export function updatePolicy(
  host: CoreHost,
  idOrName: string,
  read: ParsedPolicy,
  headers: Headers,
  { credential, activate }: Save,
): Promise<PolicyRow> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmWriter(tx, credential, activate);
    const row = await findPolicy(tx, idOrName);
    assertIfMatch(headers, policyEtag(row));
    assertNotManaged(row, host.policies.sources);
    if (read.document.policy !== row.name) {
      throw new Refusal(
        "VALIDATION_FAILED",
        `the body contains the policy "${read.document.policy}", but the address belongs to "${row.name}"; a policy cannot be renamed`,
        { errors: [{ pointer: "/policy", detail: `"${row.name}"` }] },
      );
    }
    const plan = await planPolicySave(tx, read, host);
    await saveAll(host, tx, [plan], caller, activate, { change: "update", policy: row.name });
    return readChanged(tx, plan);
  });
}

/** Reads the policy in the batch that wrote it, because it could be deleted before the response is sent. */
async function readChanged(tx: LedgerTransaction, { id }: Pick<PolicyRow, "id">): Promise<PolicyRow> {
  const row = await tx.policy(id);
  if (row === null) throw new Error(`the policy ${id} is missing in the batch that wrote it`);
  return row;
}

/** Imports all of the policies, or none if one is rejected. */
export function importPolicies(
  host: CoreHost,
  read: readonly ParsedPolicy[],
  { credential, activate }: Save,
): Promise<{ plans: PlannedPolicySave[]; policySet: string | null }> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmWriter(tx, credential, activate);
    const plans: PlannedPolicySave[] = [];
    for (const policy of read) plans.push(await planPolicySave(tx, policy, host));
    const policySet = await saveAll(host, tx, plans, caller, activate, { change: "import" });
    return { plans, policySet };
  });
}

async function saveAll(
  host: CoreHost,
  tx: LedgerTransaction,
  plans: readonly PlannedPolicySave[],
  caller: Credential,
  activate: boolean,
  source: Record<string, string>,
): Promise<string | null> {
  const edits = new Map<string, PolicyActivation>(
    activate ? plans.map((plan) => [plan.name, { version: plan.version, definition: plan.read.document }]) : [],
  );
  await assertMayActivate(host, tx, edits);
  const set = await host.policies.plan(tx, edits);
  const changes = plans.flatMap((plan) => toPolicyUpdate(plan, activate) ?? []);
  await host.policies.commit(tx, set, { kind: "api", ...source }, caller, changes);
  return set.digest;
}

/** @param version null for the latest version */
export function activatePolicy(
  host: CoreHost,
  idOrName: string,
  version: number | null,
  headers: Headers,
  credential: Credential,
): Promise<PolicyRow> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "policies:activate");
    const row = await findPolicy(tx, idOrName);
    assertIfMatch(headers, policyEtag(row));
    assertNotManaged(row, host.policies.sources);
    const targetVersion = await findVersion(tx, row, version ?? row.latest_version);
    const edits = new Map([
      [row.name, { version: targetVersion.version, definition: parseStoredDocument(targetVersion) }],
    ]);
    const set = await host.policies.plan(tx, edits);
    if (row.active_version === targetVersion.version) return row;
    await assertMayActivate(host, tx, edits);
    const policy = { ...row, managed_by: null, active_version: targetVersion.version };
    const source = { kind: "api", change: "activate", policy: row.name };
    await host.policies.commit(tx, set, source, caller, [{ policy, text: null }]);
    return readChanged(tx, row);
  });
}

export function deactivatePolicy(
  host: CoreHost,
  idOrName: string,
  headers: Headers,
  credential: Credential,
): Promise<PolicyRow> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "policies:activate");
    const row = await findPolicy(tx, idOrName);
    assertIfMatch(headers, policyEtag(row));
    assertNotManaged(row, host.policies.sources);
    return row.active_version === null ? row : deactivate(host, tx, row, { deleted_at: row.deleted_at }, caller);
  });
}

export function deletePolicy(
  host: CoreHost,
  idOrName: string,
  headers: Headers,
  credential: Credential,
): Promise<PolicyRow> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "policies:write");
    const row = await findPolicy(tx, idOrName);
    assertIfMatch(headers, policyEtag(row));
    assertNotManaged(row, host.policies.sources);
    if (row.active_version !== null) assertCanActivate(caller);
    return deactivate(host, tx, row, { deleted_at: tx.now }, caller);
  });
}

async function deactivate(
  host: CoreHost,
  tx: LedgerTransaction,
  row: PolicyRow,
  { deleted_at }: Pick<PolicyRow, "deleted_at">,
  caller: Credential,
): Promise<PolicyRow> {
  const set = await host.policies.plan(tx, new Map(row.active_version === null ? [] : [[row.name, null]]));
  const policy = { ...row, active_version: null, deleted_at };
  const source = { kind: "api", change: deleted_at === null ? "deactivate" : "delete", policy: row.name };
  await host.policies.commit(tx, set, source, caller, [{ policy, text: null }]);
  return readChanged(tx, row);
}

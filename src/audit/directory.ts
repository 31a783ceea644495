/** Compares every API key and every registered agent with the entries that created and changed them. */
import type { StatesReader } from "../contract/states.ts";
import { userOfPrincipal } from "../domain/principals.ts";
import { type KeyColumns, keyState } from "../domain/recorded-keys.ts";
import { digestMetadata, registeredAgentState } from "../domain/registered-agents.ts";
import { hasScope, canCreateApprovers } from "../domain/scopes.ts";
import { userState } from "../domain/users.ts";
import { compareRows, type AuditedStore, type ReportFault } from "./report.ts";

const PAGE_SIZE = 200;

/** @param states the states after the newest entry */
export async function auditDirectory(
  store: AuditedStore,
  { state }: Pick<StatesReader, "state">,
  reportFault: ReportFault,
): Promise<void> {
  await compareRows("the API key", state(keyState), (id) => store.key(id), reportFault);
  const agents = new Map([...state(registeredAgentState).values()].map((agent) => [agent.id, agent]));
  const findAgent = async (id: string): Promise<object | null> => {
    const row = await store.agent(id);
    return row && digestMetadata(row);
  };
  await compareRows("the agent", agents, findAgent, reportFault);
  for (const { id } of await store.keys())
    if (!state(keyState).has(id)) reportFault(`the API key ${id} is in the store but not in the ledger`);
  for (let before: number | undefined; ;) {
    const rows = await store.agents({
      limit: PAGE_SIZE,
      ...(before === undefined ? {} : { before_seq: before }),
    });
    for (const { id } of rows)
      if (!agents.has(id)) reportFault(`the agent ${id} is in the store but not in the ledger`);
    before = rows.at(-1)?.registered_seq;
    if (before === undefined) return;
  }
}

/** Returns observations about active keys that are not faults, such as a key without an owner that may approve. */
export function listKeyWarnings({ state }: Pick<StatesReader, "state">): string[] {
  const [first] = state(keyState).keys();
  return (
    [...state(keyState).values()]
      .filter(({ revoked_at, expires_at }) => revoked_at === null && (expires_at ?? Infinity) > Date.now())
      // Only the first key of the store has no creator: the service created it, with all scopes.
      .filter(({ id, created_by }) => id !== first || created_by !== null)
      .flatMap((key) => warningsAbout(key, state))
  );
}

function warningsAbout({ id, name, scopes, owner }: KeyColumns, state: StatesReader["state"]): string[] {
  const warnings: string[] = [];
  if (canCreateApprovers(scopes)) warnings.push("may approve, and create keys that approve");
  if (hasScope(scopes, "approvals:decide") && owner === null) warnings.push("may approve, and has no owner");
  if (owner !== null && !state(userState).has(userOfPrincipal(owner) ?? ""))
    warnings.push(`has the owner ${JSON.stringify(owner)}, who is not a user`);
  return warnings.map((warning) => `the API key ${id} (${JSON.stringify(name)}) ${warning}`);
}

/**
 * Compares the past actions that decisions read with the actions themselves. A decision trusts the rows of past
 * actions. Without this check, someone could change a row, let a decision read it, and change it back.
 */
import type { ActionRow } from "../contract/storage.ts";
import { decodeSaltedFacts } from "../domain/salted-facts.ts";
import type { PastAction } from "../domain/policy/policy-types.ts";
import type { AuditedStore, ReportFault } from "./report.ts";

/**
 * Maximum number of cached actions. A small cache suffices, because actions of one history are close together in the
 * ledger.
 */
const MAX_REMEMBERED = 10_000;

type ActionNames = Pick<ActionRow, "agent_id" | "tool" | "operation">;

/** Reports past actions in a row whose agent, tool or operation differs from the stored action with the same id. */
export type CheckRecordedHistories = (row: Pick<ActionRow, "past">, reportFault: ReportFault) => Promise<void>;

/** Returns the check for one audit. `auditActions` compares each action's own row with its entries. */
export function createRecordedHistoriesCheck(store: Pick<AuditedStore, "action">): CheckRecordedHistories {
  const remembered = new Map<string, ActionNames>();

  async function findNames(id: string): Promise<ActionNames | null> {
    const cachedHistory = remembered.get(id);
    if (cachedHistory !== undefined) return cachedHistory;
    const row = await store.action(id);
    if (row === null) return null;
    const [oldest] = remembered.keys();
    if (oldest !== undefined && remembered.size >= MAX_REMEMBERED) remembered.delete(oldest);
    const { agent_id, tool, operation } = row;
    remembered.set(id, { agent_id, tool, operation });
    return { agent_id, tool, operation };
  }

  return async ({ past }, fault) => {
    for (const { id, agent, tool, operation } of listPastActions(past)) {
      const names = await findNames(id);
      if (names === null) fault(`its decision read the past action ${id}, which is not in the store`);
      else if (names.agent_id !== agent || names.tool !== tool || names.operation !== operation)
        fault(`its decision read the past action ${id} with another agent, tool or operation`);
    }
  };
}

/**
 * Returns the past actions without duplicates. An action that decisions read with different names appears once for each
 * combination of names.
 */
function listPastActions(past: string | null): PastAction[] {
  const actions = decodeSaltedFacts(past).flatMap(({ history = [] }) => history.flatMap((fact) => fact.actions));
  return [
    ...new Map(
      actions.map((action) => [JSON.stringify([action.id, action.agent, action.tool, action.operation]), action]),
    ).values(),
  ];
}

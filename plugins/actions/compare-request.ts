/**
 * Compares a pending action with earlier actions of its agent, for its approvers. Uses bounded, indexed reads outside
 * any transaction.
 */
import { canSee, type CompiledPolicySet, type CoreHost, effectiveRequest, redactRow } from "../../src/core.ts";
import { type Credential, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { contentByteLength } from "./visible-action.ts";
import type { ActionRecord } from "./schemas.ts";
import { compareWithEarlier, type ComparedRequest, MAX_COMPARED_ACTIONS } from "./unusual.ts";

/** Members of an action's record that compare it with earlier actions. */
export type ComparedMember = "compared_with" | "unusual" | "differs_from" | "earlier_votes";

/** Stops reading earlier requests once their total size reaches this limit. Bytes. */
const MAX_BYTES = 4 * 1024 * 1024;
const PAGE_SIZE = 50;
/** Maximum number of similar earlier actions whose votes are read. Also the maximum number of votes returned. */
const MAX_VOTED = 5;

/**
 * Compares a pending action with earlier actions: of the newest earlier actions of its agent, those that the credential
 * may see. Returns null if the request cannot be read, or if the credential sees only its own submissions.
 */
export async function compareRequest(
  host: CoreHost,
  row: ActionRow,
  visibility: Credential["visibility"],
): Promise<Pick<ActionRecord, ComparedMember> | null> {
  const { compiled } = await host.policies.current();
  const request = toCompared(compiled, row);
  // A key that sees only its own submissions cannot approve any action.
  if (request === null || "key_id" in visibility) return null;
  await host.waitForReadSlot();
  const rows = await readEarlier(host, row, visibility);
  const similar = rows.filter(({ tool, operation }) => tool === row.tool && operation === row.operation);
  return {
    ...compareWithEarlier(
      request,
      rows.flatMap((each) => toCompared(compiled, each) ?? []),
    ),
    earlier_votes: await readEarlierVotes(host, similar),
  };
}

/**
 * Reads by the index over agent and sequence number, newest first. Filters for visible actions afterwards, because a
 * query with that filter could scan an unlimited number of rows.
 */
async function readEarlier(
  { storage }: CoreHost,
  { agent_id, decision_seq }: ActionRow,
  visibility: Credential["visibility"],
): Promise<ActionRow[]> {
  const rows: ActionRow[] = [];
  let bytes = 0;
  let before_seq = decision_seq;
  while (rows.length < MAX_COMPARED_ACTIONS && bytes < MAX_BYTES) {
    const page = await storage.actions({ visibility: { all: true }, agent_id, before_seq, limit: PAGE_SIZE });
    rows.push(...page);
    bytes += page.reduce((sum, each) => sum + contentByteLength(each), 0);
    if (page.length < PAGE_SIZE) break;
    before_seq = page.at(-1)?.decision_seq ?? 0;
  }
  return rows.filter((each) => canSee(visibility, each));
}

/** Returns the votes on the newest similar actions that required approval. */
async function readEarlierVotes(
  { storage }: CoreHost,
  similar: readonly ActionRow[],
): Promise<NonNullable<ActionRecord["earlier_votes"]>> {
  const voted = similar.filter(({ quorum }) => quorum !== null).slice(0, MAX_VOTED);
  const votes = (await Promise.all(voted.map(({ id }) => storage.approvals(id)))).flat().slice(0, MAX_VOTED);
  return votes.map(({ action_id, principal, approve, reason, created_at }) => ({
    action_id,
    approver: principal,
    approve,
    reason,
    created_at: toRfc3339(created_at),
  }));
}

/** Returns null for a request that was erased or cannot be read. */
function toCompared(set: CompiledPolicySet, row: ActionRow): ComparedRequest | null {
  try {
    const request = effectiveRequest(redactRow(set, row));
    if (request === null) return null;
    const { params, context } = request;
    return { id: row.id, tool: row.tool, operation: row.operation, params, context };
  } catch {
    // Someone altered the store. The audit reports it.
    return null;
  }
}

/**
 * Keeps the pending actions in memory, without their content, because each list of the inbox filters and counts the
 * whole queue. Every change of a pending action has a ledger entry that names it. So a list reads only the actions that
 * entries named since the previous list, whichever process recorded them.
 */
import { findHeadline } from "../../src/browser.ts";
import {
  type ActionRequest,
  canSee,
  type CompiledPolicySet,
  type CoreHost,
  createSharedRead,
  type DecisionEntry,
  decodeEntry,
  effectiveRequest,
  findPresentation,
  type PreviewPart,
  redactRow,
  renderPreview,
  sha256Hex,
  type SubmittedAction,
  utf8,
  type Visibility,
} from "../../src/core.ts";
import type { Credential } from "../../src/plugin.ts";
import type { ActionRow, EntryRow, PendingCursor } from "../../src/storage/index.ts";
import { readVerifiedHistory, type VerifiedHistory } from "./verify-record.ts";

/** Maximum number of pending actions in memory, and of those that one request reads. */
const MAX_PENDING = 20_000;
/** Number of actions that are read in one slice. Decisions run between two slices. */
const SLICE = 50;
/** Number of characters of requests after which a slice ends. */
const MAX_SLICE_LENGTH = 1_000_000;
/** Number of entries that are read in one slice. */
const ENTRIES = 500;
/** Number of new entries above which reading all pending actions again is cheaper. */
const MAX_ENTRIES = 20_000;
/** Stand for a value that an action does not have, and for a request that cannot be read. */
export const NOT_GIVEN = "(not given)";
const UNREADABLE = "(cannot be read)";

/** A pending action without its content. */
export interface PendingAction extends Pick<
  ActionRow,
  | "id"
  | "agent_id"
  | "tool"
  | "operation"
  | "policy"
  | "rule"
  | "risk_level"
  | "decision_seq"
  | "expires_at"
  | "submitted_by"
  | "quorum"
> {
  /** Id of the group of actions that the same rule decided for the same tool and operation. */
  group: string;
  /** Whether the rule has a preview. */
  hasPreview: boolean;
  /** The parts of the rule's preview with the action's values, or the headline's value if there is no preview. */
  values: readonly string[];
  /** Whether the action has an approving vote. */
  hasApproval: boolean;
  /**
   * JSON of `VotingInputs`, so that actions for which the same people can vote have the same text. Null if no one can
   * approve the action alone, or if its entries were altered.
   */
  voting: string | null;
}

/** All that determines who can approve an action, besides the approver and the time. */
export interface VotingInputs extends Pick<VerifiedHistory, "requirement" | "approvals"> {
  action: SubmittedAction;
  edit: Pick<NonNullable<VerifiedHistory["edit"]>, "by"> | null;
}

/** Pending actions that a credential can see, as of the newest commit. */
interface VisiblePending {
  /** The earliest deadline first. */
  actions: readonly PendingAction[];
  /** False if there are more that the credential can see than one request reads. */
  isComplete: boolean;
  /** Whether all pending actions, visible or not, are at most as many as one request reads. */
  isBounded: boolean;
}

export type PendingIndex = (credential: Credential) => Promise<VisiblePending>;

type ReadAction = (row: ActionRow) => Promise<PendingAction>;

/**
 * Creates the function that returns the pending actions that a credential can see. If more than `max` are pending, no
 * action stays in memory, and each call reads the first `max` from the store.
 */
export function createPendingIndex(host: CoreHost, max = MAX_PENDING): PendingIndex {
  /** The actions by id, after `size` entries, with the previews of the policy set `digest`. Null if there are too many. */
  let actions: Map<string, PendingAction> | null = null;
  /** The same actions, the earliest deadline first. Null if they changed since the last list. */
  let sorted: readonly PendingAction[] | null = null;
  let digest: string | null = null;
  let size = 0;

  async function build(read: ReadAction): Promise<void> {
    actions = null;
    if ((await host.storage.pendingCount({ all: true }, host.clock())) > max) return;
    sorted = await readAll(host, { all: true }, max, read);
    actions = new Map(sorted.map((action) => [action.id, action]));
  }

  /** Reads the actions again that the entries up to `end` name. Returns false if the store lacks entries. */
  async function applyEntries(known: Map<string, PendingAction>, end: number, read: ReadAction): Promise<boolean> {
    while (size < end) {
      await host.waitForReadSlot();
      const to = Math.min(end, size + ENTRIES);
      const entries = await host.storage.entries(size, to);
      if (entries.length < to - size) return false;
      const ids = new Set(entries.filter(mayConcernPending).flatMap(({ action_id }) => action_id ?? []));
      const rows = ids.size === 0 ? [] : await host.storage.actionsById([...ids]);
      if (ids.size > 0) sorted = null;
      for (const id of ids) known.delete(id);
      for (const row of rows) if (row.status === "pending_approval") known.set(row.id, await read(row));
      size = to;
    }
    return true;
  }

  const refresh = createSharedRead(async () => {
    const { digest: latest, compiled } = await host.policies.current();
    // Read the head first. The next read applies entries that are recorded while this one reads the actions.
    const head = await host.ledger.head();
    const isCurrent =
      actions !== null &&
      head.size - size <= MAX_ENTRIES &&
      (await applyEntries(actions, head.size, createReader(host, compiled)));
    if (!isCurrent || digest !== latest) {
      // New policies can have other previews. They do not change who can approve.
      await build(createReader(host, compiled, { known: isCurrent ? actions : null }));
      [digest, size] = [latest, head.size];
    }
    if (actions !== null && actions.size > max) actions = null;
    if (actions === null) return null;
    return (sorted ??= [...actions.values()].sort(byDeadline));
  });

  return async ({ key, visibility }) => {
    const indexed = await refresh();
    if (indexed !== null) {
      const visible = indexed.filter((action) => canSee(visibility, action));
      return { actions: visible, isComplete: true, isBounded: true };
    }
    const { compiled } = await host.policies.current();
    const read = createReader(host, compiled, { keyId: key.id });
    const first = await readAll(host, visibility, max, read, key.id);
    return { actions: first, isComplete: first.length < max, isBounded: false };
  };
}

const byDeadline = (a: PendingAction, b: PendingAction): number =>
  (a.expires_at ?? 0) - (b.expires_at ?? 0) || a.decision_seq - b.decision_seq;

/** Whether the entry may have changed a pending action. */
function mayConcernPending({ type, bytes }: EntryRow): boolean {
  if (type !== "decision") return true;
  try {
    return decodeEntry<DecisionEntry>(bytes).status === "pending_approval";
  } catch {
    // Someone altered the entry.
    return true;
  }
}

async function readAll(
  host: CoreHost,
  visibility: Visibility,
  max: number,
  read: ReadAction,
  keyId?: string,
): Promise<readonly PendingAction[]> {
  const actions: PendingAction[] = [];
  let after: PendingCursor = { expires_at: host.clock(), decision_seq: Number.MAX_SAFE_INTEGER };
  while (actions.length < max) {
    await host.waitForReadSlot(keyId);
    const rows = await host.storage.pendingActions(visibility, after, Math.min(SLICE, max - actions.length));
    for (const row of rows) actions.push(await read(row));
    const last = rows.at(-1);
    if (last === undefined || rows.length < SLICE) break;
    after = { expires_at: last.expires_at ?? 0, decision_seq: last.decision_seq };
  }
  return actions;
}

/**
 * Returns a function that reads what lists need of an action. Reads what actions of one group share once.
 * @param known actions whose entries have not changed since they were read
 */
function createReader(
  host: CoreHost,
  set: CompiledPolicySet,
  { keyId, known = null }: { keyId?: string; known?: ReadonlyMap<string, PendingAction> | null } = {},
): ReadAction {
  const groups = new Map<string, ReturnType<typeof readGroup>>();
  /** Equal texts are stored once. */
  const texts = new Map<string, string>();
  let length = 0;
  return async (row) => {
    length += row.request.length + (row.effective?.length ?? 0);
    if (length > MAX_SLICE_LENGTH) {
      length = 0;
      await host.waitForReadSlot(keyId);
    }
    const key = JSON.stringify([row.tool, row.operation, row.policy, row.rule]);
    const group = groups.get(key) ?? readGroup(set, row, key);
    groups.set(key, group);
    const { voting, hasApproval } = known?.get(row.id) ?? (await readVoting(host, row));
    if (voting !== null && !texts.has(voting)) texts.set(voting, voting);
    const { parts, shownFirst } = group;
    const { id, agent_id, tool, operation, policy, rule, risk_level } = row;
    const { decision_seq, expires_at, submitted_by, quorum } = row;
    // Without a spread, all these objects have one hidden class, so that V8 reads them several times as fast.
    return {
      id,
      group: group.id,
      agent_id,
      tool,
      operation,
      policy,
      rule,
      risk_level,
      decision_seq,
      expires_at,
      submitted_by,
      quorum,
      hasApproval,
      hasPreview: parts !== null,
      values: readValues(set, row, parts, shownFirst),
      voting: voting === null ? null : (texts.get(voting) ?? voting),
    };
  };
}

function readGroup(set: CompiledPolicySet, row: ActionRow, key: string) {
  const { preview: parts, shown_first: shownFirst } = findPresentation(set, row);
  // An agent may choose the operation, so the id is long enough that no two names with the same id can be found.
  return { id: sha256Hex(utf8(key)).slice(0, 32), parts, shownFirst };
}

function readValues(
  set: CompiledPolicySet,
  row: ActionRow,
  parts: readonly PreviewPart[] | null,
  shownFirst: readonly string[],
): string[] {
  const request = readRequest(set, row);
  if (parts !== null)
    return parts.map((part) =>
      "text" in part ? part.text : request === null ? UNREADABLE : renderPreview([part], { ...row, ...request }),
    );
  const headline = request === null ? null : findHeadline({ ...request, shown_first: shownFirst });
  return [request === null ? UNREADABLE : (headline?.value ?? NOT_GIVEN)];
}

/** Returns the redacted request; null if someone altered the store. Opening the request reports that. */
function readRequest(set: CompiledPolicySet, row: ActionRow): ActionRequest | null {
  try {
    return effectiveRequest(redactRow(set, row));
  } catch {
    return null;
  }
}

/** Reads from the ledger who can approve an action. A vote verifies the action itself. */
async function readVoting(host: CoreHost, row: ActionRow): Promise<Pick<PendingAction, "voting" | "hasApproval">> {
  const history = await readVerifiedHistory(host.storage, row);
  if (history === null) return { voting: null, hasApproval: false };
  const { requirement, approvals, edit } = history;
  const hasApproval = approvals.length > 0;
  if (host.guard.findApprovalBlock(row) !== null) return { voting: null, hasApproval };
  const { agent_id, tool, operation, submitted_by, submitted_agent, submitted_owner, authority } = row;
  const isTimed = requirement?.approvers.some(({ stages }) => stages.some(({ after_ms }) => after_ms !== null));
  const inputs: VotingInputs = {
    action: { agent_id, tool, operation, submitted_by, submitted_agent, submitted_owner, authority },
    // The time matters only for stages that open later.
    requirement: requirement === null || isTimed ? requirement : { ...requirement, since: 0 },
    approvals,
    edit: edit === null ? null : { by: edit.by },
  };
  return { voting: JSON.stringify(inputs), hasApproval };
}

/**
 * Checks plans. The decisions must follow the plan's entry in order, each vote must contain the digest of the remaining
 * actions, and no action may start before its plan permits it. Uses about 300 bytes of memory for each action of a
 * plan.
 */
import {
  type ApprovalEntry,
  type DecisionEntry,
  type ExecutionEntry,
  isCoreEntry,
  parseEntryTime,
  type RedecisionEntry,
  type ReviewEntry,
} from "../../src/core.ts";
import type { EntryBody, FeatureAuditor } from "../../src/plugin.ts";
import {
  actionListDigest,
  findPlanObstacle,
  type PlanMember,
  type PlanMemberHistory,
  type PlanTerms,
  toPlanMember,
} from "./action-list.ts";
import type { PlanEntry } from "./entry.ts";

type Member = PlanMemberHistory & { action: { id: string } };

interface Plan {
  terms: PlanTerms;
  key_id: string;
  created_at: number;
  /** The plan's actions, in order. */
  members: Member[];
  /**
   * The list of remaining actions that the newest rejecting votes contain, and the time of the last such vote. The next
   * entry that is not a rejection with the same list triggers the check. Null if no check is due.
   */
  struck: { list: string; at: number } | null;
}

type ChangingEntry = ApprovalEntry | RedecisionEntry | ReviewEntry | ExecutionEntry;
const CHANGING_TYPES: readonly string[] = [
  "approval",
  "redecision",
  "review",
  "execution",
] satisfies ChangingEntry["type"][];
const isChanging = (entry: EntryBody): entry is ChangingEntry => CHANGING_TYPES.includes(entry.type);

/**
 * Returns true if a step of the plan's newest decision can have recorded the entry: its type belongs to a feature, and
 * it refers to the action of that decision.
 */
function isOfStep(entry: EntryBody, { members }: Plan): boolean {
  const { related_action } = entry as { related_action?: unknown };
  return !isCoreEntry(entry) && members.length > 0 && related_action === members.at(-1)?.action.id;
}

export function createPlanAuditor(): FeatureAuditor {
  const plans = new Map<string, Plan>();
  const planOf = new Map<string, Plan>();
  /** The plan whose decisions must be the next entries; null if there is none. */
  let open: { entry: PlanEntry; plan: Plan } | null = null;

  function foldPlan(entry: PlanEntry): void {
    const { id, ordered, stop_on_failure, actions } = entry.plan;
    if (plans.has(id)) throw new RangeError(`the plan ${id} was submitted twice`);
    if (actions.length === 0) throw new RangeError(`the plan ${id} has no actions`);
    const terms = { id, ordered, stop_on_failure };
    const plan = { terms, key_id: entry.by.key_id, created_at: parseEntryTime(entry.at), members: [], struck: null };
    plans.set(id, plan);
    open = { entry, plan };
  }

  function foldDecision(decision: DecisionEntry): void {
    if (open === null) {
      if (decision.plan !== null)
        throw new RangeError(`its action names the plan ${decision.plan.id}, which has no such action`);
      return;
    }
    const { entry, plan } = open;
    const listed = entry.plan.actions[plan.members.length];
    const position = plan.members.length + 1;
    const isListed =
      decision.plan?.id === entry.plan.id &&
      decision.plan.position === position &&
      decision.action_id === listed?.action_id &&
      decision.commitment === listed.commitment &&
      decision.agent_id === entry.agent_id &&
      decision.submitted_by.key_id === entry.by.key_id &&
      decision.at === entry.at;
    if (position === entry.plan.actions.length) open = null;
    const { action_id: id, status, commitment, effective } = decision;
    const [expires_at, approved_until] = [timeOrNull(decision.expires_at), timeOrNull(decision.approved_until)];
    plan.members.push({
      action: { id, plan_position: position, status, expires_at, approved_until },
      approvals: [],
      commitment: effective ?? commitment,
    });
    planOf.set(id, plan);
    if (!isListed) throw new RangeError(`it is not the decision on action ${position} of the plan ${entry.plan.id}`);
  }

  function foldChange(entry: ChangingEntry): void {
    const plan = planOf.get(entry.action_id);
    const i = plan?.members.findIndex(({ action }) => action.id === entry.action_id) ?? -1;
    const member = plan?.members[i];
    if (plan === undefined || member === undefined) return;
    const at = parseEntryTime(entry.at);
    const fault = findFault(plan, member, entry, at);
    plan.members[i] = applyEntry(member, entry);
    if (fault !== null) throw new RangeError(fault);
  }

  return {
    submitterOf: (entry) => (entry.type === "plan" ? entry.by.key_id : null),
    created: {
      // The row has no hash of the request, because the plan's actions contain the requests.
      "POST /v1/plans"(_states, id) {
        const plan = plans.get(id);
        return plan === undefined ? null : { key_id: plan.key_id, created_at: plan.created_at, body_hash: "" };
      },
    },
    check(entry) {
      if (open !== null && entry.type !== "decision" && !isOfStep(entry, open.plan)) {
        const { id } = open.plan.terms;
        open = null;
        throw new RangeError(`it is between the plan ${id} and the decisions on its actions`);
      }
      if (entry.type === "plan") foldPlan(entry);
      else if (entry.type === "decision") foldDecision(entry);
      else if (isChanging(entry)) foldChange(entry);
    },
  };
}

function membersAt({ members }: Plan, at: number): PlanMember[] {
  return members.map((member) => toPlanMember(member, at));
}

/** Returns the fault of an entry about an action of the plan; null if the entry is valid. */
function findFault(plan: Plan, { action }: Member, entry: ChangingEntry, at: number): string | null {
  const { terms, struck } = plan;
  const isStrike = entry.type === "approval" && entry.verdict === "deny" && entry.plan !== null;
  if (struck !== null && !(isStrike && struck.list === entry.plan)) {
    plan.struck = null;
    if (actionListDigest(terms, membersAt(plan, struck.at)) !== struck.list)
      return `the earlier votes rejected actions of the plan ${terms.id} with a list that differs from the remaining actions`;
  }
  if (isStrike) plan.struck = { list: entry.plan ?? "", at };
  const isApproval = entry.type === "approval" && entry.verdict === "approve";
  if (isApproval && entry.plan !== actionListDigest(terms, membersAt(plan, at)))
    return `its vote approves a list that differs from the remaining actions of the plan ${terms.id}`;
  const isStart =
    (entry.type === "execution" && entry.phase === "start") ||
    (entry.type === "redecision" && entry.occasion === "permit" && entry.status !== "denied");
  if (!isStart || entry.status === "pending_approval") return null;
  const obstacle = findPlanObstacle(terms, membersAt(plan, at), action.plan_position ?? 0);
  return obstacle === null
    ? null
    : `its action may start although action ${obstacle.by.position} of the plan ${terms.id} was ${obstacle.by.status}`;
}

/** Returns the state of the plan's action after the entry. */
function applyEntry(member: Member, entry: ChangingEntry): Member {
  const { status } = entry;
  const action = { ...member.action, status };
  if (entry.type === "redecision") {
    if (status === "pending_approval")
      Object.assign(action, { expires_at: timeOrNull(entry.expires_at), approved_until: null });
    const isEdit = entry.edit !== null;
    return { action, approvals: isEdit ? [] : member.approvals, commitment: entry.commitment };
  }
  if (entry.type !== "execution" && status === "approved") action.approved_until = timeOrNull(entry.approved_until);
  const isApproval = entry.type === "approval" && entry.verdict === "approve";
  return { ...member, action, approvals: isApproval ? [{ plan: entry.plan }] : member.approvals };
}

function timeOrNull(text: string | null): number | null {
  return text === null ? null : parseEntryTime(text);
}

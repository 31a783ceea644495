/**
 * Checks the grants in the ledger, and each decision that a grant allowed: the grant must be open, its grantor must
 * still be permitted to grant, and its caps must not be exceeded. Uses about 200 bytes of memory for each use.
 */
import {
  type Actor,
  type ApprovalEntry,
  canonicalText,
  computeGrantUse,
  decideForEntry,
  type DecisionEntry,
  Evaluation,
  type ExecutionEntry,
  findGrantUsage,
  findSelfRelation,
  type GrantFact,
  hasScope,
  type JsonValue,
  keyState,
  parseEntryTime,
  readUsageName,
  type RedecisionEntry,
  scopesOfRoles,
  userState,
} from "../../src/core.ts";
import type {
  AuditedDecision,
  AuditStates,
  Creation,
  EntryBody,
  FeatureAuditor,
  ReportFault,
  StatesReader,
} from "../../src/plugin.ts";
import type { GrantEntry } from "./entry.ts";
import {
  applyGrantEntry,
  type FindPlacedBar,
  findGrantEnd,
  isGrantFor,
  NO_GRANTS,
  type Grant,
  grantState,
} from "./state.ts";

/** A use of a grant, in the order of the ledger. */
interface Use {
  grant: string;
  seq: number;
  status: string;
  /** Number of earlier uses that counted against the grant. */
  count: number;
  /** Sequence number of the entry that gave the use back to the grant; null while the use counts. */
  released: number | null;
  /**
   * Amount of this use, and the sum that its decision read, in millionths. Null until the audit has reached the action.
   */
  sum: { amount: number; used: number } | null;
}

/** Throws RangeError unless the credential can vote and create grants at this time. */
function assertMayGrant(state: AuditStates["state"], { key_id, principal }: Actor, at: number): void {
  const scopes = scopesOfGrantor(state, key_id, at);
  if (scopes === null) throw new RangeError(`${principal} was not allowed to create grants at that time`);
  for (const scope of ["approvals:decide", "grants:write"] as const)
    if (!hasScope(scopes, scope)) throw new RangeError(`${principal} lacked the scope ${scope}`);
}

/** Returns null if the key is bound to an agent, or if the key or user does not exist or has ended. */
function scopesOfGrantor(state: AuditStates["state"], id: string, at: number): readonly string[] | null {
  const user = state(userState).get(id);
  if (user !== undefined) return user.ended_at === null ? scopesOfRoles(user.roles) : null;
  const key = state(keyState).get(id);
  if (key === undefined || key.agent_id !== null || key.revoked_at !== null) return null;
  return (key.expires_at ?? Infinity) > at ? key.scopes : null;
}

/** Throws RangeError unless the terms in a decision equal those of the grant's entry. */
function assertTerms(grant: Grant, fact: GrantFact): void {
  const recorded = {
    by: grant.by.principal,
    count: grant.count,
    granted_at: grant.granted_at,
    scope: grant.scope,
    sum: grant.sum,
    until: grant.until,
  };
  const { by, count, scope, sum } = fact;
  const [granted_at, until] = [parseEntryTime(fact.granted_at), parseEntryTime(fact.until)];
  const named = { by, count, granted_at, scope, sum, until };
  if (canonicalText(named as unknown as JsonValue) !== canonicalText(recorded as unknown as JsonValue))
    throw new RangeError(`the terms of the grant ${fact.id} differ from those that were granted`);
}

export const grantAuditor = (): FeatureAuditor => new GrantAuditor();

class GrantAuditor implements FeatureAuditor {
  /** The grants before the entry that is being checked. Once a grant's entry has been checked, includes that grant. */
  private grants = NO_GRANTS;
  /** All grants with their original terms, keyed by id. Includes those that the service has evicted. */
  private readonly everyGrant = new Map<string, Grant>();
  /** Returns states before the entry that is being checked. */
  private state: AuditStates["state"] = (fold) => fold.initial;
  /** Grants that were created with a vote whose entry has not been applied yet, keyed by action id. */
  private readonly awaited = new Map<string, Grant>();
  private readonly uses = new Map<string, Use>();
  private readonly counts = new Map<string, number>();
  readonly created = {
    "POST /v1/grants": (_: StatesReader, id: string): Creation | null => {
      const { by, granted_at } = this.everyGrant.get(id) ?? {};
      return by === undefined || granted_at === undefined ? null : { key_id: by.key_id, created_at: granted_at };
    },
  };

  check(entry: EntryBody & { seq: number }, { state, placedBar }: AuditStates): void {
    this.state = state;
    this.grants = state(grantState);
    if (entry.type === "grant") this.foldGrant(entry);
    if (entry.type === "approval") this.foldVote(entry);
    if (entry.type === "decision" || entry.type === "redecision") this.foldDecision(entry, placedBar);
    if (entry.type === "redecision" || entry.type === "approval" || entry.type === "execution") this.foldStatus(entry);
  }

  /** Checks that a grant that was created with a vote is for the agent, tool and operation of the approved action. */
  checkVotes(
    action: Pick<DecisionEntry, "agent_id" | "tool" | "operation">,
    entries: readonly EntryBody[],
    reportFault: ReportFault,
  ): void {
    for (const entry of entries) {
      const voted = entry.type === "approval" ? entry.grant : null;
      const grant = voted === null ? undefined : this.everyGrant.get(voted.id);
      if (grant !== undefined && !isGrantFor(grant, action))
        reportFault(
          `the vote of entry ${(entry as { seq?: number }).seq} gives the grant ${grant.id} for another agent, tool or operation`,
        );
    }
  }

  /** Evaluates again an action that a grant allowed. Compares the decision, and the usage that the decision read. */
  async checkDecision({ entry, request, facts, policies }: AuditedDecision, reportFault: ReportFault): Promise<void> {
    const { grant } = facts;
    const use = this.uses.get(entry.action_id);
    if (grant === undefined || use === undefined) return;
    const set = await policies();
    if (set === null) return;
    const evaluation = new Evaluation(set, request, facts, parseEntryTime(entry.at));
    const { decision } = decideForEntry(evaluation, facts);
    if (canonicalText(decision as unknown as JsonValue) !== canonicalText(entry.decision as unknown as JsonValue))
      reportFault(`the grant ${use.grant} did not cover it: evaluating it again gives a different decision`);
    const usage = findGrantUsage(facts);
    const amount = computeGrantUse(grant, evaluation)?.amount;
    if (usage?.count !== use.count) reportFault(`its number of uses of the grant ${use.grant} differs from the ledger`);
    if (usage !== null && amount !== undefined) use.sum = { amount, used: usage.sum };
  }

  /**
   * Checks that the sum that each decision read equals the amounts of its grant's earlier uses. Also reports each grant
   * that was created with a vote, if the ledger lacks the vote.
   */
  finish(reportFault: ReportFault): void {
    for (const { id } of this.awaited.values()) reportFault(`the ledger lacks the vote that created the grant ${id}`);
    for (const [id, list] of groupByGrant(this.uses))
      if (hasComputedSum(this.everyGrant.get(id))) checkSumsOf(id, list, reportFault);
  }

  private foldGrant(entry: GrantEntry & { seq: number }): void {
    this.grants = applyGrantEntry(this.grants, entry);
    if (entry.change !== "granted") return;
    assertMayGrant(this.state, entry.by, parseEntryTime(entry.at));
    const grant = this.grants.all.get(entry.grant.id) as Grant;
    this.everyGrant.set(grant.id, grant);
    if (entry.related_action !== null) {
      if (this.awaited.has(entry.related_action))
        throw new RangeError(
          `the ledger lacks the vote that created the earlier grant ${this.awaited.get(entry.related_action)?.id} of the same action`,
        );
      this.awaited.set(entry.related_action, grant);
    } else if (grant.passkey !== null)
      throw new RangeError(`the grant ${grant.id} is signed, but was not created with a vote`);
  }

  /**
   * Applies a vote. Throws RangeError unless the grant that was created with the vote has the terms that the vote
   * contains.
   */
  private foldVote(vote: ApprovalEntry): void {
    const grant = this.awaited.get(vote.action_id);
    this.awaited.delete(vote.action_id);
    if (grant === undefined) {
      if (vote.grant != null)
        throw new RangeError(
          `the vote creates the grant ${vote.grant.id}, but the ledger lacks the entry of this grant`,
        );
      return;
    }
    const { id, count, ends_on_failure, granted_at, until, scope, sum, passkey, by } = grant;
    const task = vote.grant?.task;
    const named = task === undefined ? {} : { task };
    // The title is checked by the feature that has tasks.
    const recorded = { id, count, ends_on_failure, for_ms: until - granted_at, scope, sum, ...named };
    const isSame =
      vote.verdict === "approve" &&
      canonicalText(recorded as unknown as JsonValue) === canonicalText((vote.grant ?? null) as unknown as JsonValue) &&
      passkey === (vote.gesture?.credential_id ?? null) &&
      by.principal === vote.by?.principal &&
      parseEntryTime(vote.at) === granted_at;
    if (!isSame) throw new RangeError(`the grant ${id} differs from the grant that the vote contains`);
  }

  /**
   * Returns the grant to which a decision refers. Throws RangeError unless the grant was open, and has the recorded
   * terms.
   */
  private findNamedGrant(fact: GrantFact, at: number, findBar: FindPlacedBar): Grant {
    const grant = this.grants.all.get(fact.id);
    if (grant === undefined) throw new RangeError(`the grant ${fact.id} was never created`);
    const end = findGrantEnd(grant, findBar, at);
    if (end !== null) throw new RangeError(`the grant ${fact.id} had ended (${end.cause})`);
    assertTerms(grant, fact);
    assertMayGrant(this.state, grant.by, at);
    const passkeys = this.state(userState).get(grant.by.key_id)?.passkeys ?? [];
    if (fact.self && !passkeys.some((passkey) => passkey.id === grant.passkey))
      throw new RangeError(
        `the grant ${fact.id} covers the grantor's own agent, and no passkey that the grantor has signed it`,
      );
    return grant;
  }

  private foldDecision(entry: (DecisionEntry | RedecisionEntry) & { seq: number }, findBar: FindPlacedBar): void {
    const { grant: fact } = entry.facts;
    const isGranted = entry.decision.reason_code === "GRANTED";
    if (fact === undefined) {
      if (isGranted) throw new RangeError("it was allowed by a grant, but it does not name the grant");
      return;
    }
    if (!isGranted) throw new RangeError(`it names the grant ${fact.id}, but its reason is not GRANTED`);
    const grant = this.findNamedGrant(fact, parseEntryTime(entry.at), findBar);
    if (entry.type === "redecision") {
      if (this.uses.get(entry.action_id)?.grant !== grant.id)
        throw new RangeError(`the grant ${grant.id} did not cover the action when it was decided`);
      return;
    }
    if (!isGrantFor(grant, entry))
      throw new RangeError(`the grant ${grant.id} is for another agent, tool or operation`);
    if (!fact.self && findSelfRelation(entry.submitted_by, entry.agent_id, grant.by) !== null)
      throw new RangeError(`the grant ${grant.id} covers the grantor's own agent, and its decision denies that`);
    const count = this.counts.get(grant.id) ?? 0;
    if (count >= grant.count) throw new RangeError(`the grant ${grant.id} was used ${count} times, which is its cap`);
    const { action_id, seq, status } = entry;
    this.uses.set(action_id, { grant: grant.id, seq, status, count, released: null, sum: null });
    this.counts.set(grant.id, count + 1);
  }

  /**
   * Applies the new status of an action that uses a grant. If an operator cancels an action that could start, the use
   * no longer counts: the cancellation states that the action has not run.
   */
  private foldStatus(entry: (RedecisionEntry | ApprovalEntry | ExecutionEntry) & { seq: number }): void {
    const use = this.uses.get(entry.action_id);
    if (use === undefined) return;
    const couldStart = use.status === "allowed" || use.status === "approved";
    if (entry.status === "cancelled" && couldStart) {
      use.released = entry.seq;
      this.counts.set(use.grant, (this.counts.get(use.grant) ?? 1) - 1);
    }
    use.status = entry.status;
  }
}

/**
 * Returns true if the amount of each use can be computed from its request. Amounts of usage come from results instead.
 */
const hasComputedSum = (grant: Grant | undefined): boolean =>
  grant !== undefined && grant.sum !== null && readUsageName(grant.sum.of) === null;

function groupByGrant(uses: ReadonlyMap<string, Use>): Map<string, Use[]> {
  const groups = new Map<string, Use[]>();
  for (const use of uses.values()) {
    const group = groups.get(use.grant);
    if (group === undefined) groups.set(use.grant, [use]);
    else group.push(use);
  }
  return groups;
}

function checkSumsOf(id: string, uses: readonly Use[], reportFault: ReportFault): void {
  const changes = uses
    .flatMap((use) => [
      { seq: use.seq, use, amount: use.sum?.amount ?? null },
      ...(use.released === null ? [] : [{ seq: use.released, use: null, amount: -(use.sum?.amount ?? 0) }]),
    ])
    .sort((a, b) => a.seq - b.seq);
  let total = 0;
  for (const { seq, use, amount } of changes) {
    // The amount of an erased use is unknown, so the sums after it cannot be compared.
    if (amount === null) return;
    if (use !== null && use.sum?.used !== total)
      reportFault(`entry ${seq} has a sum for the grant ${id} that differs from the total of its uses`);
    total += amount;
  }
}

/**
 * Checks the grants in the ledger, and each decision that a grant allowed: the grant must be open, its grantor must
 * still be permitted to grant, and its caps must not be exceeded. Uses about 200 bytes of memory for each use.
 */
import { parseEntryTime } from "../domain/time.ts";
import type { ActionRequest } from "../domain/actions.ts";
import { findSelfRelation } from "../domain/approval.ts";
import { canonicalText } from "../domain/canonical.ts";
import type {
  Actor,
  ApprovalEntry,
  DecisionEntry,
  GrantEntry,
  ApiKeyEntry,
  RedecisionEntry,
  UserEntry,
} from "../domain/entries.ts";
import {
  applyGrantEntry,
  type FindPlacedBar,
  findGrantEnd,
  isGrantFor,
  NO_GRANTS,
  type Grant,
} from "../domain/grants.ts";
import type { JsonValue } from "../domain/json.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import { decideEvaluation } from "../domain/policy/decide/decide.ts";
import { Evaluation } from "../domain/policy/decide/evaluation.ts";
import { findGrantUsage, computeGrantUse } from "../domain/policy/decide/grant.ts";
import type { Facts, GrantFact } from "../domain/policy/policy-types.ts";
import { scopesOfRoles } from "../domain/roles.ts";
import { hasScope } from "../domain/scopes.ts";
import type { EntryBody, ReportFault } from "./report.ts";

export interface GrantsAuditor {
  /** Applies the next entry; call it in order. Throws for an entry that contradicts earlier entries. */
  fold(body: EntryBody): void;
  grant(id: string): Grant | undefined;
  /** Evaluates again an action that a grant allowed. Compares the decision, and the usage that the decision read. */
  checkUse(use: AuditedUse, fault: ReportFault): void;
  /**
   * Checks that the sum each decision read equals the amounts of the earlier uses of its grant. Also reports each grant
   * that was created with a vote, if the ledger lacks the vote. Call this after the audit has processed all actions.
   */
  checkAll(fault: ReportFault): void;
}

/** A decision with its restored inputs. */
interface AuditedUse {
  entry: DecisionEntry & { seq: number };
  request: ActionRequest;
  facts: Facts;
  set: CompiledPolicySet;
}

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

interface Grantor {
  scopes: readonly string[];
  isBound: boolean;
  expires_at: number;
  hasEnded: boolean;
  /** Credential ids of the passkeys. */
  passkeys: readonly string[];
}

/** The credentials that could create grants, as of the entry that was applied last. */
interface Grantors {
  fold(body: EntryBody): void;
  /** Throws RangeError unless the credential could vote and create grants at this time. */
  assertMayGrant(actor: Actor, at: number): void;
  /** Returns true if the credential's user has the passkey. */
  hasPasskey(actor: Actor, passkey: string): boolean;
}

function createGrantors(): Grantors {
  const grantors = new Map<string, Grantor>();
  return {
    fold(body) {
      if (body["type"] === "api_key") {
        const { change, key } = body as unknown as ApiKeyEntry;
        const { scopes, agent_id } = key;
        const expires_at = key.expires_at === null ? Infinity : parseEntryTime(key.expires_at);
        grantors.set(key.id, {
          scopes,
          isBound: agent_id !== null,
          expires_at,
          hasEnded: change === "revoked",
          passkeys: [],
        });
      } else if (body["type"] === "user") {
        const { id, roles, ended_at, passkeys } = (body as unknown as UserEntry).user;
        const user = {
          scopes: scopesOfRoles(roles),
          isBound: false,
          expires_at: Infinity,
          hasEnded: ended_at !== null,
        };
        grantors.set(id, { ...user, passkeys: passkeys.map((passkey) => passkey.id) });
      }
    },
    assertMayGrant({ key_id, principal }, at) {
      const grantor = grantors.get(key_id);
      if (grantor === undefined || grantor.hasEnded || grantor.isBound || grantor.expires_at <= at)
        throw new RangeError(`${principal} was not allowed to create grants at that time`);
      for (const scope of ["approvals:decide", "grants:write"] as const)
        if (!hasScope(grantor.scopes, scope)) throw new RangeError(`${principal} lacked the scope ${scope}`);
    },
    hasPasskey: ({ key_id }, passkey) => grantors.get(key_id)?.passkeys.includes(passkey) === true,
  };
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

/** @param findBar finds the first bar that was placed after an entry, as of the entry that is being applied */
export const createGrantsAuditor = (findBar: FindPlacedBar): GrantsAuditor => new FoldedGrants(findBar);

class FoldedGrants implements GrantsAuditor {
  private readonly findBar: FindPlacedBar;
  private grants = NO_GRANTS;
  private readonly grantors = createGrantors();
  /** Grants that were created with a vote whose entry has not been applied yet, keyed by action id. */
  private readonly awaited = new Map<string, Grant>();
  private readonly uses = new Map<string, Use>();
  private readonly counts = new Map<string, number>();

  constructor(findBar: FindPlacedBar) {
    this.findBar = findBar;
  }

  fold(body: EntryBody): void {
    const type = body["type"];
    if (type === "grant") this.foldGrant(body as unknown as GrantEntry & { seq: number });
    if (type === "approval") this.foldVote(body as unknown as ApprovalEntry);
    if (type === "decision" || type === "redecision")
      this.foldDecision(body as unknown as (DecisionEntry | RedecisionEntry) & { seq: number });
    if (type === "redecision" || type === "approval" || type === "execution") this.foldStatus(body);
    this.grantors.fold(body);
  }

  grant(id: string): Grant | undefined {
    return this.grants.all.get(id);
  }

  checkUse({ entry, request, facts, set }: AuditedUse, fault: ReportFault): void {
    const use = this.uses.get(entry.action_id);
    if (facts.grant === undefined || use === undefined) return;
    const evaluation = new Evaluation(set, request, facts, parseEntryTime(entry.at));
    const redecided = canonicalText(decideEvaluation(evaluation, facts) as unknown as JsonValue);
    if (redecided !== canonicalText(entry.decision as unknown as JsonValue))
      fault(`the grant ${use.grant} did not cover it: evaluating it again gives a different decision`);
    const usage = findGrantUsage(facts);
    const amount = computeGrantUse(facts.grant, evaluation)?.amount;
    if (usage?.count !== use.count) fault(`its number of uses of the grant ${use.grant} differs from the ledger`);
    if (usage !== null && amount !== undefined) use.sum = { amount, used: usage.sum };
  }

  checkAll(fault: ReportFault): void {
    for (const { id } of this.awaited.values()) fault(`the ledger lacks the vote that created the grant ${id}`);
    for (const [id, list] of groupByGrant(this.uses))
      if (this.grants.all.get(id)?.sum != null) checkSumsOf(id, list, fault);
  }

  private foldGrant(entry: GrantEntry & { seq: number }): void {
    this.grants = applyGrantEntry(this.grants, entry);
    if (entry.change !== "granted") return;
    this.grantors.assertMayGrant(entry.by, parseEntryTime(entry.at));
    const grant = this.grants.all.get(entry.grant.id) as Grant;
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
    const recorded = { id, count, ends_on_failure, for_ms: until - granted_at, scope, sum };
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
  private findNamedGrant(fact: GrantFact, at: number): Grant {
    const grant = this.grants.all.get(fact.id);
    if (grant === undefined) throw new RangeError(`the grant ${fact.id} was never created`);
    const end = findGrantEnd(grant, this.findBar, at);
    if (end !== null) throw new RangeError(`the grant ${fact.id} had ended (${end.cause})`);
    assertTerms(grant, fact);
    this.grantors.assertMayGrant(grant.by, at);
    if (fact.self && (grant.passkey === null || !this.grantors.hasPasskey(grant.by, grant.passkey)))
      throw new RangeError(
        `the grant ${fact.id} covers the grantor's own agent, and no passkey that the grantor has signed it`,
      );
    return grant;
  }

  private foldDecision(entry: (DecisionEntry | RedecisionEntry) & { seq: number }): void {
    const { grant: fact } = entry.facts;
    const isGranted = entry.decision.reason_code === "GRANTED";
    if (fact === undefined) {
      if (isGranted) throw new RangeError("it was allowed by a grant, but it does not name the grant");
      return;
    }
    if (!isGranted) throw new RangeError(`it names the grant ${fact.id}, but its reason is not GRANTED`);
    const grant = this.findNamedGrant(fact, parseEntryTime(entry.at));
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
   * no longer counts, because the operator thereby states that the action has not run.
   */
  private foldStatus(body: EntryBody): void {
    const use = this.uses.get(String(body["action_id"]));
    if (use === undefined || typeof body["status"] !== "string") return;
    const couldStart = use.status === "allowed" || use.status === "approved";
    if (body["status"] === "cancelled" && couldStart) {
      use.released = Number(body["seq"]);
      this.counts.set(use.grant, (this.counts.get(use.grant) ?? 1) - 1);
    }
    use.status = body["status"];
  }
}

function groupByGrant(uses: ReadonlyMap<string, Use>): Map<string, Use[]> {
  const groups = new Map<string, Use[]>();
  for (const use of uses.values()) {
    const group = groups.get(use.grant);
    if (group === undefined) groups.set(use.grant, [use]);
    else group.push(use);
  }
  return groups;
}

function checkSumsOf(id: string, uses: readonly Use[], fault: ReportFault): void {
  const changes = uses
    .flatMap((use) => [
      { seq: use.seq, use, amount: use.sum?.amount ?? null },
      ...(use.released === null ? [] : [{ seq: use.released, use: null, amount: -(use.sum?.amount ?? 0) }]),
    ])
    .sort((a, b) => a.seq - b.seq);
  let total = 0;
  for (const { seq, use, amount } of changes) {
    // The amount of an erased use is unknown, so later sums cannot be compared.
    if (amount === null) return;
    if (use !== null && use.sum?.used !== total)
      fault(`entry ${seq} has a sum for the grant ${id} that differs from the total of its uses`);
    total += amount;
  }
}
